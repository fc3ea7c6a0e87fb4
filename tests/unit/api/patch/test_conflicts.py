from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.patch import UnmergeablePatch
from ostinato.api.patch.conflicts import has_conflicts
from ostinato.api.schema import Schema

SCHEMA = Schema.of(
    {
        "properties": {
            "items": {
                "type": "array",
                "items": {"properties": {"value": {"type": "string"}}},
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "name",
            },
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"},
            "whole": {"type": "object", "x-kubernetes-patch-strategy": "replace"},
        }
    }
)


@pytest.mark.parametrize(
    ("left", "right", "conflict"),
    [
        ({"a": 1}, {"a": 1}, False),
        ({"a": 1}, {"a": 2}, True),
        ({"a": 1}, {"b": 2}, False),
        ({"a": 1}, {"a": "1"}, True),
        ({"a": 1}, {"a": True}, True),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, True),
        ({"a": {"b": 1}}, {"a": None}, True),
        ({"a": {"$patch": "delete"}}, {"a": {"b": 1}}, True),
        ({"a": {"$patch": "delete"}}, {"a": {"$patch": "replace"}}, True),
        ({"a": {"$patch": "delete"}}, {"a": {"$patch": "delete"}}, False),
        ({"a": {"$patch": None}}, {"a": {}}, True),
        ({"a": {"$retainKeys": ["x"]}}, {"a": {"$retainKeys": ["y"]}}, False),
        ({"a": [1]}, {"a": [1, 2]}, True),
        ({"a": [1, 2]}, {"a": [2, 1]}, False),
        ({"a": [1, 2]}, {"a": [2, 3]}, True),
        ({"a": [{"b": 1}]}, {"a": [{"b": 1}]}, False),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}]}, True),
        ({"set": ["a"]}, {"set": ["b"]}, False),
        ({"items": [{"name": "a", "value": "1"}]}, {"items": [{"name": "b", "value": "2"}]}, False),
        ({"items": [{"name": "a", "value": "1"}]}, {"items": [{"name": "a", "value": "2"}]}, True),
        ({"items": [{"name": 1, "value": "1"}]}, {"items": [{"name": 1, "value": "1"}]}, False),
        ({"whole": {"a": 1}}, {"whole": {"a": 2}}, False),
        ({"whole": {"a": 1}}, {"whole": {"$patch": "delete"}}, True),
    ],
)
def test_patches_that_give_one_field_different_values_conflict(left: Any, right: Any, conflict: bool) -> None:
    assert has_conflicts(left, right, SCHEMA) is conflict
    assert has_conflicts(right, left, SCHEMA) is conflict


def test_an_item_without_its_merge_key_is_rejected() -> None:
    with pytest.raises(UnmergeablePatch, match="cannot find merge key `name` in merging list element:map"):
        has_conflicts({"items": [{"name": "a"}]}, {"items": [{"value": "x"}]}, SCHEMA)
