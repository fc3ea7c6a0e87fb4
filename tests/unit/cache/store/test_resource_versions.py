"""Resource versions compared, as client-go compares them."""

from __future__ import annotations

import pytest

from ostinato.cache.store.resource_versions import compare, is_version, reached


@pytest.mark.parametrize("text", ["1", "9", "10", "184467440737095516151844674407370955161"])
def test_decimal_numbers_of_any_length_are_versions(text: str) -> None:
    assert is_version(text)


@pytest.mark.parametrize("text", ["", "0", "01", "-1", "+1", "1.0", " 1", "a", "1a", "\u00b2", "\u0661"])
def test_nothing_else_is(text: str) -> None:
    assert not is_version(text)
    with pytest.raises(ValueError, match="is not a comparable resourceVersion"):
        compare(text, "1")
    with pytest.raises(ValueError, match="is not a comparable resourceVersion"):
        compare("1", text)


@pytest.mark.parametrize(
    ("left", "right", "answer"), [("1", "2", -1), ("9", "10", -1), ("10", "10", 0), ("21", "9", 1)]
)
def test_the_longer_is_the_later_and_then_the_one_that_sorts_later(left: str, right: str, answer: int) -> None:
    assert compare(left, right) == answer
    assert compare(right, left) == -answer


@pytest.mark.parametrize(
    ("seen", "wanted", "answer"),
    [("5", "5", True), ("10", "9", True), ("9", "10", False), ("", "1", False), ("x", "x", True), ("x", "1", False)],
)
def test_a_resource_version_is_reached_by_equal_and_later_ones(seen: str, wanted: str, answer: bool) -> None:
    assert reached(seen, wanted) is answer
