"""Structural schemas: `openAPIV3Schema` parsed into nodes.

A node has what pruning, defaulting and list validation need: properties, which of them have defaults or embedded
resources below, list types and keys. Schema validation and CEL rules use the raw schema, which the node keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

TYPE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})  # fields of every object, whatever its schema


class Structural:
    """One immutable node."""

    __slots__ = (
        "additional",
        "default",
        "defaults",
        "defaults_below",
        "embedded",
        "has_additional",
        "has_defaults",
        "has_embedded",
        "items",
        "keys",
        "list_type",
        "nullable",
        "preserve",
        "properties",
        "raw",
        "unique_below",
    )

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.properties: dict[str, Structural] = {
            name: Structural(below) for name, below in (raw.get("properties") or {}).items()
        }
        additional = raw.get("additionalProperties")
        self.has_additional = additional is not None  # fields that are not properties are allowed
        self.additional: Structural | None = Structural(additional) if isinstance(additional, dict) else None
        items = raw.get("items")
        self.items: Structural | None = Structural(items) if isinstance(items, dict) else None
        self.preserve = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        self.nullable = bool(raw.get("nullable"))
        self.default: Any = raw.get("default")  # None: no default
        self.list_type: str = raw.get("x-kubernetes-list-type") or "atomic"
        self.keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys") or ())
        below = [*self.properties.values(), *(node for node in (self.additional, self.items) if node is not None)]
        self.defaults: list[tuple[str, Any, bool]] = [
            (name, node.default, node.nullable) for name, node in self.properties.items() if node.default is not None
        ]
        self.has_defaults: bool = self.default is not None or any(node.has_defaults for node in below)
        self.defaults_below: list[tuple[str, Structural]] = [
            (name, node) for name, node in self.properties.items() if node.has_inner_defaults
        ]
        self.has_embedded: bool = self.embedded or any(node.has_embedded for node in below)
        self.unique_below: bool = self.list_type != "atomic" or any(node.unique_below for node in below)

    @property
    def has_inner_defaults(self) -> bool:
        """Whether a node below has a default. The node's own default is applied by its parent."""
        below = (*self.properties.values(), self.additional, self.items)
        return any(node is not None and node.has_defaults for node in below)

    def child(self, name: str) -> Structural | None:
        """The node of a field; None if it has no schema."""
        return self.properties.get(name) or self.additional
