"""The targets of a program without arguments: those of pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.program.targets import targets


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "src" / "shop").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "src" / "shop")
    return tmp_path


def test_arguments_come_first(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.ostinato]\nrun = "shop"')
    assert targets(["a.py", "b"]) == ["a.py", "b"]


def test_a_project_names_a_module_below_its_directory_or_src(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.ostinato]\nrun = "shop"')
    assert targets([]) == ["shop"]
    assert sys.path[:2] == [str(project), str(project / "src")]


def test_a_project_names_several_files_relative_to_it(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.ostinato]\nrun = ["shop.main", "hooks.py"]')
    assert targets([]) == ["shop.main", str(project / "hooks.py")]


@pytest.mark.parametrize("value", ["7", "[]", "[1]", '""', "{}"])
def test_other_values_are_errors(project: Path, value: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.ostinato]\nrun = {value}")
    with pytest.raises(CommandError, match=r"pyproject\.toml: tool\.ostinato\.run: set a module or a file"):
        targets([])


def test_a_damaged_project_is_an_error(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool")
    with pytest.raises(CommandError, match=r"pyproject\.toml: cannot be read"):
        targets([])


def test_without_a_project_a_file_must_be_named(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.other]")
    with pytest.raises(CommandError, match=r"name a FILE, or set `run` in \[tool\.ostinato\] of pyproject\.toml"):
        targets([])
