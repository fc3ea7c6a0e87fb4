"""Equality of JSON values."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.equality import equal, identical


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1.0}, True),
        ({"a": [1, {"b": True}]}, {"a": [1, {"b": 1}]}, False),
        ({"a": [1.0, {"b": True}]}, {"a": [1, {"b": True}]}, True),
        ("a", "a", True),
        (None, None, True),
        (None, {}, False),
        ([], {}, False),
    ],
)
def test_booleans_are_not_numbers(one: Any, other: Any, expected: bool) -> None:
    assert equal(one, other) is expected


def test_identical_values_have_the_same_types() -> None:
    assert identical({"a": [1, True, None]}, {"a": [1, True, None]})
    assert not identical({"a": [1]}, {"a": [1.0]})
    assert not identical([True], [1])
    assert not identical({"a": 1}, {"b": 1})
    assert not identical([1], [1, 2])
