"""Options of `ostinato demo`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.extras import require_server
from ostinato.cli.options.page import add_page

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Show a control plane at work, in about 15 seconds: apply a Deployment, follow it from component to
component until its processes run, kill one of them, scale, roll out, delete. Everything runs in this process and is
removed at the end."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("demo", help="show a control plane at work", description=_DESCRIPTION)
    parser.set_defaults(command=_demo, prog=parser.prog)
    parser.add_argument("--picture", metavar="FILE.svg", help="also write the output to this file as SVG")
    add_page(parser)


def _demo(options: argparse.Namespace) -> int:
    require_server()
    from ostinato.cli.demo import command  # noqa: PLC0415 - loaded when the command is called

    return command.demo(options.picture, options.page, page_writes=options.page_writes)
