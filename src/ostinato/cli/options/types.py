"""Options of `ostinato types`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ostinato.cli.options.parsed import values

if TYPE_CHECKING:
    from ostinato.cli.options.parsed import Commands

_DESCRIPTION = """Generate Python classes from CustomResourceDefinitions, for all of their versions. Other objects in
the files are skipped."""


def add_to(commands: Commands) -> None:
    parser = commands.add_parser("types", help="generate classes from CRDs", description=_DESCRIPTION)
    parser.set_defaults(command=_types, prog=parser.prog)
    parser.add_argument("files", metavar="FILE", nargs="+", help="YAML or JSON file; - is standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="file to write (default: standard output)")
    parser.add_argument("--version", metavar="NAME", help="generate only this version (default: all)")


def _types(options: argparse.Namespace) -> int:
    from ostinato.cli.commands import types as command  # noqa: PLC0415 - loaded when the command is called

    command.types(command.TypesOptions(**values(options)))
    return 0
