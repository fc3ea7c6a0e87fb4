"""Markers: what a field's type alone cannot say, written beside it with `Annotated`.

    containers: Annotated[list[Container], ListMap("name"), PatchMerge("name")]

`ListAtomic`, `ListSet`, `ListMap`, `MapAtomic` and `MapGranular` say how server-side apply merges the field;
`PatchMerge`, `PatchReplace` and `PatchRetainKeys` say how strategic merge patch does, as the built-in kinds declare it;
`Enum` names the values known today. Markers describe: they never make decoding fail, since a server may be newer than
the class.

A marker knows its OpenAPI form (`schema`), so that schemas are made from classes without a table of markers elsewhere.
"""

from __future__ import annotations

from typing import Any


class Marker:
    """The base of all markers; other metadata in `Annotated` is passed over. Immutable, equal by what it says."""

    __slots__ = ("arguments",)

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments

    @property
    def schema(self) -> dict[str, Any]:
        """What the marker adds to the field's OpenAPI schema."""
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Marker) and self.arguments == other.arguments

    def __hash__(self) -> int:
        return hash((type(self), self.arguments))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.arguments))})"


class ListAtomic(Marker):
    """The list is replaced as a whole, and has one owner. The default, where nothing is declared."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "atomic"}


class ListSet(Marker):
    """The list is a set of scalars; each has its owners."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-list-type": "set"}


class ListMap(Marker):
    """The list is a map by these fields of its items, named as on the wire; each item has its owners."""

    __slots__ = ()

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

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-map-type": "atomic"}


class MapGranular(Marker):
    """Each entry of the map or field of the struct has its owners. The default."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-map-type": "granular"}


class PatchMerge(Marker):
    """A strategic merge patch merges the list: by `key` of its items, or as a set where there is none."""

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
    """A strategic merge patch may clear the fields of a union that it does not name; also of each item of a list."""

    __slots__ = ()

    @property
    def schema(self) -> dict[str, Any]:
        return {"x-kubernetes-patch-strategy": "retainKeys"}


class Enum(Marker):
    """The values that are known. The type stays `str`: a newer server may send others."""

    __slots__ = ()

    @property
    def values(self) -> tuple[str, ...]:
        return self.arguments

    @property
    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.values)}


def combined_schema(markers: tuple[Marker, ...]) -> dict[str, Any]:
    """The OpenAPI form of several markers; strategies of strategic merge patch add up, "merge,retainKeys"."""
    combined: dict[str, Any] = {}
    for marker in markers:
        for name, value in marker.schema.items():
            if name == "x-kubernetes-patch-strategy" and name in combined:
                combined[name] = ",".join(sorted((combined[name], value)))
            else:
                combined[name] = value
    return combined
