"""Flags in the notation of Go programs, on top of argparse.

- A flag has its value after `=` or as the next argument; booleans only after `=`. `_` in a name is the same as `-`.
- Unknown flags are reported and ignored, with their values.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence

from ostinato.cli.error import CommandError
from ostinato.cli.options.server.values import boolean
from ostinato.cli.parser import Parser

_logger = logging.getLogger(__name__)


def make_parser(program: str, description: str) -> argparse.ArgumentParser:
    usage = f"{program} [FLAG]..."
    return Parser(prog=program, usage=usage, description=description, allow_abbrev=False)


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the flags of a program and warn of those that have no effect; CommandError for other arguments."""
    known, unknown = _split(parser, list(arguments))
    for name in unknown:
        _logger.warning("flag is not supported and has no effect program=%s flag=%s", parser.prog, name)
    return parser.parse_args(known)


def _split(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the known flags in argparse's notation, and the names of the others."""
    known: list[str] = []
    unknown: list[str] = []
    while arguments:
        name, equals, value = arguments.pop(0).partition("=")
        if not name.startswith("-") or name in ("-", "--"):
            raise CommandError(f"unexpected argument {name!r}; {parser.prog} only has flags, see --help")
        if name.startswith("--"):
            name = name.replace("_", "-")
        action = parser._option_string_actions.get(name)
        if action is None:
            unknown.append(name)
            if not equals and arguments and not arguments[0].startswith("-"):
                arguments.pop(0)
        elif action.nargs == 0 and equals:  # a switch of argparse, which has no value
            if _is_true(name, value):
                known.append(name)
        elif action.nargs is None and not equals:
            if not arguments:
                raise CommandError(f"{name}: flag needs an argument")
            known.append(f"{name}={arguments.pop(0)}")
        else:
            known.append(f"{name}={value}" if equals else name)
    return known, unknown


def _is_true(name: str, value: str) -> bool:
    try:
        return boolean(value)
    except argparse.ArgumentTypeError as error:
        raise CommandError(f"{name}: {error}") from None
