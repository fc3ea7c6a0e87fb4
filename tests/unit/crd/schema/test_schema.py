"""Schemas from classes: what each type and marker becomes."""

from __future__ import annotations

import datetime
import enum
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NewType

import msgspec
import pytest

from ostinato.api.markers import (
    AnyResource,
    AtMostOneOf,
    Doc,
    EmbeddedResource,
    Enum,
    Example,
    ExternalDocs,
    Format,
    Ge,
    Gt,
    Immutable,
    Inexact,
    Int32,
    Int64,
    Le,
    Len,
    ListAtomic,
    ListMap,
    ListSet,
    Lt,
    MapAtomic,
    MapGranular,
    MultipleOf,
    Nullable,
    PatchMerge,
    Pattern,
    PreserveUnknown,
    RawSchema,
    Rule,
    Schemaless,
    SchemaType,
    ServerDefault,
    Title,
    marked,
)
from ostinato.api.meta import Condition, LabelSelector, ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.api.struct import Struct
from ostinato.api.time import Duration, MicroTime, Time
from ostinato.cel.identifiers import escape
from ostinato.crd import schema_of
from ostinato.crd.schema.annotations import read
from ostinato.crd.schema.place import Place
from ostinato.crd.schema.schema import SchemaBuilder
from ostinato.crd.schema.types.scalars import DURATION_PATTERN, QUANTITY_PATTERN
from ostinato.kinds.core_v1 import ContainerPort, PodTemplateSpec

OPEN = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


class Phase(enum.Enum):
    READY = "Ready"
    BROKEN = "Broken"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Named(Struct):
    name: str


class Atomic(Struct, atomic=True):
    name: str


Port = Annotated[int, Ge(1), Le(65535)]
Id = NewType("Id", str)


def schema(annotation: Any) -> dict[str, Any]:
    place = Place("Sample", "field", ".field")
    return SchemaBuilder().value(read(annotation, place), place)


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (int, {"type": "integer"}),
        (Int32, {"type": "integer", "format": "int32"}),
        (Int64, {"type": "integer", "format": "int64"}),
        (Annotated[float, Inexact()], {"type": "number"}),
        (Annotated[float, Format("double")], {"type": "number", "format": "double"}),
        (bytes, {"type": "string", "format": "byte"}),
        (Time, {"type": "string", "format": "date-time"}),
        (MicroTime, {"type": "string", "format": "date-time"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (Duration, {"type": "string", "pattern": DURATION_PATTERN}),
        (Quantity, {**INT_OR_STRING, "pattern": QUANTITY_PATTERN}),
        (int | str, INT_OR_STRING),
        (Annotated[int | str, Ge(0)], {**INT_OR_STRING, "minimum": 0}),
        (Annotated[int | float, Inexact()], {"type": "number"}),
        (Id, {"type": "string"}),
        (Any, OPEN),
        (Phase, {"type": "string", "enum": ["Ready", "Broken"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (Literal[True], {"type": "boolean", "enum": [True]}),
        (Literal["all", 1], {"x-kubernetes-int-or-string": True, "enum": ["all", 1]}),
        (Literal["a"] | Phase, {"type": "string", "enum": ["a", "Ready", "Broken"]}),
        (Literal["a", None], {"type": "string", "enum": ["a"]}),  # noqa: PYI061
        (Annotated[str, Enum("A", "B")], {"type": "string", "enum": ["A", "B"]}),
        (list[str], {"type": "array", "items": {"type": "string"}}),
        (list, {"type": "array", "items": OPEN}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (tuple[int, int], {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "integer"}}),
        (set[str], {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}),
        (frozenset[int], {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}}),
        (list[str | None], {"type": "array", "items": {"type": "string", "nullable": True}}),
        (list[Any | None], {"type": "array", "items": OPEN}),
        (
            list[Phase | None],
            {"type": "array", "items": {"type": "string", "nullable": True, "allOf": [{"enum": ["Ready", "Broken"]}]}},
        ),
        (list[int | str | None], {"type": "array", "items": {**INT_OR_STRING, "nullable": True}}),
        (list[Annotated[str, Len(at_most=5)]], {"type": "array", "items": {"type": "string", "maxLength": 5}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            dict[Phase, int],
            {"type": "object", "properties": {"Ready": {"type": "integer"}, "Broken": {"type": "integer"}}},
        ),
        (dict[Literal["a"], Any], {"type": "object", "properties": {"a": OPEN}}),
        (dict[Annotated[str, Doc("d")], int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            dict[str, bool | None],
            {"type": "object", "additionalProperties": {"type": "boolean", "nullable": True}},
        ),
        (dict[str, Any], {"type": "object", **OPEN}),
        (dict, {"type": "object", **OPEN}),
        (AnyResource, {"type": "object", **OPEN, "x-kubernetes-embedded-resource": True}),
        (Annotated[int, Ge(0), Lt(10)], {"type": "integer", "minimum": 0, "maximum": 10, "exclusiveMaximum": True}),
        (Annotated[int, Gt(0), Le(10)], {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "maximum": 10}),
        (Annotated[int, MultipleOf(5)], {"type": "integer", "multipleOf": 5}),
        (Annotated[Port, Ge(1024)], {"type": "integer", "minimum": 1024, "maximum": 65535}),
        (Annotated[int, Ge(0)] | None, {"type": "integer", "minimum": 0}),
        (
            Annotated[str, Len(1, 63), Pattern("^a")],
            {"type": "string", "minLength": 1, "maxLength": 63, "pattern": "^a"},
        ),
        (Annotated[list[int], Len(1)], {"type": "array", "items": {"type": "integer"}, "minItems": 1}),
        (
            Annotated[dict[str, str], Len(1)],
            {"type": "object", "additionalProperties": {"type": "string"}, "minProperties": 1},
        ),
        (Annotated[str, Format("ipv4")], {"type": "string", "format": "ipv4"}),
        (Annotated[str | None, Nullable()], {"type": "string", "nullable": True}),
        (Annotated[str, Title("t"), Example("x")], {"type": "string", "title": "t", "example": "x"}),
        (Annotated[str, ExternalDocs("u")], {"type": "string", "externalDocs": {"url": "u"}}),
        (Annotated[str, Doc("d")], {"type": "string", "description": "d"}),
        (Annotated[str, Rule("a")], {"type": "string", "x-kubernetes-validations": [{"rule": "a"}]}),
        (Annotated[object, SchemaType("string"), Len(1)], {"type": "string", "minLength": 1}),
        (Annotated[Named, Schemaless()], OPEN),
        (Annotated[str, RawSchema({"not": {"enum": ["x"]}})], {"type": "string", "not": {"enum": ["x"]}}),
        (
            Annotated[Any, Rule("self != ''"), RawSchema({"type": "string"})],
            {"type": "string", **OPEN, "x-kubernetes-validations": [{"rule": "self != ''"}]},
        ),
        (Annotated[str, "a remark of somebody else"], {"type": "string"}),
        (
            Annotated[list[str], ListSet(), PatchMerge()],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        ),
        (
            Annotated[list[str], ListAtomic()],
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"},
        ),
        (
            Annotated[dict[str, str], MapAtomic()],
            {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        ),
        (
            Annotated[dict[str, Any], PreserveUnknown(), MapGranular()],
            {"type": "object", **OPEN, "x-kubernetes-map-type": "granular"},
        ),
        (
            Annotated[dict[str, Any], EmbeddedResource()],
            {"type": "object", **OPEN, "x-kubernetes-embedded-resource": True},
        ),
    ],
    ids=str,
)
def test_a_type_has_a_schema(annotation: Any, expected: dict[str, Any]) -> None:
    assert schema(annotation) == expected


NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def test_a_map_list_has_its_keys() -> None:
    assert schema(Annotated[list[Named], ListMap("name")]) == {
        "type": "array",
        "items": NAMED,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    }


def test_items_of_a_set_may_be_atomic_structs() -> None:
    items = schema(Annotated[list[Atomic], ListSet()])["items"]
    assert items == {**NAMED, "x-kubernetes-map-type": "atomic"}


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (msgspec.Meta(ge=1, lt=5), {"minimum": 1, "maximum": 5, "exclusiveMaximum": True}),
        (
            msgspec.Meta(gt=1, le=5, multiple_of=2),
            {"minimum": 1, "exclusiveMinimum": True, "maximum": 5, "multipleOf": 2},
        ),
        (msgspec.Meta(title="t", description="d", examples=[1]), {"title": "t", "description": "d", "example": 1}),
        (msgspec.Meta(extra_json_schema={"format": "int32"}), {"format": "int32"}),
    ],
)
def test_constraints_of_msgspec_are_read(meta: msgspec.Meta, expected: dict[str, Any]) -> None:
    assert schema(Annotated[int, meta]) == {"type": "integer", **expected}


def test_constraints_of_msgspec_on_texts_are_read() -> None:
    found = schema(Annotated[str, msgspec.Meta(min_length=1, max_length=5, pattern="^a")])
    assert found == {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a"}


def test_constraints_of_annotated_types_are_read() -> None:
    other = pytest.importorskip("annotated_types")
    assert schema(Annotated[int, other.Interval(ge=1, lt=5)]) == schema(Annotated[int, Ge(1), Lt(5)])
    assert schema(Annotated[int, other.Gt(1), other.MultipleOf(2)]) == schema(Annotated[int, Gt(1), MultipleOf(2)])
    assert schema(Annotated[list[int], other.Len(1, 3)]) == schema(Annotated[list[int], Len(1, 3)])


@marked(Rule("self.min <= self.max", message="min is above max"), AtMostOneOf("host_name", "ip"), Title("Range"))
class Range(Struct):
    """Where a number lies.

    Both ends count.
    """

    min: Annotated[int, Immutable()]
    """The least."""
    max: Annotated[int, Doc("The most.")] = 10
    """Not this."""
    host_name: Annotated[str | None, Immutable()] = None
    ip: str | None = msgspec.field(name="IP", default=None)


def test_a_class_is_described_by_its_docstrings_and_has_its_rules() -> None:
    unchanged = {"rule": "self == oldSelf", "message": "Value is immutable"}
    assert schema_of(Range) == {
        "type": "object",
        "title": "Range",
        "description": "Where a number lies.\n\nBoth ends count.",
        "properties": {
            "min": {"type": "integer", "description": "The least.", "x-kubernetes-validations": [unchanged]},
            "max": {"type": "integer", "description": "The most.", "default": 10},
            "hostName": {"type": "string", "x-kubernetes-validations": [unchanged]},
            "IP": {"type": "string"},
        },
        "required": ["min"],
        "x-kubernetes-validations": [
            {"rule": "self.min <= self.max", "message": "min is above max"},
            {
                "rule": "(has(self.hostName) ? 1 : 0) + (has(self.IP) ? 1 : 0) <= 1",
                "message": "at most one of the fields in [hostName IP] may be set",
            },
            {
                "rule": "!has(oldSelf.hostName) || has(self.hostName)",
                "message": "hostName is immutable and cannot be removed",
            },
        ],
    }


def test_descriptions_can_be_left_out() -> None:
    found = schema_of(Range, descriptions=False)
    assert "description" not in str(found)


def test_a_class_has_the_fields_and_rules_of_its_bases() -> None:
    class Wide(Range):
        step: int = 1

    found = schema_of(Wide)
    assert list(found["properties"]) == ["min", "max", "hostName", "IP", "step"]
    assert len(found["x-kubernetes-validations"]) == 3


class Http(Struct, tag="http"):
    port: int
    path: str = "/"


class Tcp(Struct, tag="tcp"):
    port: int


def test_structs_with_tags_are_a_union() -> None:
    assert schema(Http | Tcp) == {
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ["http", "tcp"]},
            "port": {"type": "integer"},
            "path": {"type": "string"},
        },
        "required": ["type"],
        "oneOf": [
            {"properties": {"type": {"enum": ["http"]}}, "required": ["port", "type"]},
            {"properties": {"type": {"enum": ["tcp"]}}, "required": ["port", "type"]},
        ],
    }


def test_a_struct_with_a_tag_alone_may_leave_it_out() -> None:
    found = schema(Tcp)
    assert found["properties"]["type"] == {"type": "string", "enum": ["tcp"]}
    assert found["required"] == ["port"]


class Presence(Struct):
    must: str
    may: str | None = None
    must_but_null: str | None
    null_is_a_value: int | None = 3
    kept_null: Annotated[str | None, Nullable()] = None
    unset: int | msgspec.UnsetType = msgspec.UNSET
    by_server: Annotated[int, ServerDefault(5)]


def test_none_is_nullable_where_it_is_not_the_same_as_nothing() -> None:
    assert schema_of(Presence) == {
        "type": "object",
        "properties": {
            "must": {"type": "string"},
            "may": {"type": "string"},
            "mustButNull": {"type": "string", "nullable": True},
            "nullIsAValue": {"type": "integer", "nullable": True, "default": 3},
            "keptNull": {"type": "string", "nullable": True},
            "unset": {"type": "integer"},
            "byServer": {"type": "integer", "default": 5},
        },
        "required": ["must", "mustButNull"],
    }


class Holder(Struct):
    template: PodTemplateSpec | None = None
    selector: LabelSelector | None = None
    conditions: Annotated[list[Condition], ListMap("type")] = []
    metadata: ObjectMeta | None = None


def test_built_in_structs_have_the_schemas_of_kubernetes() -> None:
    found = schema_of(Holder)["properties"]
    assert found["selector"]["x-kubernetes-map-type"] == "atomic"
    assert sorted(found["metadata"]["properties"]) == ["annotations", "finalizers", "labels", "name", "namespace"]
    assert "lastTransitionTime" in found["conditions"]["items"]["required"]
    pod = found["template"]["properties"]["spec"]["properties"]
    container = pod["containers"]["items"]["properties"]
    assert container["ports"]["items"]["properties"]["protocol"] == {"type": "string", "default": "TCP"}
    assert container["ports"]["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert container["resources"]["properties"]["limits"]["additionalProperties"]["pattern"] == QUANTITY_PATTERN
    assert "$ref" not in str(found)
    assert "x-kubernetes-patch" not in str(found)


def test_the_schema_of_a_built_in_struct_is_ones_own() -> None:
    schema(ContainerPort)["properties"].clear()
    assert schema(ContainerPort)["properties"]


@pytest.mark.parametrize(
    ("wire", "name"),
    [
        ("spec", "spec"),
        ("namespace", "__namespace__"),
        ("my-field", "my__dash__field"),
        ("a.b/c", "a__dot__b__slash__c"),
    ],
)
def test_rules_name_fields_as_cel_wants_it(wire: str, name: str) -> None:
    assert escape(wire) == name
