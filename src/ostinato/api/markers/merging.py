"""Merge strategies of lists, maps and structs, for server-side apply and strategic merge patch."""

from __future__ import annotations

from typing import Any

from ostinato.api.markers.marker import Marker


class ListAtomic(Marker):
    """The list is replaced and owned as a whole. The default."""

    __slots__ = ()
    types = frozenset({"array"})

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "atomic"}


class ListSet(Marker):
    """The list is a set of scalars, each with its own managers."""

    __slots__ = ()
    types = frozenset({"array"})

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "set"}


class ListMap(Marker):
    """The list is a map by these fields of its items (JSON names); each item has its own managers."""

    __slots__ = ()
    types = frozenset({"array"})

    def __init__(self, *keys: str) -> None:
        if not keys:
            raise ValueError("ListMap needs the names of the fields that identify an item")
        super().__init__(*keys)

    @property
    def keys(self) -> tuple[str, ...]:
        return self.arguments

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(self.keys)}


class MapAtomic(Marker):
    """The map or struct is replaced as a whole."""

    __slots__ = ()
    types = frozenset({"object"})

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-map-type": "atomic"}


class MapGranular(Marker):
    """Each entry of the map or field of the struct has its own managers. The default."""

    __slots__ = ()
    types = frozenset({"object"})

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-map-type": "granular"}


class PatchMerge(Marker):
    """A strategic merge patch merges the list by the `key` of its items; without a key, as a set."""

    __slots__ = ()

    def __init__(self, key: str = "") -> None:
        super().__init__(*((key,) if key else ()))

    @property
    def key(self) -> str | None:
        return self.arguments[0] if self.arguments else None

    @property
    def schema(self) -> dict[str, Any]:
        merge = {"x-kubernetes-patch-strategy": "merge"}
        return merge if self.key is None else {"x-kubernetes-patch-merge-key": self.key, **merge}


class PatchReplace(Marker):
    """A strategic merge patch replaces the value as a whole."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-patch-strategy": "replace"}


class PatchRetainKeys(Marker):
    """A strategic merge patch may clear the fields of a union, or of each item of a list, that it does not contain."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-patch-strategy": "retainKeys"}
