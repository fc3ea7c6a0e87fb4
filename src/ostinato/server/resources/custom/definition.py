"""Definition: a CustomResourceDefinition, parsed for serving.

- Its versions differ in schema, columns and subresources; all share one collection.
- An object is stored with the storage version at the time of the write, as the first field of its data. In memory it
  is always pruned and defaulted with that version's current schema.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from ostinato.api.text.go_format import plain
from ostinato.api.text.json_path import JsonPath, JsonPathError
from ostinato.server.resources.strategy import Json
from ostinato.server.schema.rules.evaluation import rule_tree
from ostinato.server.schema.structural.defaulting import apply_defaults
from ostinato.server.schema.structural.node import Structural
from ostinato.server.schema.structural.pruning import prune
from ostinato.server.schema.validation.check import compiled


class Version:
    """One version of a definition, with its parsed schema."""

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


@lru_cache(maxsize=64)
def _version(group: str, raw: bytes) -> Version:
    """Parse a version; servers in one process often have the same definitions."""
    return Version(group, msgspec.json.decode(raw))


class Definition:
    """A CustomResourceDefinition, parsed for serving."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        spec = raw["spec"]
        self.terminating = False  # set when its deletion begins
        self.name: str = raw["metadata"]["name"]
        self.uid: str = raw["metadata"]["uid"]
        self.spec: Mapping[str, Any] = spec
        self.names: Mapping[str, Any] = raw["status"]["acceptedNames"]
        self.group: str = spec["group"]
        self.namespaced = spec["scope"] == "Namespaced"
        self.versions = [_version(self.group, msgspec.json.encode(version)) for version in spec["versions"]]
        self.storage = next(version for version in self.versions if version.raw.get("storage"))
        self._selectable = {name: path for version in self.versions for name, path in version.selectable.items()}

    def serves(self, spec: Mapping[str, Any], names: Mapping[str, Any]) -> bool:
        """Whether this definition has the given spec and accepted names."""
        return (self.spec, self.names) == (spec, names)

    def version(self, api_version: str) -> Version:
        """A version by its apiVersion; the storage version for one that was removed."""
        return next((version for version in self.versions if version.api_version == api_version), self.storage)

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        """The selectable fields of all versions."""
        return {name: _text(path, obj) for name, path in self._selectable.items()} if self._selectable else {}

    def describe(self, data: bytes) -> tuple[dict[str, str], dict[str, str], str]:
        """Read labels, selectable fields and uid from stored data."""
        obj = msgspec.json.decode(data)
        meta = obj["metadata"]
        return meta.get("labels") or {}, self.fields(obj), meta.get("uid", "")

    def complete(self, obj: Json) -> Json:
        """A stored object, pruned and defaulted with the current schema."""
        node = self.version(obj.get("apiVersion", "")).node
        new = shaped(node, obj)
        apply_defaults(node, new)
        return new

    def refreshed(self, data: bytes) -> tuple[bytes, dict[str, str]]:
        """Stored data, pruned and defaulted with the current schema, and its selectable fields."""
        obj = msgspec.json.decode(data)
        new = self.complete(obj)
        return (data if new == obj else msgspec.json.encode(new)), self.fields(new)


def shaped(node: Structural, obj: Json) -> Json:
    """A stored object pruned to a schema; TypeMeta and metadata are kept."""
    kept: Json = {name: obj[name] for name in ("kind", "apiVersion", "metadata") if name in obj}
    kept.update(prune(node, {name: value for name, value in obj.items() if name not in kept}))
    return kept


def whole_numbers(value: Any) -> Any:
    """Replace floats that are whole numbers with integers, as Go encodes them. Returns the same value if unchanged."""
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
