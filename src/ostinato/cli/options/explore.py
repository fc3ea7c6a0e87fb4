"""Options of `ostinato explore`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.extras import require_server
from ostinato.cli.options.parsed import values

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Run an operator through crashes, lost answers, stale caches, broken watches and impatient users, in
virtual time, and show the shortest schedule that it does not survive. Without --scenario, scenarios are invented from
the schemas of its kinds. Exits with 1 if a world fails."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "explore", help="find faults that a program does not survive", description=_DESCRIPTION
    )
    parser.set_defaults(command=_explore, prog=parser.prog)
    parser.add_argument("files", metavar="FILE", nargs="+", help="Python file, module or package with controllers")
    parser.add_argument(
        "--command",
        metavar="COMMAND",
        dest="command_line",
        default="",
        help="explore this program instead, in real time; {kubeconfig} in it and $KUBECONFIG name the server; the "
        "FILEs have its CustomResourceDefinitions",
    )
    parser.add_argument("--scenario", metavar="FILE", default="", help="YAML file with the steps of users")
    parser.add_argument(
        "--budget", metavar="DURATION", default="60s", help="time after which no world is begun (default: %(default)s)"
    )
    parser.add_argument("--worlds", metavar="N", type=int, default=2000, help="at most so many (default: %(default)s)")
    parser.add_argument("-n", "--processes", metavar="N", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument("--seed", metavar="N", type=int, default=1, help="of random choices (default: %(default)s)")
    parser.add_argument("--only", metavar="FAULT", action="append", default=[], help="explore this fault; repeatable")
    parser.add_argument("--without", metavar="FAULT", action="append", default=[], help="leave this out; repeatable")
    parser.add_argument(
        "--free", metavar="FIELD", action="append", default=[], help="may differ, as Secret:data.key; repeatable"
    )
    parser.add_argument("--replay", metavar="WORLD", default="", help="run one world again, as a report names it")
    parser.add_argument("--pictures", metavar="DIR", default="", help="write timelines of failed worlds there, as SVG")
    parser.add_argument("--part", metavar="I/N", default="", help="run the I-th of N parts of the worlds, from 0")


def _explore(options: argparse.Namespace) -> int:
    require_server()
    from ostinato.cli.commands import explore as command  # noqa: PLC0415 - loaded when the command is called

    return command.explore(command.ExploreOptions(**values(options)))
