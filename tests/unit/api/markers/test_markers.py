from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

from ostinato.api.markers import (
    Enum,
    ListAtomic,
    ListMap,
    ListSet,
    MapAtomic,
    MapGranular,
    Marker,
    PatchMerge,
    PatchReplace,
    PatchRetainKeys,
    combined_schema,
)
from ostinato.api.serializer.type_info import TypeInfo, fields_of, merge_rules_of
from ostinato.api.struct import Struct


@pytest.mark.parametrize(
    ("marker", "schema"),
    [
        (ListAtomic(), {"x-kubernetes-list-type": "atomic"}),
        (ListSet(), {"x-kubernetes-list-type": "set"}),
        (
            ListMap("port", "protocol"),
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"]},
        ),
        (MapAtomic(), {"x-kubernetes-map-type": "atomic"}),
        (MapGranular(), {"x-kubernetes-map-type": "granular"}),
        (PatchMerge(), {"x-kubernetes-patch-strategy": "merge"}),
        (PatchMerge("name"), {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"}),
        (PatchReplace(), {"x-kubernetes-patch-strategy": "replace"}),
        (PatchRetainKeys(), {"x-kubernetes-patch-strategy": "retainKeys"}),
        (Enum("A", "B"), {"enum": ["A", "B"]}),
    ],
)
def test_a_marker_knows_its_openapi_form(marker: Marker, schema: dict[str, Any]) -> None:
    assert marker.schema == schema


def test_strategies_add_up() -> None:
    combined = combined_schema((PatchMerge("name"), PatchRetainKeys()))
    assert combined == {"x-kubernetes-patch-merge-key": "name", "x-kubernetes-patch-strategy": "merge,retainKeys"}


def test_markers_are_equal_by_what_they_say() -> None:
    assert ListMap("a") == ListMap("a") != ListMap("b")
    assert ListAtomic() != ListSet()
    assert len({Enum("A"), Enum("A"), Enum("B")}) == 2
    assert repr(ListMap("a", "b")) == "ListMap('a', 'b')"


def test_a_list_map_needs_keys() -> None:
    with pytest.raises(ValueError, match="needs the names of the fields"):
        ListMap()


def test_a_plain_marker_has_no_form() -> None:
    with pytest.raises(NotImplementedError):
        _ = Marker().schema


class Port(Struct):
    port: int


class Spec(Struct):
    ports: Annotated[list[Port], ListMap("port")] = []
    modes: list[Annotated[str, Enum("A")]] = []
    by_name: dict[str, Annotated[list[str], ListSet()]] = {}
    selector: Annotated[dict[str, str], MapAtomic(), "a remark of somebody else"] = {}
    bare_list: list = []  # type: ignore[type-arg]
    bare_dict: dict = {}  # type: ignore[type-arg]
    choice: Literal["x", "y"] = "x"
    value: int | str | None = None
    again: Spec | None = None


def test_the_rules_of_a_class_are_read_from_its_annotations() -> None:
    assert merge_rules_of(Spec) == {
        "ports": {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port"]},
        "modes": {"items": {"enum": ["A"]}},
        "byName": {"additionalProperties": {"x-kubernetes-list-type": "set"}},
        "selector": {"x-kubernetes-map-type": "atomic"},
    }


def test_a_shape_follows_the_type() -> None:
    shapes = {field.attribute: field.type_info for field in fields_of(Spec)}
    assert {name: shape.form for name, shape in shapes.items()} == {
        "ports": "list",
        "modes": "list",
        "by_name": "map",
        "selector": "map",
        "bare_list": "list",
        "bare_dict": "map",
        "choice": "any",
        "value": "union",
        "again": "struct",
    }
    assert shapes["value"].nullable
    assert shapes["again"].type is Spec
    assert TypeInfo(Spec).fields == fields_of(Spec)
    assert [variant.type for variant in shapes["value"].variants] == [int, str]
