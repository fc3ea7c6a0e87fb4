"""Options of `ostinato score`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.package import add_program
from ostinato.cli.options.parsed import values

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Check the package of an operator: the checks of operator-sdk's scorecard, its Deployment and roles,
and what an API server in this process says about its objects and samples. Exits with 1 if a check fails."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("score", help="check the package of an operator", description=_DESCRIPTION)
    parser.set_defaults(command=_score, prog=parser.prog)
    add_program(parser)
    parser.add_argument(
        "--suite",
        action="append",
        choices=("basic", "olm", "deployment", "cluster"),
        default=[],
        help="run only these checks; repeatable (default: all)",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="format of the report")


def _score(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import score as command  # noqa: PLC0415 - loaded when the command is called

    return command.score(command.ScoreOptions(**values(options)))
