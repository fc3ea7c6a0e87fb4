"""Options of `ostinato replay`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Give recorded requests to the front ends of a program again, and compare their answers with the
recorded ones. Needs no cluster. The exit code is 1 if an answer differs."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser(
        "replay", help="compare the answers of front ends with recorded ones", description=_DESCRIPTION
    )
    parser.set_defaults(command=_replay, prog=parser.prog)
    parser.add_argument("recordings", metavar="DIR", help="directory that `ostinato run --record DIR` has written")
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="*",
        help="the program: Python file, or name of a module or package (default: `run` in [tool.ostinato])",
    )
    parser.add_argument(
        "--ignore",
        metavar="FIELD",
        action="append",
        default=[],
        help="field of the answers that is not compared, for example status.lastRun; repeatable",
    )


def _replay(options: argparse.Namespace) -> int:
    from ostinato.cli.commands.frontends import replay as command  # noqa: PLC0415 - loaded when the command is called

    return command.replay(options.recordings, options.files, options.ignore)
