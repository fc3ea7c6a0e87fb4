"""The command-line reference documents every option; commands import only what they need."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from ostinato.cli.app import make_parser, run

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"


COMMANDS = [
    "init",
    "add",
    "upgrade-template",
    "run",
    "replay",
    "manifests",
    "types",
    "explore",
    "up",
    "controllers",
    "scheduler",
    "node",
    "images",
]


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a command and of its sub-commands."""
    nested = [each.choices.values() for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
    own = [text for action in parser._actions for text in action.option_strings]
    return own + [text for parsers in nested for each in parsers for text in options_of(each)]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_names_every_option(command: str) -> None:
    (commands,) = [each for each in make_parser()._actions if isinstance(each, argparse._SubParsersAction)]
    section = PAGE.read_text().split(f"## `ostinato {command}`\n")[1].split("\n## ")[0]
    options = options_of(commands.choices[command])
    assert [text for text in options if text not in section and text not in ("-h", "--help")] == []


def test_the_page_names_every_option_of_kudo_but_those_of_run() -> None:
    commands = make_parser().commands()
    section = PAGE.read_text().split("## `ostinato kudo`\n")[1].split("\n## ")[0]
    shared = {"-h", "--help", *options_of(commands["run"])}
    assert [text for text in options_of(commands["kudo"]) if text not in section and text not in shared] == []


def test_the_page_names_every_format_of_packages_and_its_options() -> None:
    section = PAGE.read_text().split("## `ostinato package`\n")[1].split("\n## ")[0]
    for name, parser in make_parser().commands()["package"].commands().items():
        assert f"| `{name}` |" in section
        options = [text for action in parser.options() for text in action.option_strings]
        assert [text for text in options if text not in section and text not in ("-h", "--help")] == []


def test_the_api_server_has_the_options_of_up_except_the_group_cluster() -> None:
    """The page about it refers to those of `ostinato up`."""
    (commands,) = [each for each in make_parser()._actions if isinstance(each, argparse._SubParsersAction)]
    up = [group for group in commands.choices["up"]._action_groups if group.title not in ("cluster", "options")]
    shared = {text for group in up for action in group._group_actions for text in action.option_strings}
    assert shared | {"-h", "--help", "--workers"} == set(commands.choices["apiserver"]._option_string_actions)


def test_run_manifests_and_types_work_without_the_server_extra() -> None:
    """What the extras bring is not there, nor is the server loaded."""
    code = """
import sys
for name in ("re2", "cryptography", "uvloop", "pydantic"):
    sys.modules[name] = None
import ostinato.cli.commands.run, ostinato.cli.commands.manifests, ostinato.cli.commands.types
import ostinato.cli.commands.package, ostinato.cli.commands.score
assert not [name for name in sys.modules if name.startswith(("ostinato.server", "ostinato.plane"))]
from ostinato.cli.app import run
assert run(["run", "--embedded", __WIDGET__]) == 1
for command in ("up", "apiserver", "demo"):
    assert run([command]) == 1
"""
    code = code.replace("__WIDGET__", repr(str(PAGE.parents[2] / "examples" / "widget.py")))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "--embedded needs the server; run pip install 'ostinato[server]'" in done.stderr
    for command in ("up", "apiserver", "demo"):
        assert f"ostinato {command}: this command needs the server; run pip install 'ostinato[server]'" in done.stderr


def test_version_prints_the_package_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        run(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"ostinato {version('ostinato')}\n"
