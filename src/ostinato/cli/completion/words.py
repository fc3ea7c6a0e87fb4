"""What can be completed: the commands, their options, and the values that these take."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from ostinato.cli.parser import Parser

Kind = Literal["none", "file", "directory", "other"]

_DIRECTORIES: Final = frozenset({"DIR"})
_FILES: Final = frozenset({"FILE", "FILE.svg", "PEM", "YAML", "CSV", "SOCKET", "sqlite:PATH"})


class Value(NamedTuple):
    """The value of an option or an argument."""

    kind: Kind
    name: str = ""
    choices: Sequence[str] = ()


class Option(NamedTuple):
    flags: Sequence[str]
    help: str
    value: Value
    repeatable: bool


class Command(NamedTuple):
    """A command: `path` is "run" or "snapshot save", and "" is the program itself."""

    path: str
    help: str
    options: Sequence[Option]
    argument: Value  # of its positional arguments
    repeats: bool  # whether it takes several arguments
    below: Sequence[tuple[str, str]]  # names and descriptions of the commands below it


def words_of(parser: Parser) -> list[Command]:
    """Return the program and all of its commands."""
    return list(_commands("", "", parser))


def _commands(path: str, summary: str, parser: Parser) -> Iterator[Command]:
    arguments = parser.arguments()
    yield Command(
        path,
        summary,
        [_option(action) for action in parser.options()],
        _value(arguments[0]) if arguments else Value("none"),
        any(each.nargs in ("+", "*") for each in arguments),
        list(parser.summaries().items()),
    )
    commands = parser.commands()
    for name, text in parser.summaries().items():  # without aliases
        yield from _commands(f"{path} {name}".strip(), text, commands[name])


def _option(action: argparse.Action) -> Option:
    repeatable = isinstance(action, argparse._AppendAction | argparse._CountAction)
    text = " ".join((action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%").split())
    return Option(action.option_strings, text.partition(";")[0], _value(action), repeatable)


def _value(action: argparse.Action) -> Value:
    if action.nargs == 0 or (action.nargs == "?" and action.option_strings):
        return Value("none")
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    choices = [] if action.choices is None else [str(each) for each in action.choices]
    kind: Kind = "directory" if name in _DIRECTORIES else "file" if name in _FILES else "other"
    return Value(kind, name, choices)
