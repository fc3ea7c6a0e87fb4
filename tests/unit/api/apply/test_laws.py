"""Laws that hold for every field set and every configuration."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.apply import FieldManager
from ostinato.api.apply.fieldpath.elements import SELF
from ostinato.api.apply.fieldpath.field_set import (
    FieldSet,
    FieldSetError,
    difference,
    difference_recursive,
    has,
    intersection,
    leaves,
    ordered,
    parse,
    paths,
    union,
)
from ostinato.api.apply.typed.compare import compare, everything, fields_of
from ostinato.api.apply.typed.merge_rules import rules_of
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema

_ELEMENTS = st.sampled_from(
    [
        "f:a",
        "f:b",
        "f:c d",
        'k:{"name":"a"}',
        'k:{"name":"b!"}',
        'k:{"port":9}',
        'k:{"port":80}',
        "v:9",
        "v:80",
        'v:"x"',
        "i:9",
        "i:80",
    ]
)


def _nested(children: st.SearchStrategy[FieldSet]) -> st.SearchStrategy[FieldSet]:
    return st.dictionaries(_ELEMENTS | st.just(SELF), children, max_size=4)


FIELDS = st.dictionaries(_ELEMENTS, st.recursive(st.just({}), _nested, max_leaves=12), max_size=4).map(parse)


def members(fields: FieldSet) -> set[tuple[str, ...]]:
    return set(paths(fields))


@given(FIELDS, FIELDS)
@settings(max_examples=200)
def test_sets_of_fields_are_sets_of_paths(one: FieldSet, other: FieldSet) -> None:
    assert members(union(one, other)) == members(one) | members(other)
    assert members(intersection(one, other)) == members(one) & members(other)
    assert members(difference(one, other)) == members(one) - members(other)
    below = {path for path in members(one) if any(path[:n] in members(other) for n in range(1, len(path) + 1))}
    assert members(difference_recursive(one, other)) == members(one) - below
    assert members(leaves(one)) == {
        path for path in members(one) if not any(other[: len(path)] == path and other != path for other in members(one))
    }
    assert all(has(one, path) for path in members(one))


@given(FIELDS, FIELDS, FIELDS)
@settings(max_examples=100)
def test_set_algebra_has_its_laws(a: FieldSet, b: FieldSet, c: FieldSet) -> None:
    assert ordered(union(a, b)) == ordered(union(b, a))
    assert ordered(union(a, union(b, c))) == ordered(union(union(a, b), c))
    assert union(a, a) == a
    assert intersection(a, a) == a
    assert difference(a, a) == {}
    assert ordered(union(difference(a, b), intersection(a, b))) == ordered(a)
    assert ordered(difference(a, union(b, c))) == ordered(difference(difference(a, b), c))


@given(FIELDS)
def test_a_set_reads_back_as_it_was_written(fields: FieldSet) -> None:
    again = parse(json.loads(json.dumps(fields)))
    assert json.dumps(again) == json.dumps(fields)
    assert parse(again) is again or not again


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["f:a", ".", "k:{}", "v:", "q:", "x"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(_JSON)
@settings(max_examples=200)
def test_whatever_is_read_as_a_set_is_one_or_is_rejected(value: Any) -> None:
    try:
        found = parse(value)
    except FieldSetError:
        return
    assert parse(found) == found


# Objects

_SCHEMA = Schema.of(
    {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "atom": {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                        "x-kubernetes-map-type": "atomic",
                    },
                    "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "rows": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k"],
                        "items": {
                            "type": "object",
                            "properties": {"k": {"type": "string"}, "v": {"type": "string"}, "w": {"type": "string"}},
                        },
                    },
                    "any": {"x-kubernetes-preserve-unknown-fields": True},
                },
            },
        },
    }
)
_GVK = GroupVersionKind("example.dev", "v1", "Thing")
_FIELDS = FieldManager(_GVK, {"example.dev/v1": _SCHEMA})
_NAMES = st.sampled_from(["a", "b", "c"])
_MAPS = st.dictionaries(_NAMES, _NAMES, max_size=3)
_ANY: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([1, True, "a"]),
    lambda inner: st.dictionaries(_NAMES, inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=4,
)
_SPECS = st.fixed_dictionaries(
    {},
    optional={
        "size": st.integers(1, 2),
        "labels": _MAPS,
        "atom": _MAPS,
        "tags": st.lists(_NAMES, unique=True, max_size=3),
        "rows": st.lists(
            st.fixed_dictionaries({"k": _NAMES}, optional={"v": _NAMES, "w": _NAMES}),
            unique_by=lambda row: row["k"],
            max_size=3,
        ),
        "any": _ANY,
    },
)


def thing(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "example.dev/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}


def stored(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {**value["metadata"], "uid": "u"}}


def owned(value: dict[str, Any], manager: str) -> FieldSet:
    for entry in value["metadata"].get("managedFields", []):
        if entry["manager"] == manager:
            return entry["fieldsV1"]
    return {}


def exists(value: Any) -> set[tuple[str, ...]]:
    return members({"f:root": everything(value, rules_of(_SCHEMA))}["f:root"])


@given(_SPECS, _SPECS)
def test_applying_again_changes_nothing(before: dict[str, Any], spec: dict[str, Any]) -> None:
    live = stored(_FIELDS.update(None, thing(before), "creator", "2024-01-01T00:00:00Z"))
    once = _FIELDS.apply(live, thing(spec), "one", "2024-01-01T00:00:01Z", force=True)
    twice = _FIELDS.apply(once, thing(spec), "one", "2024-01-01T00:00:02Z", force=True)
    assert twice is once


@given(_SPECS)
def test_appliers_of_different_fields_commute(spec: dict[str, Any]) -> None:
    ours = {name: value for name, value in spec.items() if name < "m"}
    theirs = {name: value for name, value in spec.items() if name >= "m"}
    now = "2024-01-01T00:00:00Z"
    one = _FIELDS.apply(stored(_FIELDS.apply(None, thing(ours), "one", now)), thing(theirs), "two", now)
    other = _FIELDS.apply(stored(_FIELDS.apply(None, thing(theirs), "two", now)), thing(ours), "one", now)
    assert (one.get("spec") or {}) == (other.get("spec") or {})
    assert (owned(one, "one"), owned(one, "two")) == (owned(other, "one"), owned(other, "two"))


@given(_SPECS, _SPECS, _SPECS)
@settings(max_examples=150)
def test_absent_fields_have_no_manager(first: dict[str, Any], second: dict[str, Any], third: dict[str, Any]) -> None:
    now = "2024-01-01T00:00:00Z"
    live = stored(_FIELDS.apply(None, thing(first), "one", now))
    live = stored(_FIELDS.apply(live, thing(second), "two", now, force=True))
    live = stored(_FIELDS.update(live, thing(third), "three", now))
    there = exists(live)
    for entry in live["metadata"].get("managedFields", []):
        assert members(entry["fieldsV1"]) <= there


@given(_SPECS, _SPECS)
def test_a_forced_apply_states_what_is_there_and_owns_it(before: dict[str, Any], spec: dict[str, Any]) -> None:
    now = "2024-01-01T00:00:00Z"
    live = stored(_FIELDS.update(None, thing(before), "creator", now))
    after = _FIELDS.apply(live, thing(spec), "one", now, force=True)
    stated = fields_of({"spec": spec}, rules_of(_SCHEMA))
    assert owned(after, "one") == ordered(stated)
    merged = compare({"spec": spec}, {"spec": after.get("spec")}, rules_of(_SCHEMA))
    assert not merged.removed
    assert not merged.modified or after.get("spec") is None


@given(_SPECS, _SPECS)
def test_changes_are_disjoint_and_turn_around(one: dict[str, Any], other: dict[str, Any]) -> None:
    rules = rules_of(_SCHEMA)
    there = compare(thing(one), thing(other), rules)
    back = compare(thing(other), thing(one), rules)
    assert members(there.added) == members(back.removed)
    assert members(there.modified) == members(back.modified)
    assert not members(there.added) & members(there.removed)
    assert not members(there.added) & members(there.modified)
    assert compare(thing(one), thing(one), rules) == ({}, {}, {})
