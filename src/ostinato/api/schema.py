"""Schemas: what a value may look like, and how lists and maps in it merge.

A `Schema` is read from OpenAPI (the built-in kinds) or from a structural schema (a CRD's `openAPIV3Schema`) and is what
strategic merge patch and server-side apply go by. References are resolved when they are first followed, so that loading
all built-in kinds costs one JSON parse.
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
    """One node: the rules for the value at one place of an object.

    A node is shared by all places that refer to it, and never changes.
    """

    def __init__(self, raw: Mapping[str, Any], definitions: Mapping[str, Any]) -> None:
        self._raw = raw  # this node as written, its reference followed; what stood beside the reference wins
        self._definitions = definitions  # what references point to
        self._fields: dict[str, Schema | None] = {}
        self.derived: dict[str, Any] = {}  # what readers work out from this node and keep, by reader

    @classmethod
    def of(cls, raw: Mapping[str, Any], definitions: Mapping[str, Any] | None = None) -> Schema:
        """Read an OpenAPI schema; `definitions` holds what its `$ref`s name, without "#/definitions/"."""
        return _node(raw, definitions if definitions is not None else {})

    @property
    def raw(self) -> Mapping[str, Any]:
        """The schema as written: for validation, which has its own reading of it."""
        return self._raw

    @cached_property
    def type(self) -> str | None:
        """The JSON type, None where any value may stand. Lists are "array" and maps and structs are "object"."""
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
        """The default, UNSET where there is none (None is a default of its own)."""
        return self._raw.get("default", msgspec.UNSET)

    @cached_property
    def required(self) -> frozenset[str]:
        return frozenset(self._raw.get("required", ()))

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(self._raw.get("properties", ()))

    def field(self, name: str) -> Schema | None:
        """The schema of a field of a struct or of a value of a map; None if the schema knows nothing of it."""
        try:
            return self._fields[name]
        except KeyError:
            raw = self._raw.get("properties", {}).get(name)
            found = self.values if raw is None else _node(raw, self._definitions)
            if raw is not None:  # names of map entries are the user's and without bound: not kept
                self._fields[name] = found
            return found

    @cached_property
    def values(self) -> Schema | None:
        """The schema of every value of a map (`additionalProperties`)."""
        raw = self._raw.get("additionalProperties")
        return _node(raw, self._definitions) if isinstance(raw, Mapping) else None

    @cached_property
    def items(self) -> Schema | None:
        """The schema of every item of a list."""
        raw = self._raw.get("items")
        return _node(raw, self._definitions) if isinstance(raw, Mapping) else None

    # How server-side apply merges: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy

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

    # How strategic merge patch merges: from the struct tags of the Go types.

    @cached_property
    def patch_strategies(self) -> frozenset[str]:
        """Some of "merge", "replace" and "retainKeys"."""
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
    """Definitions whose plain references share one node each."""

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
        """The name of a kind's definition."""
        return self._names.get(gvk)

    @property
    def kinds(self) -> tuple[GroupVersionKind, ...]:
        return tuple(self._names)

    @property
    def definitions(self) -> Mapping[str, Any]:
        """What references name: for schemas that refer to these kinds."""
        return self._definitions


@cache
def builtin_schemas() -> Schemas:
    """The schemas of the built-in kinds of Kubernetes v1.36."""
    from importlib import resources  # noqa: PLC0415 - it takes long to load, and few ask for the schemas

    data = resources.files("ostinato.api").joinpath("data/definitions.json").read_bytes()
    return Schemas(msgspec.json.decode(data))
