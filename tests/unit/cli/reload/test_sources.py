"""Sources: which files belong to a program, and which have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.reload.sources import Sources, syntax_errors


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("main.py", "beside.py", "market/__init__.py", "market/desk/__init__.py", "other/notes.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return tmp_path


@pytest.mark.parametrize("target", ["main.py", "market", "market/", "market.desk", "market/desk/__init__.py"])
def test_files_beside_the_program_and_in_packages_beside_it_are_watched(place: Path, target: str) -> None:
    sources = Sources([target])
    assert sources.changed() == []
    written = [place / "beside.py", place / "market" / "desk" / "__init__.py", place / "market" / "new.py"]
    for path in (*written, place / "other" / "notes.py", place / "notes.txt"):
        path.write_text("x = 1")
    assert sources.changed() == written
    assert sources.changed() == []


@pytest.mark.parametrize("target", ["gone.py", "gone", "gone.part", "other/", ".gone"])
def test_a_target_that_does_not_exist_is_an_error(target: str) -> None:
    with pytest.raises(CommandError, match="no such file"):
        Sources([target])


def test_a_removed_and_a_replaced_file_are_changes(place: Path) -> None:
    sources = Sources(["main.py"])
    (place / "beside.py").unlink()
    (place / "replacement").write_text("")
    (place / "replacement").replace(place / "main.py")
    assert sources.changed() == [place / "beside.py", place / "main.py"]


def test_of_an_installed_package_only_its_own_files_are_watched(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = place / "site-packages"
    for name in ("mine/__init__.py", "mine/data/part.py", "theirs/__init__.py"):
        (installed / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / name).write_text("")
    monkeypatch.syspath_prepend(str(installed))
    sources = Sources(["mine"])
    for name in ("mine/data/part.py", "theirs/__init__.py"):
        (installed / name).write_text("x = 1")
    assert sources.changed() == [installed / "mine" / "data" / "part.py"]


def test_syntax_errors_name_file_and_line(place: Path) -> None:
    (place / "main.py").write_text("x = (\n")
    (place / "beside.py").write_bytes(b"\0")
    first, second = syntax_errors([place / "main.py", place / "gone.py", place / "beside.py"])
    assert first == "main.py, line 1: '(' was never closed\n    x = ("
    assert second.startswith("beside.py: cannot be read: source code ")
