"""The parser of the commands: help, suggestions and errors."""

from __future__ import annotations

import io
import re

import pytest

from ostinato.api.text.colour import colour_enabled
from ostinato.cli.app import make_parser, run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_arguments_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 0
    text = capsys.readouterr().out
    assert text.startswith("usage: ostinato COMMAND [OPTION]...\n\nKubernetes controllers in Python")
    assert re.search(r"\ncontrollers:\n  run +run the controllers of", text)
    assert text.endswith("\n`ostinato COMMAND --help` lists the options of a command.\n")


def test_the_help_has_every_command() -> None:
    parser = make_parser()
    text = parser.format_help()
    assert [name for name in parser.commands() if f"\n  {name} " not in text] == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("rnu", "ostinato: unknown command 'rnu'; did you mean run?"),
        ("widget.py", "ostinato: unknown command 'widget.py'; did you mean `ostinato run widget.py`?"),
        ("frobnicate", "ostinato: unknown command 'frobnicate'"),
        ("snapshot sav x", "ostinato snapshot: unknown command 'sav'; did you mean save?"),
        ("run x.py --embeded", "ostinato run: unknown option --embeded; did you mean --embedded?"),
        (
            "run x.py --leader-elecction=x",
            "ostinato run: unknown option --leader-elecction; did you mean --leader-elec",
        ),
        ("run x.py --log-format txt", "ostinato run: argument --log-format: 'txt' is not one of text, json; did you"),
        ("--verison", "ostinato: unknown option --verison; did you mean --version?"),
        ("demo now", "ostinato demo: unexpected argument 'now'"),
    ],
)
def test_misspelt_words_are_suggested(arguments: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run(arguments.split())
    assert end.value.code == 2
    first, advice = capsys.readouterr().err.splitlines()
    assert first.startswith(expected)
    assert advice == f"Run `{expected.partition(':')[0]} --help` for help."


def test_headings_are_bold_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    make_parser().print_help(stream)
    assert "\x1b[1mcontrollers:\x1b[0m\n" in stream.getvalue()


@pytest.mark.parametrize(
    ("stream", "environment", "expected"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colours_need_a_terminal_and_no_objection(
    stream: io.StringIO, environment: dict[str, str], *, expected: bool
) -> None:
    assert colour_enabled(stream, environment) is expected
