"""Schemas: types of values, and merge strategies of lists and maps.

- A `Schema` is a node of an OpenAPI schema (built-in kinds) or of a structural schema (`openAPIV3Schema` of a CRD).
- Strategic merge patch, server-side apply and strict decoding use it; validation is in the server.
- References are resolved lazily: to load all built-in kinds is one JSON parse.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, cached_property
from typing import Any, Literal

import msgspec

from ostinato.api.gvk import GroupVersionKind

ListType = Literal["atomic", "set", "map"]
MapType = Literal["granular", "atomic"]

_REF = "#/definitions/"


class Schema:
    """A node of a schema. Immutable; shared by all references to it."""

    def __init__(self, raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> None:
        self._raw = raw  # with the reference resolved; keywords beside `$ref` take precedence
        self._definitions = definitions  # targets of references
        self._fields: dict[str, Schema | None] = {}
        self.derived: dict[str, Any] = {}  # data that users of schemas cache in this node, by user

    @classmethod
    def of(cls, raw: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> Schema:
        """Return the node of an OpenAPI schema; `definitions` are the targets of `$ref`, without "#/definitions/"."""
        return _node(raw, definitions if definitions is not None else {})

    @property
    def raw(self) -> Mapping[str, Any]:
        """The schema as written, for validation."""
        return self._raw

    @cached_property
    def type(self) -> str | None:
        """The JSON type; None if any value is allowed. Lists are "array", maps and structs "object"."""
        if self.int_or_string:
            return None
        kind: str | None = self._raw.get("type")
        return kind

    @cached_property
    def int_or_string(self) -> bool:
        return bool(self._raw.get("x-kubernetes-int-or-string")) or self._raw.get("format") == "int-or-string"

    @cached_property
    def preserve_unknown(self) -> bool:
        return bool(self._raw.get("x-kubernetes-preserve-unknown-fields"))

    @cached_property
    def embedded_resource(self) -> bool:
        return bool(self._raw.get("x-kubernetes-embedded-resource"))

    @cached_property
    def nullable(self) -> bool:
        return bool(self._raw.get("nullable"))

    @cached_property
    def default(self) -> Any:
        """The default; UNSET if there is none (null is a default)."""
        return self._raw.get("default", msgspec.UNSET)

    @cached_property
    def required(self) -> frozenset[str]:
        return frozenset(self._raw.get("required", ()))

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(self._raw.get("properties", ()))

    def field(self, name: str) -> Schema | None:
        """Return the schema of a field of a struct, or of a value of a map; None if it is not specified."""
        try:
            return self._fields[name]
        except KeyError:
            raw = self._raw.get("properties", {}).get(name)
            found = self.values if raw is None else _node(raw, self._definitions)
            if raw is not None:  # keys of maps are unbounded, so they are not cached
                self._fields[name] = found
            return found

    @cached_property
    def values(self) -> Schema | None:
        """The schema of the values of a map (`additionalProperties`)."""
        raw = self._raw.get("additionalProperties")
        return _node(raw, self._definitions) if isinstance(raw, Mapping) else None

    @cached_property
    def items(self) -> Schema | None:
        """The schema of the items of a list."""
        raw = self._raw.get("items")
        return _node(raw, self._definitions) if isinstance(raw, Mapping) else None

    # Server-side apply: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy

    @cached_property
    def list_type(self) -> ListType:
        kind: ListType = self._raw.get("x-kubernetes-list-type", "atomic")
        return kind

    @cached_property
    def list_map_keys(self) -> tuple[str, ...]:
        return tuple(self._raw.get("x-kubernetes-list-map-keys", ()))

    @cached_property
    def map_type(self) -> MapType:
        kind: MapType = self._raw.get("x-kubernetes-map-type", "granular")
        return kind

    # Strategic merge patch: from the struct tags of the Go types

    @cached_property
    def patch_strategies(self) -> frozenset[str]:
        """A subset of "merge", "replace" and "retainKeys"."""
        text: str = self._raw.get("x-kubernetes-patch-strategy", "")
        return frozenset(text.split(",")) if text else frozenset()

    @cached_property
    def patch_merge_key(self) -> str | None:
        key: str | None = self._raw.get("x-kubernetes-patch-merge-key")
        return key

    def __repr__(self) -> str:
        return f"Schema({self._raw!r})"


def _node(raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    ref = raw.get("$ref")
    if ref is None:
        return Schema(raw, definitions)
    if len(raw) == 1 and isinstance(definitions, _Definitions):
        return definitions.node(ref.removeprefix(_REF))
    target = definitions[ref.removeprefix(_REF)]
    return Schema({**target, **{k: v for k, v in raw.items() if k != "$ref"}}, definitions)


class _Definitions(dict[str, Any]):
    """Definitions with one shared node each."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        super().__init__(raw)
        self._nodes: dict[str, Schema] = {}

    def node(self, name: str) -> Schema:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = Schema(self[name], self)
        return found


class Schemas:
    """The schemas of many kinds, by name and by group, version and kind."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self._definitions = _Definitions(definitions)
        self._names = {
            GroupVersionKind(gvk["group"], gvk["version"], gvk["kind"]): name
            for name, raw in definitions.items()
            for gvk in raw.get("x-kubernetes-group-version-kind", ())
        }

    def by_name(self, name: str) -> Schema:
        return self._definitions.node(name)

    def of(self, gvk: GroupVersionKind) -> Schema | None:
        name = self._names.get(gvk)
        return None if name is None else self._definitions.node(name)

    def name(self, gvk: GroupVersionKind) -> str | None:
        """Return the name of the definition of a kind."""
        return self._names.get(gvk)

    @property
    def kinds(self) -> tuple[GroupVersionKind, ...]:
        return tuple(self._names)

    @property
    def definitions(self) -> Mapping[str, Any]:
        """The targets of references, for schemas that refer to these kinds."""
        return self._definitions


@cache
def builtin_schemas() -> Schemas:
    """Return the schemas of the built-in kinds of Kubernetes v1.36."""
    from importlib import resources  # noqa: PLC0415 - slow to import, and rarely needed

    data = resources.files("ostinato.api").joinpath("data/definitions.json").read_bytes()
    return Schemas(msgspec.json.decode(data))
