"""Typed values: merge rules, comparison, merging, reconciliation with a schema."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.apply.typed.compare import compare, everything, fields_of
from ostinato.api.apply.typed.merge import extract, merge, remove
from ostinato.api.apply.typed.merge_rules import DEDUCED, ItemError, rules_of
from ostinato.api.apply.typed.reconcile_schema import ensure_named_fields, reconcile_field_set
from ostinato.api.apply.typed.validate import TypedError, validate
from ostinato.api.apply.typed.values import shallow
from ostinato.api.schema import Schema

_KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["k"],
    "items": {"type": "object", "properties": {"k": {}, "v": {"type": "string"}}},
}


def rules(raw: dict[str, Any]) -> Any:
    return rules_of(Schema.of(raw))


def test_shallow_limits_the_depth() -> None:
    assert shallow({"a": [1]}, 2)
    assert not shallow({"a": [1]}, 1)


def test_items_that_a_list_cannot_hold_are_rejected() -> None:
    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    for item, why in (
        ({"k": deep}, "nested keys"),
        ({}, r'omits all key fields \["k"\]'),
        (None, "a null element"),
        (5, "non-map elements"),
    ):
        with pytest.raises(ItemError, match=why):
            rules(_KEYED).list.element(item)
    scalars = {**_KEYED, "items": {"type": "string"}}
    with pytest.raises(
        ItemError, match="couldn't find default value for k: associative list may not have non-map types"
    ):
        rules(scalars).list.element({})
    unknown = {**_KEYED, "items": {"type": "object", "properties": {"v": {"type": "string"}}}}
    with pytest.raises(ItemError, match="omits all key fields"):
        rules(unknown).list.element({"v": "x"})
    untyped = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    with pytest.raises(ItemError, match="omits all key fields"):
        rules(untyped).list.element({"v": "x"})


def test_invalid_items_raise_in_compare_and_merge() -> None:
    with pytest.raises(TypedError):
        compare([{"k": "a"}], [{}], rules(_KEYED))
    with pytest.raises(TypedError, match="element 1"):
        merge([{"k": "a"}], [{"k": "a"}, {}], rules(_KEYED))
    with pytest.raises(TypedError, match=r'duplicate entries for key \[k="a"\]'):
        merge([{"k": "b"}], [{"k": "a"}, {"k": "a"}], rules(_KEYED))


def test_a_list_without_list_type_goes_by_its_patch_strategy() -> None:
    merging = {
        "type": "array",
        "items": _KEYED["items"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "k",
    }
    assert merge([{"k": "a"}], [{"k": "b"}], rules(merging)) == [{"k": "a"}, {"k": "b"}]
    assert fields_of([{"k": "a"}], rules(merging)) == {'k:{"k":"a"}': {".": {}, "f:k": {}}}
    assert fields_of(
        ["a"], rules({"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "merge"})
    ) == {'v:"a"': {}}
    assert rules({"type": "array", "items": {"type": "string"}, "x-kubernetes-patch-strategy": "replace"}).list.atomic


def test_maps_may_forbid_or_allow_fields_they_do_not_name() -> None:
    closed = rules({"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False})
    with pytest.raises(TypedError, match=r"\.b: field not declared in schema"):
        validate({"b": 1}, closed, duplicates=False)
    for allowed in (True, {"x-kubernetes-preserve-unknown-fields": True}):
        validate({"b": {"c": 1}}, rules({"type": "object", "additionalProperties": allowed}), duplicates=False)
    assert everything({"b": {"c": 1}}, closed) == {".": {}, "f:b": {}}
    assert fields_of({"b": {"c": 1}}, closed) == {"f:b": {}}
    assert merge({"b": 1}, {"b": {"c": 1}}, closed) == {"b": {"c": 1}}
    assert remove({"b": {"c": 1}}, {"f:b": {"f:c": {}}}, closed) == {"b": {"c": 1}}
    assert extract({"b": {"c": 1}}, {"f:b": {"f:c": {}}}, closed) == {"b": {"c": 1}}


def test_values_of_another_form_than_their_rules_are_leaves() -> None:
    text_rules = rules({"type": "string"})
    assert everything({"a": 1}, text_rules) == {}
    assert everything([1], text_rules) == {}
    assert fields_of(5, rules({"type": "object", "properties": {"a": {"type": "string"}}})) == {}
    assert fields_of(5, rules(_KEYED)) == {}
    assert remove(5, {"f:a": {}}, rules({"type": "object"})) is None
    assert extract(5, {"f:a": {}}, rules(_KEYED)) is None
    assert remove([], {"f:a": {}}, rules(_KEYED)) is None
    assert remove({}, {"f:a": {}}, DEDUCED) is None
    assert extract({}, {"f:a": {}}, DEDUCED) == {}
    assert extract([], {"f:a": {}}, rules(_KEYED)) == []


def test_removing_and_extracting_go_item_by_item() -> None:
    value = [{"k": "a", "v": "1"}, {"k": "b", "v": "2"}, {"k": "c", "v": "3"}]
    fields = {'k:{"k":"a"}': {}, 'k:{"k":"b"}': {"f:v": {}}}
    assert remove(value, fields, rules(_KEYED)) == [{"k": "b"}, {"k": "c", "v": "3"}]
    assert extract(value, fields, rules(_KEYED)) == [{"k": "a", "v": "1"}, {"v": "2"}]
    assert extract({"a": {"b": 1}}, {"f:a": {}}, DEDUCED) == {"a": None}


def test_field_sets_are_reconciled_with_the_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {"a": {"type": "string"}}},
            "plain": {"type": "array", "items": {"type": "string"}},
            "rows": {
                **_KEYED,
                "items": {"type": "object", "properties": {"k": {}, "in": {"type": "array", "items": {}}}},
            },
            "free": {"type": "object"},
            "maps": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
            "word": {"type": "string"},
        },
    }
    before = {
        "f:atom": {"f:a": {}},
        "f:plain": {"i:0": {}},
        "f:rows": {'k:{"k":"a"}': {".": {}, "f:in": {"i:0": {}}}},
        "f:free": {"f:x": {"f:y": {}}},
        "f:maps": {"f:x": {"f:y": {}}},
        "f:word": {"f:x": {}},
        "f:unknown": {"f:x": {}},
        'k:{"k":"a"}': {"f:x": {}},
    }
    assert reconcile_field_set(before, rules(schema)) == {
        **before,
        "f:atom": {},
        "f:plain": {},
        "f:rows": {'k:{"k":"a"}': {".": {}, "f:in": {}}},
    }
    assert reconcile_field_set(before, rules({**schema, "x-kubernetes-map-type": "atomic"})) is before
    assert reconcile_field_set(before, DEDUCED) is before
    assert ensure_named_fields({"f:rows": {'v:"x"': {"f:y": {}}}}, rules(schema)) == {
        "f:rows": {".": {}, 'v:"x"': {"f:y": {}}}
    }
