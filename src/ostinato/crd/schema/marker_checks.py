"""Marker checks: markers without an effect, and schemas that a server rejects or interprets differently.

Without these checks they would be ignored silently, rejected by the server, or make it reject every object later.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.markers import (
    ClientDefault,
    Column,
    DefinitionMeta,
    Deprecated,
    Foreign,
    Ge,
    Gt,
    Inexact,
    Le,
    Lt,
    Marker,
    MultipleOf,
    NoStatus,
    Scale,
    Schemaless,
    SchemaType,
    Selectable,
    Stored,
    Unserved,
)
from ostinato.api.markers.constraints import MembersMarker
from ostinato.crd.schema.defaults import is_of_type
from ostinato.crd.schema.patterns import pattern_problem
from ostinato.crd.schema.place import Place

Json = dict[str, Any]

_ON_KINDS: Final = (DefinitionMeta, Deprecated, Foreign, NoStatus, Scale, Stored, Unserved)
_ON_FIELDS: Final = (ClientDefault, Inexact, Schemaless, SchemaType)


def check_marker(marker: Marker, json_type: str, at: Place) -> None:
    """Raise SchemaError for a marker that has no effect at this place."""
    if at.field and isinstance(marker, (MembersMarker, *_ON_KINDS)):
        raise at.error(f"{marker!r} applies to a class: write @marked({marker!r}) above it")
    if not at.field and isinstance(marker, _ON_FIELDS):
        raise at.error(f"{marker!r} applies to a field: write Annotated[..., {marker!r}] where the class is used")
    if not at.field and at.path != "" and isinstance(marker, (Column, Selectable, *_ON_KINDS)):
        raise at.error(f"{marker!r} applies to a kind, not to a part of one: put it on the class of the kind")
    if isinstance(marker, Ge | Gt | Le | Lt | MultipleOf) and marker.number % 1:
        if json_type == "integer":
            raise at.error(f"{marker!r}: servers would reject every integer: use an integer")
        if isinstance(marker, MultipleOf):
            raise at.error(f"{marker!r}: servers would reject 1, 2, …: use an integer in a smaller unit")


def check_members(marker: MembersMarker, wire: list[str], schema: Json, at: Place) -> None:
    """Raise SchemaError if a member of a one-of marker is always set."""
    for name in wire:
        if name in schema.get("required", ()) or "default" in schema["properties"][name]:
            why = "it is required" if name in schema.get("required", ()) else "the server fills in its default"
            raise at.error(f"{marker!r}: {name} is always set, as {why}: make it ... | None = None")


def check_keywords(schema: Json, json_type: str, at: Place) -> None:
    """Raise SchemaError for keywords that a server would reject."""
    if "x-kubernetes-validations" in schema and json_type == "any" and "type" not in schema:
        rule = schema["x-kubernetes-validations"][0]["rule"]
        raise at.error(f"{rule}: rules need a type: use dict[str, Any], or a more specific one")
    if "pattern" in schema and (problem := pattern_problem(schema["pattern"])):
        raise at.error(f"the pattern {schema['pattern']} is not in RE2's syntax: {problem}")
    if "enum" in schema and not all(is_of_type(schema, value) for value in schema["enum"]):
        raise at.error(f"the values {schema['enum']!r} are not of the type {json_type}")
    for least, most in (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")):
        if schema.get(least, 0) > schema.get(most, schema.get(least, 0)):
            raise at.error(f"no value is valid: {least} is {schema[least]}, {most} is {schema[most]}")
