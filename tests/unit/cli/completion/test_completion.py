"""Completion scripts, as bash, zsh and fish complete with them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from ostinato.cli.app import make_parser, run
from ostinato.cli.completion.words import words_of

HERE = Path(__file__).parent

BASH = """
source "$1"
shift
for line; do
    COMP_WORDS=() COMPREPLY=()
    read -ra COMP_WORDS <<< "${line//=/ = }"
    [[ $line == *" " ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _ostinato
    (IFS='|'; echo "${COMPREPLY[*]}")
done
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with files to complete, one with shell metacharacters in its name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "operator.py").touch()
    (tmp_path / "o $(touch hurt) *.py").touch()
    (tmp_path / "objects").mkdir()
    return tmp_path


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert run(["completion", shell]) == 0
    path = Path(f"completion.{shell}")
    path.write_text(capsys.readouterr().out)
    return str(path.resolve())


def lines_of(*command: str) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_bash_completes_commands_options_values_and_files(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "ostinato mani": "manifests",
        "ostinato snapshot ": "save|restore|status",
        "ostinato run --embed": "--embedded",
        "ostinato snapshot save --st": "--state|--store",
        "ostinato run --log-format ": "text|json",
        "ostinato run --log-format=j": "json",
        "ostinato run --log-format=": "text|json",
        "ostinato run --state o": "objects",
        "ostinato run -n ": "",
        "ostinato completion z": "zsh",
        "ostinato nothing --": "--help|--version",
    }
    assert lines_of("bash", "-c", BASH, "-", script("bash", capsys), *expected) == [*expected.values()]
    (files,) = lines_of("bash", "-c", BASH, "-", script("bash", capsys), "ostinato run o")
    assert sorted(files.split("|")) == ["o $(touch hurt) *.py", "objects", "operator.py"]
    assert not (program / "hurt").exists()


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_zsh_completes_commands_options_values_and_files(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "ostinato mani": "ostinato manifests ",
        "ostinato snapshot sav": "ostinato snapshot save ",
        "ostinato run --embed": "ostinato run --embedded ",
        "ostinato run --log-format j": "ostinato run --log-format json ",
        "ostinato run --log-format=j": "ostinato run --log-format=json ",
        "ostinato run --state ob": "ostinato run --state objects/",
        "ostinato run oper": "ostinato run operator.py ",
    }
    assert lines_of("zsh", "-f", str(HERE / "complete.zsh"), script("zsh", capsys), *expected) == [*expected.values()]


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_fish_completes_commands_options_values_and_files(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = {
        "ostinato mani": ["manifests"],
        "ostinato snapshot s": ["save", "status"],
        "ostinato run --embed": ["--embedded"],
        "ostinato run --log-format=j": ["--log-format=json"],
        "ostinato run --state ob": ["objects/"],
        "ostinato run oper": ["operator.py"],
        "ostinato completion z": ["zsh"],
    }
    path = script("fish", capsys)
    code = 'source $argv[1]; for line in $argv[2..]; complete -C $line | string replace -r "\\t.*" ""; echo .; end'
    found = "\n".join(lines_of("fish", "--no-config", "-c", code, path, *expected)).split("\n.")
    assert [each.split() for each in found[:-1]] == [*expected.values()]


def test_every_command_and_option_can_be_completed() -> None:
    commands = {each.path: each for each in words_of(make_parser())}
    assert {"", "run", "up", "snapshot restore", "completion"} <= commands.keys()
    assert all(option.flags and option.help for each in commands.values() for option in each.options)
