"""Strict decoding: unknown and repeated fields in the words and the order of Go."""

from __future__ import annotations

import gc
import json
from pathlib import Path as File
from typing import Any
from weakref import ref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema, builtin_schemas
from ostinato.api.wire import decode_json, encode_json, strict_errors, unknown_fields

DATA = File(__file__).parents[3] / "data/wire"
VECTORS = json.loads((DATA / "json.json").read_text())
TYPED = json.loads((DATA / "strict.json").read_text())


def schema_of(kind: str, group: str = "") -> Schema:
    found = builtin_schemas().of(GroupVersionKind(group, "v1", kind))
    assert found is not None
    return found


def problems(text: str, schema: Schema | None) -> list[str]:
    data = text.encode()
    return strict_errors(data, decode_json(data), schema)


@pytest.mark.parametrize("vector", [v for v in VECTORS if "error" not in v], ids=lambda vector: repr(vector["in"])[:40])
def test_repeated_keys_are_named_as_go_names_them(vector: dict[str, Any]) -> None:
    assert problems(vector["in"], None) == vector.get("strict", "").splitlines()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a"}}', []),
        ('{"spec":{"foo":1}}', ['unknown field "spec.foo"']),
        ('{"spec":{"containers":[{"name":"a"},{"bar":{"x":1}}]}}', ['unknown field "spec.containers[1].bar"']),
        ('{"Spec":{}}', ['unknown field "Spec"']),
        ('{"metadata":{"labels":{"a":"1","a":"2"}}}', ['duplicate field "metadata.labels.a"']),
        (
            '{"b":1,"spec":{"nodeName":"a","nodeName":"b"},"a":1}',
            ['unknown field "b"', 'duplicate field "spec.nodeName"', 'unknown field "a"'],
        ),
        # below an unknown field nobody looks, and an unknown field given twice is told of once
        ('{"x":{"y":1,"y":2},"x":1}', ['unknown field "x"']),
        # what is read by rules of its own is opaque
        ('{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":{}}}]}}', []),
        ('{"spec":{"containers":[{"resources":{"limits":{"cpu":"1","cpu":"2"}}}]}}',
         ['duplicate field "spec.containers[0].resources.limits.cpu"']),
        ('{"spec":{"nodeName" :"a"}}', []),
        # values of wrong types are for others to refuse
        ('{"spec":"x","metadata":[1,{"a":1}]}', []),
        ('{"spec":{"containers":{"a":1}}}', []),
        ("[]", []),
    ],
)  # fmt: skip
def test_fields_of_a_built_in_kind(text: str, expected: list[str]) -> None:
    assert problems(text, schema_of("Pod")) == expected


@pytest.mark.parametrize("vector", TYPED, ids=lambda vector: f"{vector['apiVersion']}-{vector['kind']}")
def test_problems_of_built_in_kinds_are_those_that_go_finds(vector: dict[str, Any]) -> None:
    schema = builtin_schemas().of(GroupVersionKind.of(vector["apiVersion"], vector["kind"]))
    assert problems(vector["text"], schema) == vector["strict"]


def test_at_most_a_hundred_errors_are_reported() -> None:
    text = "{" + ",".join(f'"x{i}":1' for i in range(200)) + "}"
    assert len(problems(text, schema_of("Pod"))) == 100


def test_the_metadata_of_all_kinds_is_known() -> None:
    for group, kind in [("", "Service"), ("apps", "Deployment"), ("batch", "Job")]:
        text = f'{{"apiVersion":"v1","kind":"{kind}","metadata":{{"ownerReferences":[{{"name":"a"}}]}},"spec":{{}}}}'
        assert problems(text, schema_of(kind, group)) == []


def test_a_schema_that_is_gone_is_not_kept() -> None:
    schema = Schema.of({"properties": {"a": {"properties": {"b": {}}, "additionalProperties": {}}}})
    assert problems('{"a":{"b":[]}}', schema) == []
    gone = ref(schema)
    del schema
    gc.collect()
    assert gone() is None


CUSTOM = Schema.of(
    {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "free": {
                        "type": "object",
                        "x-kubernetes-preserve-unknown-fields": True,
                        "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    },
                    "items": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
                    "loose": {"type": "array", "x-kubernetes-preserve-unknown-fields": True},
                    "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": {}}}},
                    "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"spec": {}}},
                    "embeddeds": {"type": "array", "items": {"x-kubernetes-embedded-resource": True}},
                },
            }
        },
    }
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"apiVersion": "a", "kind": "b", "metadata": {"anything": 1}}, []),
        ({"spec": {"size": 1, "b": 1, "a": 1}, "status": {}}, ["spec.a", "spec.b", "status"]),
        ({"spec": {"free": {"x": {"y": 1}, "known": {"a": 1, "b": 2}}}}, ["spec.free.known.b"]),
        ({"spec": {"items": [{"a": 1}, {"b": 1}]}}, ["spec.items[1].b"]),
        ({"spec": {"loose": [{"b": 1}]}}, []),
        ({"spec": {"map": {"k": {"a": 1, "b": 1}}}}, ["spec.map.k.b"]),
        ({"spec": {"embedded": {"kind": "x", "metadata": {}, "spec": 1, "foo": 1}}}, ["spec.embedded.foo"]),
        ({"spec": {"embeddeds": [{"kind": "x", "foo": 1}]}}, ["spec.embeddeds[0].foo"]),
        ({"spec": {"kind": "x"}}, ["spec.kind"]),
        ({"spec": {"size": [{"a": 1}]}}, ["spec.size[0].a"]),
        ([], []),
    ],
)
def test_fields_of_a_custom_resource(value: Any, expected: list[str]) -> None:
    assert unknown_fields(value, CUSTOM) == expected


keys = st.text(alphabet='a":\\ ', max_size=3)
trees = st.recursive(
    st.sampled_from([1, "a", '":', None]),
    lambda children: st.lists(children, max_size=3) | st.lists(st.tuples(keys, children), max_size=3).map(tuple),
    max_leaves=8,
)


def written(tree: Any, colon: str) -> str:
    """JSON in which a tuple of pairs is an object, repeated keys and all."""
    if isinstance(tree, tuple):
        return "{" + ",".join(json.dumps(k) + colon + written(v, colon) for k, v in tree) + "}"
    if isinstance(tree, list):
        return "[" + ",".join(written(item, colon) for item in tree) + "]"
    return json.dumps(tree)


def repeats(tree: Any) -> bool:
    if isinstance(tree, tuple):
        names = [key for key, _ in tree]
        return len(set(names)) < len(names) or any(repeats(value) for _, value in tree)
    return isinstance(tree, list) and any(map(repeats, tree))


@settings(max_examples=300, deadline=None)
@given(trees, st.sampled_from([":", ": ", " :", "\n: "]))
def test_a_repeated_key_is_never_missed_and_never_made_up(tree: Any, colon: str) -> None:
    data = written(tree, colon).encode()
    assert bool(strict_errors(data, decode_json(data), None)) == repeats(tree)


def test_a_reencoded_value_has_no_errors() -> None:
    value = {"metadata": {"annotations": {"last": '{"a":"b","c":":"}', "x\\": '\\":'}}}
    assert strict_errors(encode_json(value), value, schema_of("Pod")) == []
