"""Loading of files and modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.program.loading import find, load, load_all
from ostinato.manager.hosting import Host


@pytest.fixture(autouse=True)
def as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def written(name: str, text: str = "") -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)
    return name


def loaded(target: str) -> ModuleType:
    return load(find(target), Host())


def test_a_file_can_import_the_modules_beside_it() -> None:
    written("place/other_part.py", "VALUE = 7")
    module = loaded(written("place/my-operator.py", "from other_part import VALUE"))
    assert module.VALUE == 7


def test_a_file_in_a_package_is_a_module_of_it() -> None:
    written("shop/__init__.py")
    written("shop/kinds.py", "VALUE = 7")
    module = loaded(written("shop/controllers.py", "from .kinds import VALUE"))
    assert module.VALUE == 7
    assert module.__name__ == "shop.controllers"


def test_a_module_is_found_by_name_in_the_working_directory() -> None:
    written("wares/__init__.py")
    written("wares/all.py", "VALUE = 7")
    assert loaded("wares.all").VALUE == 7


def test_a_file_does_not_hide_a_module_of_the_same_name() -> None:
    module = loaded(written("types.py", "VALUE = 7"))
    assert module.VALUE == 7
    assert sys.modules["types"] is not module
    assert loaded(written("ostinato.py", "VALUE = 8")).VALUE == 8


def test_the_main_block_is_not_executed() -> None:
    assert loaded(written("guarded.py", "if __name__ == '__main__':\n    raise SystemExit(3)")) is not None


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("missing.py", "missing.py: no such file"),
        ("no/such.py", "no/such.py: no such file"),
        ("nowhere", "nowhere: no such file or module"),
        ("nowhere.at.all", "nowhere.at.all: no such file or module: No module named 'nowhere'"),
        ("..", ".. is a directory without __init__.py; name a file in it, or a package"),
        ("./", "./ is a directory without __init__.py; name a file in it, or a package"),
    ],
)
def test_a_missing_file_or_module_is_an_error(target: str, message: str) -> None:
    with pytest.raises(CommandError) as failure:
        find(target)
    assert str(failure.value).startswith(message)


def test_a_syntax_error_names_the_line() -> None:
    with pytest.raises(CommandError) as failure:
        find(written("broken.py", "x = 1\ndef f(:\n    pass\n"))
    assert str(failure.value) == "broken.py, line 2: invalid syntax\n    def f(:"


def test_a_syntax_error_of_an_imported_file_names_that_file(tmp_path: Path) -> None:
    written("part_b.py", "x = (\n")
    with pytest.raises(CommandError, match=r"part_b\.py, line 1: '\(' was never closed"):
        loaded(written("part_a.py", "import part_b"))


def test_a_file_that_is_not_python_source_is_an_error() -> None:
    Path("binary.py").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CommandError, match=r"binary\.py"):
        find("binary.py")
    with pytest.raises(CommandError, match=r"notes\.txt is not a Python file; the name must end with \.py"):
        find(written("notes.txt"))


def test_an_import_error_shows_only_the_users_frames() -> None:
    with pytest.raises(CommandError) as failure:
        loaded(written("wrong.py", "def f():\n    return 1 / 0\n\nf()\n"))
    text = str(failure.value)
    assert text.startswith("wrong.py: import failed:\nTraceback (most recent call last):\n")
    assert text.endswith("ZeroDivisionError: division by zero")
    assert "line 4, in <module>" in text
    assert "loading.py" not in text


def test_a_rejected_declaration_shows_the_users_line_not_the_librarys() -> None:
    text = "from ostinato import controller\n\n@controller('Widget')\nasync def widgets(widget, ctx): ...\n"
    with pytest.raises(CommandError) as failure:
        loaded(written("refused.py", text))
    assert "line 3, in <module>\n    @controller('Widget')\n" in str(failure.value)
    assert str(failure.value).count("  File ") == 1
    assert "TypeError: the text 'Widget' is not a kind; pass a class of ostinato.kinds" in str(failure.value)


def test_a_file_that_exits_on_import_is_an_error() -> None:
    with pytest.raises(CommandError, match="exits with 3 on import"):
        loaded(written("leaves.py", "raise SystemExit(3)"))


def all_loaded(*targets: str) -> dict[str, ModuleType]:
    return {module.__name__: module for module in load_all([find(each) for each in targets], Host())}


@pytest.mark.parametrize("target", ["stall", "stall/", "./stall", "stall/__init__.py"])
def test_a_package_is_all_of_its_modules_without_main_and_tests(target: str) -> None:
    written("stall/__init__.py")
    written("stall/kinds.py", "class Ware: ...")
    written("stall/desk/__init__.py", "from .till import WARE")
    written("stall/desk/till.py", "from stall.kinds import Ware as WARE")
    for name in ("__main__", "conftest", "test_desk", "tests/__init__", "tests/till"):
        written(f"stall/{name}.py", "raise AssertionError")
    modules = all_loaded(target)
    assert [*modules] == ["stall", "stall.desk", "stall.desk.till", "stall.kinds"]
    assert modules["stall.desk"].WARE is modules["stall.kinds"].Ware


def test_a_module_that_another_target_imports_is_loaded_once() -> None:
    written("bazaar/__init__.py")
    written("bazaar/kinds.py", "class Ware: ...")
    written("bazaar/controllers.py", "from .kinds import Ware")
    modules = all_loaded("bazaar/controllers.py", "bazaar/kinds.py")
    assert modules["bazaar.controllers"].Ware is modules["bazaar.kinds"].Ware


def test_a_syntax_error_in_a_package_is_found_before_anything_is_loaded() -> None:
    written("kiosk/__init__.py", "raise AssertionError")
    written("kiosk/part.py", "x = (\n")
    with pytest.raises(CommandError, match=r"kiosk/part\.py, line 1: '\(' was never closed"):
        find("kiosk")


def test_a_directory_with_the_name_of_another_module_is_an_error() -> None:
    written("json/__init__.py")
    with pytest.raises(CommandError, match="json/: another module has the name json; rename the package"):
        find("json/")
