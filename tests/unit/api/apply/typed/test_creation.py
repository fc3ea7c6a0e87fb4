"""The short way to what a creator owns gives what the long way gives, for every kind and for odd objects too."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.apply import FieldManager, field_path, from_paths, without
from ostinato.api.apply import field_manager as long_way
from ostinato.api.apply.fieldpath.field_set import union
from ostinato.api.apply.managedfields.updater import Identity, Updater, Versions
from ostinato.api.apply.typed.compare import compare
from ostinato.api.apply.typed.creation import FastPathUnsupported, created_fields, walker_of
from ostinato.api.apply.typed.fast_validate import fast_validator
from ostinato.api.apply.typed.merge_rules import DEDUCED, UNTYPED_ATOMIC, rules_of
from ostinato.api.apply.typed.validate import _validate as slow_check
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema, builtin_schemas

NOW = "2024-05-06T07:08:09Z"
POD = GroupVersionKind("", "v1", "Pod")
KINDS = sorted(
    (kind for kind in builtin_schemas().kinds if "metadata" in builtin_schemas().of(kind).field_names),  # type: ignore[union-attr]
    key=str,
)

_ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 1) | st.sampled_from(["", "a", "b", 'q"<', 1.5]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "a", "b"]), inner, max_size=2),
    max_leaves=4,
)
_TEXT = st.sampled_from(["", "a", "b", "TCP", 'q"<&>\\', "é"])


@st.composite
def value(draw: st.DrawFn, schema: Schema | None, depth: int = 6) -> Any:
    """What a schema describes, mostly."""
    if schema is None or depth == 0 or draw(st.integers(0, 40)) == 0:
        return draw(_ODD)
    match schema.raw.get("type"):
        case "string":
            return draw(_TEXT)
        case "integer" | "number":
            return draw(st.integers(0, 2))
        case "boolean":
            return draw(st.booleans())
        case "array":
            return draw(st.lists(value(schema.items, depth - 1), max_size=3))
        case "object" if schema.field_names:
            names = draw(st.lists(st.sampled_from(schema.field_names), unique=True, max_size=5))
            keys = [name for name in ("name", "spec", "containers", "metadata") if name in schema.field_names]
            return {name: draw(value(schema.field(name), depth - 1)) for name in dict.fromkeys([*names, *keys])}
        case "object":
            return draw(st.dictionaries(_TEXT, value(schema.values, depth - 1), max_size=3))
    return draw(_ODD)


@st.composite
def new_object(draw: st.DrawFn) -> tuple[GroupVersionKind, dict[str, Any]]:
    kind = draw(st.sampled_from(KINDS) | st.just(POD))
    made = draw(value(builtin_schemas().of(kind)))
    if not isinstance(made, dict):
        made = {}
    made["apiVersion"], made["kind"] = kind.api_version, kind.kind
    metadata = made.get("metadata")
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)
    return kind, made


def both_ways(manager: FieldManager, new: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    def no_short_way(*_: Any) -> Any:
        raise FastPathUnsupported

    before = json.dumps(new)
    short = manager.update(None, new, "me", NOW)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(long_way, "created_fields", no_short_way)
        long = manager.update(None, new, "me", NOW)
    assert json.dumps(new) == before
    return short, long


@given(new_object())
@settings(max_examples=400, deadline=None)
def test_the_short_way_gives_what_the_long_way_gives(drawn: tuple[GroupVersionKind, dict[str, Any]]) -> None:
    kind, new = drawn
    schemas = {kind.api_version: builtin_schemas().of(kind)}
    allowed = {kind.api_version: without(from_paths(field_path("status")))}
    for manager in (FieldManager(kind, schemas), FieldManager(kind, schemas, allowed=allowed)):
        short, long = both_ways(manager, new)
        assert json.dumps(short) == json.dumps(long)  # in the same order, too


@given(_ODD)
@settings(max_examples=200, deadline=None)
def test_it_does_so_for_kinds_without_a_schema(spec: Any) -> None:
    kind = GroupVersionKind("example.dev", "v1", "Widget")
    new = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a", "labels": {"a": "b"}}}
    short, long = both_ways(FieldManager(kind, {kind.api_version: None}), {**new, "spec": spec})
    assert json.dumps(short) == json.dumps(long)


SAMPLE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"b": "1", "a": "2"}, "finalizers": ["x/b", "x/a"], "uid": "u"},
    "spec": {
        "containers": [
            {"name": "b", "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 9}], "resources": {}},
            {"name": "a", "env": [{"name": "B", "value": "1"}, {"name": "A"}], "args": ["x"], "image": "i"},
        ],
        "nodeSelector": {"a": "b"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
    },
    "status": {},
}


def owned(new: dict[str, Any], kind: GroupVersionKind = POD) -> Any:
    rules = rules_of(builtin_schemas().of(kind))
    zero = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": None}, "status": {}}
    return created_fields(new, zero, rules, from_paths(field_path("metadata"), field_path("metadata", "name")))


def test_a_well_formed_object_takes_the_short_way() -> None:
    found = owned(SAMPLE)
    assert list(found["f:metadata"]) == ["f:finalizers", "f:labels", "f:uid"]
    assert "." not in found["f:spec"]
    assert list(found["f:spec"]["f:containers"]) == ['k:{"name":"a"}', 'k:{"name":"b"}']
    ports = found["f:spec"]["f:containers"]['k:{"name":"b"}']["f:ports"]
    assert list(ports) == [
        ".",
        'k:{"containerPort":9,"protocol":"TCP"}',
        'k:{"containerPort":80,"protocol":"TCP"}',
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"spec": {"containers": [{"name": "a"}, {"name": "a"}]}},
        {"spec": {"containers": []}},
        {"spec": {"containers": {}}},
        {"spec": {"unknown": 1}},
        {"unknown": 1},
        {"spec": None},
        {"spec": {"nodeName": 1}},
        {"spec": {"nodeName": {}}},
        {"spec": {"nodeSelector": {"a": {}}}},
        {"spec": {"securityContext": {"fsGroup": []}}},
        {"metadata": {"name": ["a"]}},
        {"metadata": {"finalizers": [{}]}},
        {"status": []},
    ],
)
def test_a_malformed_object_takes_the_general_path(change: dict[str, Any]) -> None:
    with pytest.raises(FastPathUnsupported):
        owned({**SAMPLE, **change})
    manager = FieldManager(POD, {"v1": builtin_schemas().of(POD)})
    short, long = both_ways(manager, {**SAMPLE, **change})
    assert json.dumps(short) == json.dumps(long)


def test_an_object_of_atomic_rules_takes_the_long_way() -> None:
    with pytest.raises(FastPathUnsupported):
        created_fields({}, {}, UNTYPED_ATOMIC, {})


def test_how_to_walk_is_worked_out_once() -> None:
    assert walker_of(DEDUCED) is walker_of(DEDUCED)


@given(new_object(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_what_fits_at_a_glance_is_what_the_slow_check_lets_through(
    drawn: tuple[GroupVersionKind, dict[str, Any]], duplicates: bool
) -> None:
    kind, new = drawn
    rules = rules_of(builtin_schemas().of(kind))
    problems = slow_check(new, rules, duplicates)
    if fast_validator(rules)(new):
        assert not problems
    else:
        assert problems or duplicates  # items that share a key are left to the slow validate


@given(_ODD, _ODD)
@settings(max_examples=200, deadline=None)
def test_what_an_endpoint_leaves_out_is_not_compared(old: Any, new: Any) -> None:
    filtered = without(from_paths(field_path("spec")))
    kind = GroupVersionKind("example.dev", "v1", "Widget")
    live = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, "spec": old, "a": old}
    after = {**live, "spec": new, "a": new}
    rules = rules_of(None)
    ownership = Updater(Versions({kind.api_version: None}), kind.api_version, {kind.api_version: filtered})
    changes = ownership.changes(live, after)
    owners = ownership.update(live, after, changes, {}, Identity("me", "Update", ""))
    every = compare(live, after, rules)
    expected = union(filtered(every.modified), filtered(every.added))
    assert (owners[Identity("me", "Update", "")].fields if owners else {}) == expected
