"""Dataclasses and pydantic models: the same schemas as structs."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from tests.unit.server.asking import Api, asking

from ostinato.api.markers import Column, Ge, Inexact, Rule, marked
from ostinato.crd import crd_of, resource, schema_of

pydantic = pytest.importorskip("pydantic")
SOURCE = Path(__file__).parents[3] / "src"


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
