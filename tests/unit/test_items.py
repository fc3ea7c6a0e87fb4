"""Every numbered behaviour of client-go is held by tests, which are there, or excused with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

UNIT = Path(__file__).parent
TEXT = (UNIT / "ITEMS.md").read_text()
ROWS = re.findall(r"^\| (\d+) \|(.*)\|$", TEXT, re.MULTILINE)
NAMED = sorted(set(re.findall(r"`((?:\w+/)+test_\w+)`: ([\w…]+(?:, [\w…]+)*)", TEXT)))


def names_in(path: str) -> list[str]:
    return re.findall(r"^(?:async )?def test_(\w+)\(", (UNIT / f"{path}.py").read_text(), re.MULTILINE)


def test_each_item_has_one_row() -> None:
    assert [int(number) for number, _ in ROWS] == list(range(1, 239))


@pytest.mark.parametrize(("number", "row"), ROWS)
def test_an_item_has_a_test_or_an_excuse(number: str, row: str) -> None:
    assert "/test_" in row or "excused: " in row, number


@pytest.mark.parametrize(("path", "names"), NAMED)
def test_each_test_that_is_named_is_there(path: str, names: str) -> None:
    there = names_in(path)
    for name in names.split(", "):
        beginning = name.removesuffix("…")
        found = [each for each in there if (each.startswith(beginning) if beginning != name else each == name)]
        assert len(found) == 1, f"{path}: {len(found)} tests are called {name}"
