"""The parser of the commands: argparse with short errors, suggestions for misspelt words, and grouped commands.

- An error is one line, and the command that prints the help; the exit code is 2. argparse prints the whole usage first.
- Options are declared in `options/`; this module knows none of them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, TextIO

from ostinato.api.text.colour import BOLD, RED, colour_enabled, coloured

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_HEADING: Final = re.compile(r"^(?:usage:|[a-zA-Z][\w ]*:$)", re.MULTILINE)


class Parser(argparse.ArgumentParser):
    """Parser of the program, and of each command."""

    def commands(self) -> dict[str, Parser]:
        """Return the parsers of the commands below this one, by name."""
        return {name: parser for each in self._subparser_actions() for name, parser in each.choices.items()}

    def summaries(self) -> dict[str, str]:
        """Return the one-line descriptions of the commands below this one, by name."""
        return {each.dest: each.help or "" for some in self._subparser_actions() for each in some._choices_actions}

    def options(self) -> list[argparse.Action]:
        """Return the options, in the order of the help, without those that it does not show."""
        return [each for each in self._actions if each.option_strings and each.help != argparse.SUPPRESS]

    def arguments(self) -> list[argparse.Action]:
        """Return the positional arguments, without commands."""
        others = (each for each in self._actions if not each.option_strings)
        return [each for each in others if not isinstance(each, argparse._SubParsersAction)]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # Any: three overloads
        """Parse; an error for unknown arguments, in the parser of the command that they were given to."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(self._unknown(unknown))
        return found, []

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        stream: Any = file or sys.stdout
        text = self.format_help()
        if colour_enabled(stream):
            text = _HEADING.sub(lambda heading: coloured(heading[0], BOLD), text)
        stream.write(text)

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{error_prefix(self.prog, sys.stderr)} {message}\nRun `{self.prog} --help` for help.\n")
        sys.exit(2)

    def _subparser_actions(self) -> list[argparse._SubParsersAction[Parser]]:
        return [each for each in self._actions if isinstance(each, argparse._SubParsersAction)]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        names = [str(each) for each in action.choices]
        if not isinstance(action, argparse._SubParsersAction):
            raise argparse.ArgumentError(
                action, f"{value!r} is not one of {', '.join(names)}{_suggestion(value, names)}"
            )
        self.error(f"unknown command {value!r}{self._command_suggestion(value, names)}")

    def _command_suggestion(self, value: str, names: Sequence[str]) -> str:
        if "run" in names and value.endswith(".py"):
            return f"; did you mean `{self.prog} run {value}`?"
        return _suggestion(value, names)

    def _unknown(self, arguments: Sequence[str]) -> str:
        option = next((each for each in arguments if each.startswith("-")), "")
        if not option:
            return f"unexpected argument {arguments[0]!r}"
        name = option.partition("=")[0]
        known = [text for action in self.options() for text in action.option_strings]
        return f"unknown option {name}{_suggestion(name, known)}"


def error_prefix(prog: str, stream: TextIO) -> str:
    """Return the beginning of an error message: the command, in red on a terminal."""
    return coloured(f"{prog}:", RED) if colour_enabled(stream) else f"{prog}:"


def grouped_help(parser: Parser, groups: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return the help of a program with its commands in groups."""
    summaries = parser.summaries()
    width = max(map(len, summaries))
    lines = [f"usage: {parser.prog} COMMAND [OPTION]...", "", parser.description or ""]
    for title, names in groups:
        lines += ["", f"{title}:", *(f"  {name:<{width}}  {summaries[name]}" for name in names)]
    lines += ["", f"`{parser.prog} COMMAND --help` lists the options of a command.", ""]
    return "\n".join(lines)


def _suggestion(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
