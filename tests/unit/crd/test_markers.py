"""Markers that say constraints, defaults and what a definition holds."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    ClientDefault,
    Column,
    DefinitionMeta,
    Deprecated,
    Doc,
    EmbeddedResource,
    Enum,
    ExactlyOneOf,
    Example,
    ExternalDocs,
    Format,
    Ge,
    Gt,
    Immutable,
    Inexact,
    Le,
    Len,
    Lt,
    Marker,
    MultipleOf,
    Nullable,
    Pattern,
    PreserveUnknown,
    RawSchema,
    Rule,
    Scale,
    Schemaless,
    SchemaType,
    Selectable,
    ServerDefault,
    Stored,
    Title,
    combined_schema,
    marked,
    markers_on,
)


@pytest.mark.parametrize(
    ("marker", "schema"),
    [
        (Ge(1), {"minimum": 1}),
        (Gt(1.5), {"minimum": 1.5, "exclusiveMinimum": True}),
        (Le(1), {"maximum": 1}),
        (Lt(1), {"maximum": 1, "exclusiveMaximum": True}),
        (MultipleOf(5), {"multipleOf": 5}),
        (Pattern("^a$"), {"pattern": "^a$"}),
        (Format("ipv4"), {"format": "ipv4"}),
        (Enum(1, 2), {"enum": [1, 2]}),
        (Nullable(), {"nullable": True}),
        (ServerDefault([1]), {"default": [1]}),
        (PreserveUnknown(), {"x-kubernetes-preserve-unknown-fields": True}),
        (EmbeddedResource(), {"x-kubernetes-embedded-resource": True}),
        (SchemaType("string"), {"type": "string"}),
        (RawSchema({"not": {"enum": ["x"]}}), {"not": {"enum": ["x"]}}),
        (Doc("text"), {"description": "text"}),
        (Title("text"), {"title": "text"}),
        (Example({"a": 1}), {"example": {"a": 1}}),
        (ExternalDocs("https://a"), {"externalDocs": {"url": "https://a"}}),
        (ExternalDocs("https://a", "b"), {"externalDocs": {"url": "https://a", "description": "b"}}),
        (Immutable(), {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "Value is immutable"}]}),
        (ClientDefault(), {}),
        (Inexact(), {}),
        (Schemaless(), {}),
        (Column("A", "a"), {}),
        (Len(1), {}),
    ],
)
def test_a_marker_knows_its_openapi_form(marker: Marker, schema: dict[str, Any]) -> None:
    assert marker.schema == schema


@pytest.mark.parametrize(
    ("marker", "json_type", "schema"),
    [
        (Len(1, 63), "string", {"minLength": 1, "maxLength": 63}),
        (Len(1), "array", {"minItems": 1}),
        (Len(at_most=3), "object", {"maxProperties": 3}),
        (Len(), "string", {}),
        (Len(0, 0), "array", {"maxItems": 0}),
    ],
)
def test_a_length_has_the_keywords_of_the_type(marker: Len, json_type: str, schema: dict[str, Any]) -> None:
    assert marker.schema_for(json_type) == schema


def test_a_rule_supports_all_fields_of_kubernetes() -> None:
    rule = Rule(
        "self > 0",
        message="m",
        message_expression="'m'",
        reason="FieldValueForbidden",
        field_path=".a",
        optional_old_self=True,
    )
    assert rule.schema == {
        "x-kubernetes-validations": [
            {
                "rule": "self > 0",
                "message": "m",
                "messageExpression": "'m'",
                "reason": "FieldValueForbidden",
                "fieldPath": ".a",
                "optionalOldSelf": True,
            }
        ]
    }


def test_rules_add_up_and_later_bounds_win() -> None:
    assert combined_schema((Rule("a"), Rule("b"))) == {"x-kubernetes-validations": [{"rule": "a"}, {"rule": "b"}]}
    assert combined_schema((Gt(0), Ge(5))) == {"minimum": 5}
    assert combined_schema((Le(9), Lt(5))) == {"maximum": 5, "exclusiveMaximum": True}


@pytest.mark.parametrize(
    ("marker", "rule"),
    [
        (ExactlyOneOf("a", "b"), "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) == 1"),
        (AtMostOneOf("a", "b"), "(has(self.a) ? 1 : 0) + (has(self.b) ? 1 : 0) <= 1"),
        (AtLeastOneOf("a", "b"), "has(self.a) || has(self.b)"),
    ],
)
def test_how_many_fields_are_set_is_a_rule(marker: ExactlyOneOf, rule: str) -> None:
    assert marker.rule(["a", "b"], ["a", "b"]).rule == rule


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Ge("1"), "Ge needs a number, got '1'"),
        (lambda: Ge(number=True), "Ge needs a number"),
        (lambda: Lt(float("inf")), "Lt needs a number"),
        (lambda: MultipleOf(0), "above 0"),
        (lambda: Len(-1), "non-negative integers"),
        (lambda: Len(5, 3), "the minimum exceeds the maximum"),
        (lambda: Pattern(""), "Pattern needs a string"),
        (lambda: SchemaType("text"), "'text' is not a JSON type"),
        (lambda: RawSchema("x"), "RawSchema needs a dict"),
        (lambda: ExactlyOneOf("a"), "at least two fields"),
        (lambda: Column("A", type="text"), "type is one of boolean, date"),
        (lambda: marked(Ge), r"write Ge\(...\)"),
        (lambda: marked("x"), "takes markers, got 'x'"),
    ],
)
def test_a_marker_that_makes_no_sense_is_rejected(make: Any, told: str) -> None:
    with pytest.raises((TypeError, ValueError), match=told):
        make()


@pytest.mark.parametrize(
    ("marker", "text"),
    [
        (Len(1, 63), "Len(1, 63)"),
        (Len(at_most=3), "Len(at_most=3)"),
        (Rule("a", message="b"), "Rule('a', message='b')"),
        (Column("A", "status.a", priority=1), "Column('A', '.status.a', priority=1)"),
        (Selectable("spec.a"), "Selectable('.spec.a')"),
        (Scale("spec.replicas", "status.replicas"), "Scale('.spec.replicas', '.status.replicas')"),
        (Deprecated("use v2"), "Deprecated('use v2')"),
        (DefinitionMeta(labels={"a": "b"}), "DefinitionMeta(labels={'a': 'b'})"),
    ],
)
def test_a_marker_prints_as_it_is_written(marker: Marker, text: str) -> None:
    assert repr(marker) == text
    assert marker == marker.__class__(*marker.arguments, **marker.keywords)
    assert len({marker, marker.__class__(*marker.arguments, **marker.keywords)}) == 1


def test_markers_of_a_class_are_inherited_except_those_of_a_version() -> None:
    @marked(Rule("a"), Stored(), Deprecated())
    class Base: ...

    @marked(Rule("b"))
    @marked(Rule("c"))
    class Derived(Base): ...

    assert markers_on(Base) == (Rule("a"), Stored(), Deprecated())
    assert markers_on(Derived) == (Rule("a"), Rule("b"), Rule("c"))
