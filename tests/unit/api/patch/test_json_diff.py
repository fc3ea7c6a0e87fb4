"""The computed JSON patch: correct for all documents, and small for the usual changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.equality import identical
from ostinato.api.patch import create_json_patch, json_patch

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 2), st.floats(0, 1, width=16), st.text("ab~/", max_size=2)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=4)
    ),
    max_leaves=20,
)
DOCUMENTS = st.dictionaries(st.text("abc~/", max_size=2), VALUES, max_size=4)


@settings(max_examples=300)
@given(DOCUMENTS, DOCUMENTS)
def test_the_patch_turns_the_one_document_into_the_other_and_changes_neither(
    original: dict[str, Any], modified: dict[str, Any]
) -> None:
    before = copy.deepcopy((original, modified))
    assert identical(json_patch(original, create_json_patch(original, modified)), modified)
    assert identical(list(before), [original, modified])


@settings(max_examples=100)
@given(st.lists(VALUES, max_size=6), st.lists(VALUES, max_size=6))
def test_lists_of_anything_are_turned_into_one_another(original: list[Any], modified: list[Any]) -> None:
    assert identical(json_patch(original, create_json_patch(original, modified)), modified)


@given(DOCUMENTS)
def test_equal_documents_need_no_operation(document: dict[str, Any]) -> None:
    assert create_json_patch(document, copy.deepcopy(document)) == []


@pytest.mark.parametrize(
    ("original", "modified", "operations"),
    [
        ({}, {"a": 1}, [{"op": "add", "path": "/a", "value": 1}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
        ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a": 1}, {"a": 1.0}, [{"op": "replace", "path": "/a", "value": 1.0}]),
        ({"a": {}}, {"a": []}, [{"op": "replace", "path": "/a", "value": []}]),
        ({"a": None}, {}, [{"op": "remove", "path": "/a"}]),
        ({}, {"a/b~c": 1}, [{"op": "add", "path": "/a~1b~0c", "value": 1}]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, [{"op": "replace", "path": "/a/c", "value": 3}]),
        ([1, 2, 3], [2, 3], [{"op": "remove", "path": "/0"}]),
        ([1, 2, 3], [1, 3], [{"op": "remove", "path": "/1"}]),
        ([1, 2, 3, 4], [1, 4], [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/1"}]),
        ([1, 4], [1, 2, 3, 4], [{"op": "add", "path": "/1", "value": 2}, {"op": "add", "path": "/2", "value": 3}]),
        ([], [1], [{"op": "add", "path": "/0", "value": 1}]),
        ([{"a": 1, "b": 2}], [{"a": 1, "b": 3}], [{"op": "replace", "path": "/0/b", "value": 3}]),
        ([1, 1], [1], [{"op": "remove", "path": "/1"}]),
        (1, {"a": 1}, [{"op": "replace", "path": "", "value": {"a": 1}}]),
    ],
)
def test_a_single_change_is_one_operation(original: Any, modified: Any, operations: list[dict[str, Any]]) -> None:
    assert create_json_patch(original, modified) == operations


def test_a_document_as_deep_as_can_be_read_is_compared() -> None:
    original: Any = 1
    modified: Any = 2
    for _ in range(125):
        original, modified = {"a": [original]}, {"a": [modified]}
    assert create_json_patch(original, modified) == [{"op": "replace", "path": "/a/0" * 125, "value": 2}]
