"""Every behaviour and pain of controller-runtime is held by tests, which are there, or excused with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

UNIT = Path(__file__).parent.parent
TEXT = (Path(__file__).parent / "BEHAVIOURS.md").read_text()
ROWS = re.findall(r"^\| ([BP]\d+) \|(.*)\|$", TEXT, re.MULTILINE)
NAMED = re.findall(r"`([\w./]+/test_\w+)`: ([\w…]+(?:, [\w…]+)*)", TEXT)


def names_in(path: str) -> list[str]:
    return re.findall(r"^(?:async )?def test_(\w+)\(", (UNIT / f"{path}.py").read_text(), re.MULTILINE)


def test_no_behaviour_and_no_pain_is_forgotten() -> None:
    found = {number for number, _ in ROWS}
    assert sorted({f"B{number}" for number in range(1, 105)} - found) == []
    assert sorted({f"P{number}" for number in range(1, 21)} - found) == []


@pytest.mark.parametrize(("number", "row"), ROWS)
def test_a_behaviour_has_a_test_or_an_excuse(number: str, row: str) -> None:
    assert "/test_" in row or "excused: " in row, number


@pytest.mark.parametrize(("path", "names"), NAMED)
def test_each_test_that_is_named_is_there(path: str, names: str) -> None:
    there = names_in(path)
    for name in names.split(", "):
        beginning = name.removesuffix("…")
        found = [each for each in there if each.startswith(beginning) and (beginning != name or each == name)]
        assert found, f"{path}: no test is called {name}"
