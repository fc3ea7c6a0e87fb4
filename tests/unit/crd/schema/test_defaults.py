"""Which defaults of a class the server is told."""

from __future__ import annotations

import enum
import itertools
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import pytest

from ostinato.api.codec import to_dict
from ostinato.api.markers import ClientDefault, ListMap, ServerDefault
from ostinato.api.quantity import Quantity
from ostinato.api.struct import Struct
from ostinato.api.time import Duration, Time
from ostinato.crd import SchemaError, schema_of
from ostinato.crd.schema.defaults import mismatch

COUNTER = itertools.count()


class Mode(enum.Enum):
    FAST = "Fast"


class Inner(Struct):
    depth: int = 3
    note: str = ""


class Silent(Struct):
    note: str = ""


class Required(Struct):
    name: str
    depth: int = 3


@dataclass
class Point:
    x: int = 1
    y: int | None = None


class Port(Struct):
    port: int
    protocol: str = ""


class Sample(Struct):
    count: int = 1
    zero: int = 0
    flag: bool = False
    text: str = "nginx"
    empty: str = ""
    nothing: str | None = None
    items: list[str] = []
    more: list[str] = msgspec.field(default_factory=lambda: ["a"])
    table: dict[str, str] = {}
    unique: set[str] = msgspec.field(default_factory=lambda: {"b", "a"})
    mode: Mode = Mode.FAST
    limit: Quantity = Quantity("500m")
    every: Duration = Duration(90 * 10**9)
    since: Time = Time.parse("2026-01-31T12:00:00Z")
    inner: Inner = msgspec.field(default_factory=Inner)
    deeper: Inner = msgspec.field(default_factory=lambda: Inner(depth=5))
    silent: Silent = msgspec.field(default_factory=Silent)
    required: Required = msgspec.field(default_factory=lambda: Required(name="a"))
    point: Point = msgspec.field(default_factory=Point)
    other: Annotated[int | None, ServerDefault(7)] = None
    own: Annotated[int, ClientDefault()] = 9
    counted: int = msgspec.field(default_factory=lambda: next(COUNTER))
    ports: Annotated[list[Port], ListMap("port", "protocol")] = []


def test_non_empty_defaults_are_in_the_schema() -> None:
    told = {name: below["default"] for name, below in schema_of(Sample)["properties"].items() if "default" in below}
    assert told == {
        "count": 1,
        "zero": 0,
        "flag": False,
        "text": "nginx",
        "more": ["a"],
        "unique": ["a", "b"],
        "mode": "Fast",
        "limit": "500m",
        "every": "1m30s",
        "since": "2026-01-31T12:00:00Z",
        "inner": {},
        "deeper": {"depth": 5},
        "required": {"name": "a"},
        "point": {"x": 1},
        "other": 7,
    }
    assert "required" not in schema_of(Sample)


class Hidden(Struct):
    level: Annotated[int, ServerDefault(7)] = 0


class Written(Struct):
    level: Annotated[int, ServerDefault(7)] = msgspec.field(default_factory=int)
    same: Annotated[list[str], ServerDefault([])] = []


def test_a_default_of_the_class_that_the_server_would_overwrite_is_rejected() -> None:
    assert to_dict(Hidden()) == {}  # the object would have 0 here and 7 on the server
    with pytest.raises(SchemaError, match=r"class Hidden, field level: 0 is the default .* would set 7: make it None"):
        schema_of(Hidden)
    assert schema_of(Written)["properties"]["level"]["default"] == 7
    assert to_dict(Written(level=0)) == {"level": 0}


def test_an_empty_default_of_a_list_map_key_is_in_the_schema() -> None:
    items = schema_of(Sample)["properties"]["ports"]["items"]["properties"]
    assert items["protocol"] == {"type": "string", "default": ""}


def test_a_default_inside_of_a_default_is_not_repeated() -> None:
    inner = schema_of(Sample)["properties"]["inner"]
    assert inner == {
        "type": "object",
        "properties": {"depth": {"type": "integer", "default": 3}, "note": {"type": "string"}},
        "default": {},
    }


def test_values_are_compared_with_nested_schemas() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "n": {"type": "string", "nullable": True},
            "f": {"type": "number", "maximum": 5, "exclusiveMaximum": True},
            "b": {"type": "boolean"},
        },
        "required": ["a"],
    }
    assert mismatch(schema, {"a": 1, "n": None, "f": 4.5, "b": True}) == ""
    assert mismatch(schema, {}) == "it has no a"
    assert mismatch(schema, {"a": None}) == "a: it is null"
    assert mismatch(schema, {"a": 1, "f": 5.0}) == "f: 5.0 is too large"
    assert (
        mismatch({"type": "object", "additionalProperties": {"type": "string"}}, {"x": 1})
        == "x: 1 is not of type string"
    )
    assert (
        mismatch({"type": "array", "items": {"type": "string"}, "maxItems": 1}, ["a", "b"])
        == "its length 2 is above the maximum 1"
    )
    assert mismatch({}, None) == ""
    assert mismatch({}, object()) == ""
