"""Definitions of the built-in kinds for OpenAPI v2 and v3, each converted and encoded once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import builtin_schemas
from ostinato.server.publish.openapi import gnostic
from ostinato.server.publish.openapi.client_models import Descriptions
from ostinato.server.publish.openapi.custom import V2, V3
from ostinato.server.publish.openapi.descriptions import described

Json = dict[str, Any]

# IntOrString and Quantity are a string or a number; version 2 cannot express that.
_V3_VALUES: dict[str, Json] = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}


class Definitions:
    """The built-in definitions by name."""

    def __init__(self, descriptions: Descriptions) -> None:
        self._descriptions = descriptions
        self._schemas = builtin_schemas()
        self._raw = self._schemas.definitions
        self._v3: dict[str, msgspec.Raw] = {}
        self._needs: dict[str, frozenset[str]] = {}

    def name_of(self, gvk: GroupVersionKind) -> str:
        """The name of a kind's definition, "" if it has none."""
        return self._schemas.name(gvk) or ""

    @cached_property
    def v2(self) -> dict[str, Json]:
        """All definitions, for version 2."""
        return {name: _v2(self._described(name)) for name in self._raw}

    @cached_property
    def v2_protobuf(self) -> bytes:
        return gnostic.encode_definitions(self.v2)

    def v3(self, names: Iterable[str]) -> dict[str, msgspec.Raw]:
        """The named definitions and all that they refer to, for version 3, encoded."""
        found: set[str] = set()
        ahead = [name for name in names if name in self._raw]
        while ahead:
            name = ahead.pop()
            if name not in found:
                found.add(name)
                ahead.extend(self._needed(name))
        return {name: self._v3_of(name) for name in sorted(found)}

    def _needed(self, name: str) -> frozenset[str]:
        if name not in self._needs:
            self._needs[name] = frozenset(references(self._raw[name], V2))
        return self._needs[name]

    def _described(self, name: str) -> Mapping[str, Any]:
        """The definition with descriptions, as far as there are any."""
        raw, found = described(name, self._raw[name]), self._descriptions.of(name)
        if found.fields and "properties" in raw:
            properties = {
                field: {**node, "description": found.fields[field]} if field in found.fields else node
                for field, node in raw["properties"].items()
            }
            raw = {**raw, "properties": properties}
        return {**raw, "description": found.text} if found.text else raw

    def _v3_of(self, name: str) -> msgspec.Raw:
        if name not in self._v3:
            schema = _V3_VALUES.get(name) or _v3(self._described(name))
            self._v3[name] = msgspec.Raw(msgspec.json.encode(schema))
        return self._v3[name]


def references(node: Any, prefix: str) -> Iterable[str]:
    """The names of all definitions that a schema refers to."""
    if isinstance(node, Mapping):
        ref = node.get("$ref")
        if isinstance(ref, str):
            yield ref.removeprefix(prefix)
        for value in node.values():
            yield from references(value, prefix)
    elif isinstance(node, list):
        for value in node:
            yield from references(value, prefix)


def _v2(raw: Mapping[str, Any]) -> Json:
    return _converted({key: value for key, value in raw.items() if key != "default"}, _v2)


def _v3(raw: Mapping[str, Any]) -> Json:
    schema = _converted(dict(raw), _v3)
    ref = schema.pop("$ref", None)
    if ref is not None:
        target = {"$ref": V3 + ref.removeprefix(V2)}
        if not schema:
            return target
        schema["allOf"] = [target]  # version 3 ignores siblings of a $ref
    return schema


def _converted(schema: Json, convert: Any) -> Json:
    if "properties" in schema:
        schema["properties"] = {name: convert(node) for name, node in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), Mapping):
            schema[key] = convert(schema[key])
    return schema
