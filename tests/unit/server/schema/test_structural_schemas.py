"""Structural schemas: recorded results of Go code, and laws of validation, pruning and defaulting."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.server.resources.custom.samples import DATA

from ostinato.api.text.patterns import pattern, pattern_problem
from ostinato.api.validation.formats import known_format, text_check
from ostinato.server.schema.decoding import builtin
from ostinato.server.schema.decoding.builtin import BadValue, TypeMismatch
from ostinato.server.schema.structural.defaulting import apply_defaults
from ostinato.server.schema.structural.embedded_resources import embedded_faults
from ostinato.server.schema.structural.list_types import duplicates
from ostinato.server.schema.structural.node import Structural
from ostinato.server.schema.structural.pruning import prune, read
from ostinato.server.schema.validation.check import compiled, fits_table
from ostinato.server.schema.validation.equality import equal, in_enum
from ostinato.server.schema.validation.explain import CorrelatedValue, explain

OBJECTS: list[dict[str, Any]] = json.loads((DATA / "objects.json").read_text())
FORMATS: dict[str, Any] = json.loads((DATA / "formats.json").read_text())


def told(errors: list[Any]) -> list[str]:
    return sorted(f"{error.type.value} | {error}" for error in errors)


@pytest.mark.parametrize("case", OBJECTS, ids=range(len(OBJECTS)))
def test_objects_fare_as_in_kubernetes(case: dict[str, Any]) -> None:
    node, value = Structural(case["schema"]), case["value"]
    before = CorrelatedValue(node, value, case["old"]) if "old" in case else None
    assert told(explain(case["schema"], value, before=before)) == sorted(case.get("errors", []))
    assert told(duplicates(node, value)) == sorted(case.get("lists", []))
    untouched = copy.deepcopy(value)
    found, unknown = read(node, value)
    assert (found, unknown) == (case["pruned"], case.get("unknown", []))
    apply_defaults(node, found)
    assert found == case.get("defaulted", case["pruned"])
    assert value == untouched


@pytest.mark.parametrize("case", OBJECTS, ids=range(len(OBJECTS)))
def test_the_quick_check_and_the_explanation_agree(case: dict[str, Any]) -> None:
    assert fits_table(compiled(case["schema"]), case["value"]) == (not explain(case["schema"], case["value"]))


@pytest.mark.parametrize("name", sorted(FORMATS["valid"]))
def test_texts_have_the_formats_that_they_have_in_kubernetes(name: str) -> None:
    check = text_check(name)
    assert check is not None
    assert [i for i, text in enumerate(FORMATS["texts"]) if check(text)] == FORMATS["valid"][name]


def test_a_format_counts_only_beside_its_type() -> None:
    assert known_format({"format": "date"}, ("string",)) == "date"
    assert known_format({"format": "date"}, ("integer",)) == ""
    assert known_format({"format": "int32"}, ("integer",)) == "int32"
    assert known_format({"format": "double"}, ("number",)) == "double"
    assert known_format({"format": "date"}, ("object",)) == ""
    assert known_format({"format": "strange"}, ()) == ""
    assert text_check("strange") is None


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from([0.5, 2.0, 1e30])
    | st.sampled_from(["", "a", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcz"), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(OBJECTS), VALUES)
def test_any_value_is_checked_explained_and_pruned_without_failing(case: dict[str, Any], value: Any) -> None:
    raw = case["schema"]
    assert fits_table(compiled(raw), value) == (not explain(raw, value))
    node = Structural(raw)
    once = prune(node, value)
    assert prune(node, once) == once


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(OBJECTS), st.dictionaries(st.sampled_from("abcdz"), VALUES, max_size=4))
def test_defaulting_twice_is_defaulting_once(case: dict[str, Any], value: dict[str, Any]) -> None:
    node = Structural(case["schema"])
    found, _ = read(node, value)
    apply_defaults(node, found)
    again = copy.deepcopy(found)
    apply_defaults(node, again)
    assert again == found


def test_a_default_belongs_to_each_object_alone() -> None:
    node = Structural({"properties": {"a": {"type": "object", "default": {"b": [1]}}}})
    one: dict[str, Any] = {}
    other: dict[str, Any] = {}
    apply_defaults(node, one)
    one["a"]["b"].append(2)
    apply_defaults(node, other)
    assert other == {"a": {"b": [1]}}


EMBEDDED = {
    "type": "object",
    "properties": {
        "pod": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "pods": {
            "type": "array",
            "items": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "properties": {"spec": {"type": "object"}},
            },
        },
        "named": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "x-kubernetes-embedded-resource": True,
                "x-kubernetes-preserve-unknown-fields": True,
            },
        },
    },
}


def test_the_metadata_of_embedded_resources_takes_the_shape_of_all_metadata() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "odd": 1, "labels": {}}, "spec": {"y": 1}}
    found, unknown = read(Structural(EMBEDDED), {"pod": pod, "pods": [{**pod, "odd": 1}], "named": {"k": pod}})
    assert found["pod"] == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"y": 1}}
    assert found["pods"] == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {}}]
    assert unknown == [
        "pods[0].odd",
        "pods[0].spec.y",
        "named[k].metadata.odd",
        "pod.metadata.odd",
        "pods[0].metadata.odd",
    ]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"pod": {"kind": 1}}, "pod.kind: Invalid value: 1: must be a string"),
        (
            {"pods": [{}, {"metadata": {"labels": {"a": 1}}}]},
            'pods[1].metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string',  # noqa: E501
        ),
        ({"named": {"k": {"apiVersion": []}}}, "named[k].apiVersion: Invalid value: []: must be a string"),
    ],
)
def test_embedded_resources_that_cannot_be_read_are_refused(body: dict[str, Any], why: str) -> None:
    with pytest.raises(BadValue) as caught:
        read(Structural(EMBEDDED), body)
    assert str(caught.value) == why
    with pytest.raises(BadValue):
        prune(Structural(EMBEDDED), body)


def test_metadata_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(TypeMismatch):
        read(Structural({}), {"metadata": {"labels": 1}})


def test_embedded_resources_are_checked_as_objects() -> None:
    def faults(pod: Any) -> list[str]:
        return [str(error) for error in embedded_faults(Structural(EMBEDDED), {"pod": pod})]

    good = {"apiVersion": "v1", "kind": "Pod"}
    assert faults(good) == []
    assert faults({}) == ["pod.apiVersion: Required value", "pod.kind: Required value"]
    assert faults({"apiVersion": "", "kind": ""}) == [
        'pod.apiVersion: Invalid value: "": must not be empty',
        'pod.kind: Invalid value: "": must not be empty',
    ]
    assert faults({"apiVersion": 1, "kind": 1}) == [
        "pod.apiVersion: Invalid value: 1: must be a string",
        "pod.kind: Invalid value: 1: must be a string",
    ]
    assert faults({**good, "apiVersion": "a/b/c"}) == [
        'pod.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'
    ]
    assert "may have mixed case, but should otherwise match: " in faults({**good, "kind": "a b"})[0]
    metadata = {"name": "..", "generateName": "a/", "namespace": "A", "labels": {"#": "a"}, "finalizers": ["#"]}
    fields = [text.partition(":")[0] for text in faults({**good, "metadata": metadata})]
    assert fields == [f"pod.metadata.{name}" for name in ("generateName", "name", "namespace", "labels", "finalizers")]


def test_items_of_keyed_lists_must_be_objects() -> None:
    node = Structural({"properties": {"l": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}})
    assert [str(error) for error in duplicates(node, {"l": [None, 5]})] == [
        "l[1]: Invalid value: 5: must be an object for an array of list-type map"
    ]


def test_true_is_not_one_and_one_is_not_a_float() -> None:
    assert not equal([True], [1])
    assert not equal({"a": 1}, {"a": 1.0})
    assert equal({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]})


def test_enumerations_compare_numbers_as_go_does() -> None:
    assert in_enum(1.5, [1])
    assert in_enum(1, [1.0])
    assert in_enum(65, ["A"])
    assert in_enum(-1, ["\ufffd"])
    assert not in_enum(None, [None])
    assert not in_enum(bool(1), [1])


def test_patterns_are_refused_in_the_words_of_go() -> None:
    assert pattern("^a+$").search("aa") is not None
    assert pattern("(") is None
    assert pattern_problem("^a+$") == ""
    assert pattern_problem("(") == "error parsing regexp: missing closing ): `(`"
    assert pattern_problem("a**") == "error parsing regexp: invalid nested repetition operator: `**`"
    assert pattern_problem("\\") == "error parsing regexp: trailing backslash at end of expression: ``"
    assert pattern_problem("(?=a)") == "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"


def test_a_pattern_takes_linear_time() -> None:
    raw = {"type": "string", "pattern": "^(a+)+$"}
    assert not fits_table(compiled(raw), "a" * 50_000 + "!")


KEYED = {
    "type": "object",
    "properties": {
        "l": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": {
                "type": "object",
                "properties": {"k": {"type": "string"}, "n": {"type": "integer", "maximum": 5}},
            },
        },
        "plain": {"type": "array", "items": {"type": "integer", "maximum": 5}},
    },
}


@pytest.mark.parametrize(
    ("new", "old", "fields"),
    [
        ({"l": [{"k": "a", "n": 9}]}, {"l": [{"k": "a", "n": 9}]}, []),
        ({"l": [{"k": "b"}, {"k": "a", "n": 9}]}, {"l": [{"k": "a", "n": 9}]}, []),  # correlated by its key
        ({"l": [{"k": "a", "n": 8}]}, {"l": [{"k": "a", "n": 9}]}, ["l[0].n"]),
        ({"l": [{"k": "b", "n": 9}]}, {"l": [{"k": "a", "n": 9}]}, ["l[0].n"]),
        ({"l": [{"n": 9}]}, {"l": [{"n": 9}]}, ["l[0].n"]),  # not correlated without a key
        ({"l": ["x", {"k": "a", "n": 9}]}, {"l": [{"k": "a", "n": 9}, 5]}, ["l[0]"]),
        ({"l": [{"k": "a", "n": 9}]}, {"l": "x"}, ["l[0].n"]),
        ({"plain": [9]}, {"plain": [9]}, []),  # the whole list is unchanged
        ({"plain": [9, 1]}, {"plain": [9]}, ["plain[0]"]),
        ({"l": "x"}, {"l": "x"}, []),
        ({"l": "x"}, {"l": "y"}, ["l"]),
    ],
)
def test_a_fault_is_forgiven_where_its_part_has_not_changed(new: Any, old: Any, fields: list[str]) -> None:
    node = Structural(KEYED)
    assert [error.field for error in explain(KEYED, new, before=CorrelatedValue(node, new, old))] == fields


def test_a_list_of_lists_and_a_map_of_sets_are_searched_for_repetitions() -> None:
    members = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    node = Structural(
        {"properties": {"l": {"type": "array", "items": members}, "m": {"additionalProperties": members}, "x": members}}
    )
    value = {"l": [["a"], ["b", "b", "b"]], "m": {"k": ["c", "c"]}, "x": "text"}
    assert [str(error) for error in duplicates(node, value)] == [
        'l[1][1]: Duplicate value: "b"',
        'm[k][1]: Duplicate value: "c"',
    ]


def test_no_property_may_stand_where_none_is_allowed() -> None:
    raw = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}
    assert fits_table(compiled(raw), {"a": 1})
    assert not fits_table(compiled(raw), {"b": 1})
    assert [str(error) for error in explain(raw, {"b": 1})] == [
        '<nil>: Invalid value: "b": .b in body is a forbidden property'
    ]


def test_defaults_reach_into_the_values_of_maps_and_the_items_of_lists() -> None:
    inner = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}
    node = Structural(
        {
            "properties": {
                "m": {"additionalProperties": {**inner, "default": {}}, "properties": {"own": {"type": "object"}}},
                "l": {"items": {**inner, "default": {"n": 2}}},
            }
        }
    )
    value: dict[str, Any] = {"m": {"a": {}, "b": None, "own": {}}, "l": [None, {}, 5]}
    apply_defaults(node, value)
    assert value == {"m": {"a": {"n": 1}, "b": {"n": 1}, "own": {}}, "l": [{"n": 2}, {"n": 1}, 5]}


def test_resources_embedded_in_lists_are_checked() -> None:
    value = {"pods": [{"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "v1"}]}
    assert [str(error) for error in embedded_faults(Structural(EMBEDDED), value)] == ["pods[1].kind: Required value"]


def test_unknown_keywords_in_the_schema_of_a_definition_are_dropped() -> None:
    model = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    inner = {"type": "string", "odd": 1, "nullable": False, "items": None}
    body = {
        "items": inner,
        "additionalProperties": inner,
        "additionalItems": True,
        "dependencies": {"a": ["b"], "c": inner},
    }
    assert builtin.read(model, body) == (
        {
            "items": {"type": "string"},
            "additionalProperties": {"type": "string"},
            "additionalItems": True,
            "dependencies": {"a": ["b"], "c": {"type": "string"}},
        },
        [],
    )
    with pytest.raises(BadValue):
        builtin.read(model, {"additionalProperties": "text"})
