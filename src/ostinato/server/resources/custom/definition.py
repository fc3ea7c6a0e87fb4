"""Definitions: a CustomResourceDefinition, read for serving.

A definition has versions, which differ in schema, columns and subresources; all share one collection. An object is
stored with the apiVersion that was the storage version when it was written, first in its bytes, and in memory always as
that version's schema has it today: pruned and with its defaults.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import msgspec

from ostinato.api.text.go_format import plain
from ostinato.api.text.json_path import JsonPath, JsonPathError
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.check import compiled
from ostinato.server.schema.default import apply_defaults
from ostinato.server.schema.prune import prune
from ostinato.server.schema.rule_check import rule_tree
from ostinato.server.schema.structural import Structural


class Version:
    """One version of a definition, its schema read."""

    def __init__(self, group: str, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.name: str = raw["name"]
        self.api_version = f"{group}/{self.name}"
        self.served = bool(raw.get("served"))
        self.schema: Mapping[str, Any] = (raw.get("schema") or {}).get("openAPIV3Schema") or {}
        self.node = Structural(self.schema)
        self.table = compiled(self.schema)
        self.status_table = compiled((self.schema.get("properties") or {}).get("status") or {})
        self.rules = rule_tree(self.schema)
        subresources = raw.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        self.scale: Mapping[str, str] | None = subresources.get("scale")
        self.selectable: dict[str, JsonPath] = {
            field["jsonPath"].removeprefix("."): JsonPath(field["jsonPath"])
            for field in raw.get("selectableFields") or ()
        }


class Definition:
    """A CustomResourceDefinition, read for serving."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        spec = raw["spec"]
        self.terminating = False  # set once it is being deleted
        self.name: str = raw["metadata"]["name"]
        self.uid: str = raw["metadata"]["uid"]
        self.spec: Mapping[str, Any] = spec
        self.names: Mapping[str, Any] = raw["status"]["acceptedNames"]
        self.group: str = spec["group"]
        self.namespaced = spec["scope"] == "Namespaced"
        self.versions = [Version(self.group, version) for version in spec["versions"]]
        self.storage = next(version for version in self.versions if version.raw.get("storage"))
        self._selectable = {name: path for version in self.versions for name, path in version.selectable.items()}

    def serves(self, spec: Mapping[str, Any], names: Mapping[str, Any]) -> bool:
        """Whether this is what a spec with these accepted names says."""
        return (self.spec, self.names) == (spec, names)

    def version(self, api_version: str) -> Version:
        """A version by its apiVersion; what is stored in one that is gone is read as the storage version."""
        return next((version for version in self.versions if version.api_version == api_version), self.storage)

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        """What objects can be selected by, in any version."""
        return {name: _text(path, obj) for name, path in self._selectable.items()} if self._selectable else {}

    def describe(self, data: bytes) -> tuple[dict[str, str], dict[str, str], str]:
        """What selectors ask of stored data."""
        obj = msgspec.json.decode(data)
        meta = obj["metadata"]
        return meta.get("labels") or {}, self.fields(obj), meta.get("uid", "")

    def refreshed(self, data: bytes) -> tuple[bytes, dict[str, str]]:
        """Stored data as today's schema has them, and what they can be selected by."""
        obj = msgspec.json.decode(data)
        node = self.version(obj.get("apiVersion", "")).node
        new = shaped(node, obj)
        apply_defaults(node, new)
        return (data if new == obj else msgspec.json.encode(new)), self.fields(new)


def shaped(node: Structural, obj: Json) -> Json:
    """A stored object cut to a schema. What everything has, it keeps."""
    kept: Json = {name: obj[name] for name in ("kind", "apiVersion", "metadata") if name in obj}
    kept.update(prune(node, {name: value for name, value in obj.items() if name not in kept}))
    return kept


def whole_numbers(value: Any) -> Any:
    """A value whose whole numbers are integers, as Go writes them. The same one if they are already."""
    if type(value) is dict:
        changed: Json | None = None
        for name, item in value.items():
            kind = type(item)
            if kind is dict or kind is list or kind is float:
                new = whole_numbers(item)
                if new is not item:
                    changed = dict(value) if changed is None else changed
                    changed[name] = new
        return value if changed is None else changed
    if type(value) is list:
        items = [whole_numbers(item) for item in value]
        return items if any(map(operator.is_not, items, value)) else value
    if type(value) is float and value.is_integer() and abs(value) < 1e21:
        return int(value)
    return value


def _text(path: JsonPath, obj: Mapping[str, Any]) -> str:
    try:
        found = path.find(obj)
    except JsonPathError:
        return ""
    return plain(found[0]) if found and found[0] is not None else ""
