"""Dataclasses and pydantic models: the same schemas as structs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import pytest
from tests.stage.api import Api, asking

from ostinato.api.markers import Column, Ge, Inexact, Rule, marked
from ostinato.api.struct import Struct
from ostinato.crd import SchemaError, crd_of, resource, schema_of

pydantic = pytest.importorskip("pydantic")
SOURCE = Path(__file__).parents[4] / "src"


@marked(Rule("self.least <= self.most"))
@dataclass
class Range:
    """Where a number lies."""

    least: Annotated[int, Ge(0)]
    """The least."""
    most: int = 10
    names: list[str] = field(default_factory=list)


def test_a_dataclass_has_a_schema_with_its_attributes_as_they_are() -> None:
    assert schema_of(Range) == {
        "type": "object",
        "description": "Where a number lies.",
        "properties": {
            "least": {"type": "integer", "minimum": 0, "description": "The least."},
            "most": {"type": "integer", "default": 10},
            "names": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["least"],
        "x-kubernetes-validations": [{"rule": "self.least <= self.most"}],
    }


@dataclass
class Undocumented:
    size: int = 0


def test_a_dataclass_is_not_described_by_what_python_writes() -> None:
    assert "description" not in schema_of(Undocumented)


def camel(name: str) -> str:
    return "".join(part.capitalize() if i else part for i, part in enumerate(name.split("_")))


class Inner(pydantic.BaseModel):  # type: ignore[misc]
    depth: int = 3


class Model(pydantic.BaseModel):  # type: ignore[misc]
    """A model."""

    model_config = pydantic.ConfigDict(alias_generator=camel, populate_by_name=True)

    min_ready: int = pydantic.Field(ge=1, lt=10, description="How many.")
    name: Annotated[str, pydantic.Field(min_length=1, max_length=5, pattern="^a")] = "a"
    share: Annotated[float, Inexact()] | None = None
    items: list[Annotated[int, pydantic.Field(gt=0)]] = pydantic.Field(default_factory=list, max_length=3)
    inner: Inner = Inner()
    odd: int = pydantic.Field(default_factory=lambda data: data["min_ready"] + 1)
    other: str | None = pydantic.Field(default=None, serialization_alias="otherName")


def test_a_pydantic_model_has_a_schema_with_its_aliases() -> None:
    assert schema_of(Model) == {
        "type": "object",
        "description": "A model.",
        "properties": {
            "minReady": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10,
                "exclusiveMaximum": True,
                "description": "How many.",
            },
            "name": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a", "default": "a"},
            "share": {"type": "number"},
            "items": {
                "type": "array",
                "items": {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
                "maxItems": 3,
            },
            "inner": {"type": "object", "properties": {"depth": {"type": "integer", "default": 3}}, "default": {}},
            "odd": {"type": "integer"},
            "otherName": {"type": "string"},
        },
        "required": ["minReady"],
    }


@pydantic.dataclasses.dataclass
class Checked:
    size: int = pydantic.Field(default=3, ge=2, title="Size", examples=[4], description="How large.")
    names: list[str] = pydantic.Field(default_factory=list, max_length=2)


class Told(pydantic.BaseModel):  # type: ignore[misc]
    size: int = pydantic.Field(default=3, ge=2, title="Size", examples=[4], description="How large.")
    names: list[str] = pydantic.Field(default_factory=list, max_length=2)


@pytest.mark.parametrize("model", [Checked, Told])
def test_pydantic_field_constraints_are_in_the_schema(model: type) -> None:
    assert schema_of(model)["properties"] == {
        "size": {
            "type": "integer",
            "minimum": 2,
            "default": 3,
            "title": "Size",
            "example": 4,
            "description": "How large.",
        },
        "names": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    }


class Early(pydantic.BaseModel):  # type: ignore[misc]
    late: Late | None = None
    ports: Ports


class Late(pydantic.BaseModel):  # type: ignore[misc]
    model_config = pydantic.ConfigDict(extra="allow")

    size: int = 1


class Ports(pydantic.RootModel[list[Annotated[int, Ge(1)]]]):  # type: ignore[misc]
    pass


def test_a_pydantic_model_may_name_models_that_come_after_it() -> None:
    assert schema_of(Early)["properties"]["late"]["properties"] == {"size": {"type": "integer", "default": 1}}


def test_an_unknown_name_in_a_pydantic_model_is_reported() -> None:
    class Local(pydantic.BaseModel):  # type: ignore[misc]
        other: Unknown  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(SchemaError, match="class Local: name 'Unknown' is not defined"):
        schema_of(Local)


def test_a_pydantic_model_with_extra_allow_preserves_unknown_fields() -> None:
    assert schema_of(Late)["x-kubernetes-preserve-unknown-fields"] is True


def test_a_root_model_is_what_its_root_is() -> None:
    ports = {"type": "array", "items": {"type": "integer", "minimum": 1}}
    assert schema_of(Early)["properties"]["ports"] == ports


class Cat(pydantic.BaseModel):  # type: ignore[misc]
    kind: Literal["cat"]
    lives: int = 9


class Dog(pydantic.BaseModel):  # type: ignore[misc]
    kind: Literal["dog"] = "dog"
    tricks: list[str]


class Owner(pydantic.BaseModel):  # type: ignore[misc]
    pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]


def test_pydantic_models_with_a_discriminator_are_a_union() -> None:
    assert schema_of(Owner)["properties"]["pet"] == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["cat", "dog"]},
            "lives": {"type": "integer"},
            "tricks": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["kind"],
        "oneOf": [
            {"properties": {"kind": {"enum": ["cat"]}}, "required": ["kind"]},
            {"properties": {"kind": {"enum": ["dog"]}}, "required": ["kind", "tricks"]},
        ],
    }


def test_a_struct_with_a_pydantic_model_in_it_is_rejected() -> None:
    class Mixed(Struct):
        inner: Inner

    with pytest.raises(SchemaError, match="class Mixed, field inner: Inner is a pydantic model, which a Struct cannot"):
        schema_of(Mixed)


class Untold(pydantic.BaseModel):  # type: ignore[misc]
    pet: Inner | Late


def test_pydantic_models_without_a_discriminator_are_rejected() -> None:
    with pytest.raises(SchemaError, match=r"class Untold, field pet: Inner cannot be distinguished from the others"):
        schema_of(Untold)


class Blob(pydantic.BaseModel):  # type: ignore[misc]
    data: bytes | None = None


class Blob64(Blob):
    model_config = pydantic.ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


def test_bytes_of_a_pydantic_model_are_rejected_unless_it_writes_them_in_base64() -> None:
    with pytest.raises(SchemaError, match=r'class Blob, field data: .* ser_json_bytes="base64"'):
        schema_of(Blob)
    assert schema_of(Blob64)["properties"]["data"] == {"type": "string", "format": "byte"}


T = TypeVar("T")


class Page(Struct, Generic[T]):
    items: list[T] = []
    first: T | None = None


class Sized(Page[T], Generic[T]):
    size: Annotated[T, Ge(0)]


class Numbers(Sized[int]):
    total: int = 0


class Rows(Page[list[T]], Generic[T]):
    sum: T


@dataclass
class Box(Generic[T]):
    content: dict[str, T]


class Shelf(Struct):
    texts: Page[str]
    box: Box[Page[int]]


def test_a_generic_model_has_the_types_that_it_is_given() -> None:
    number = {"type": "integer"}
    pages = {"items": {"type": "array", "items": number}, "first": number}
    assert schema_of(Numbers)["properties"] == {
        **pages,
        "size": {"type": "integer", "minimum": 0},
        "total": {"type": "integer", "default": 0},
    }
    found = schema_of(Shelf)["properties"]
    assert found["texts"]["properties"]["first"] == {"type": "string"}
    assert found["box"]["properties"]["content"]["additionalProperties"]["properties"] == pages


def test_a_type_variable_may_stand_for_another_type_in_a_base() -> None:
    found = schema_of(Rows[int])["properties"]
    assert found["first"] == {"type": "array", "items": {"type": "integer"}}
    assert found["sum"] == {"type": "integer"}


def test_a_generic_model_without_type_arguments_is_rejected() -> None:
    with pytest.raises(SchemaError, match=r"class Page, field items\[\]: ~T is a type variable: .*, Page\[...\]"):
        schema_of(Page)


@resource(group="example.dev", version="v1")
@marked(Column("Ready", "spec.minReady"))
class Gizmo(pydantic.BaseModel):  # type: ignore[misc]
    spec: Model
    metadata: dict[str, Any] = {}


@asking
async def test_a_pydantic_model_can_be_a_kind(api: Api) -> None:
    crd = crd_of(Gizmo)
    made = await api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
    assert made.code == 201, made.message
    gizmo = Gizmo(spec=Model(min_ready=2, items=[1]), metadata={"name": "a"})
    body = {"apiVersion": "example.dev/v1", "kind": "Gizmo", **gizmo.model_dump(by_alias=True, exclude_none=True)}
    made = await api.post("/apis/example.dev/v1/namespaces/default/gizmos", body)
    assert made.code == 201, made.message
    read = Gizmo.model_validate(made.body)
    assert (read.spec.min_ready, read.spec.inner.depth) == (2, 3)


def test_pydantic_is_not_imported_for_those_who_do_not_use_it() -> None:
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(SOURCE)!r})\n"
        "from ostinato.api.object import CustomResource\n"
        "from ostinato.crd import crd_of\n"
        "class Widget(CustomResource, group='example.dev', version='v1'):\n"
        "    size: int = 1\n"
        "crd_of(Widget)\n"
        "print(*(name for name in ('pydantic', 'aiohttp', 'ostinato.server') if name in sys.modules))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
