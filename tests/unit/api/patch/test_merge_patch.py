from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.equality import identical
from ostinato.api.patch import MalformedPatch, create_merge_patch, merge_patch


@pytest.mark.parametrize(  # the examples of RFC 7386, appendix A, that are about objects
    ("original", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_examples_of_the_standard(original: dict[str, Any], patch: dict[str, Any], result: dict[str, Any]) -> None:
    assert merge_patch(original, patch) == result


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        (None, "Invalid JSON Patch"),
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (1, "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}"),
        (True, "error decoding patch: json: cannot unmarshal bool into Go value of type map[string]interface {}"),
    ],
)
def test_a_patch_must_be_an_object(patch: Any, message: str) -> None:
    with pytest.raises(MalformedPatch) as refused:
        merge_patch({"a": 1}, patch)
    assert str(refused.value) == message


def test_an_object_without_change_gives_an_empty_patch() -> None:
    value = {"a": {"b": [1, {"c": None}]}, "d": True}
    assert create_merge_patch(value, deepcopy(value)) == {}


def test_booleans_and_numbers_differ() -> None:
    assert create_merge_patch({"a": [True], "b": 1}, {"a": [1], "b": 1.0}) == {"a": [1]}


def test_unchanged_parts_are_shared() -> None:
    original = {"a": {"b": {"c": 1}}, "d": {"e": 2}}
    assert merge_patch(original, {"a": {"x": 1}})["d"] is original["d"]


def test_an_object_of_five_hundred_levels_is_merged_and_compared() -> None:
    original: Any = 1
    modified: Any = 2
    for _ in range(500):
        original, modified = {"a": original}, {"a": modified}
    patch = create_merge_patch(original, modified)
    assert identical(merge_patch(original, patch), modified)
    assert merge_patch({}, patch) == modified
    assert create_merge_patch({"l": [original]}, {"l": [deepcopy_by_hand(original)]}) == {}


def deepcopy_by_hand(value: Any) -> Any:
    depth = 0
    while isinstance(value, dict):
        value, depth = value["a"], depth + 1
    for _ in range(depth):
        value = {"a": value}
    return value


SCALARS = st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=1), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text("abc", max_size=1), VALUES, max_size=4)


@settings(max_examples=150, deadline=None)
@given(OBJECTS, OBJECTS)
def test_applying_the_difference_gives_the_modified_object(original: dict[str, Any], modified: dict[str, Any]) -> None:
    before = deepcopy((original, modified))
    patch = create_merge_patch(original, modified)
    assert identical(merge_patch(original, patch), modified)
    assert (patch == {}) == identical(original, modified)
    assert before == (original, modified)


@settings(max_examples=150, deadline=None)
@given(OBJECTS, st.dictionaries(st.text("abc", max_size=1), VALUES | st.none(), max_size=4))
def test_a_patch_is_idempotent(original: dict[str, Any], patch: dict[str, Any]) -> None:
    once = merge_patch(original, patch)
    assert identical(merge_patch(once, patch), once)
