"""Structural schemas: `openAPIV3Schema` parsed into nodes.

A node says what may stand at one place of an object. What the walks need is at hand: which fields there are, which of
them have defaults or embedded resources below, how lists are told apart. Validation reads the raw schema, which a node
keeps. Rules in CEL (`x-kubernetes-validations`) stay in the raw schema, too, and are not read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

TYPE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})  # what every object has, whatever its schema says


class Structural:
    """One node. It never changes once it is made."""

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
        self.has_additional = additional is not None  # fields that have no name in the schema are allowed
        self.additional: Structural | None = Structural(additional) if isinstance(additional, dict) else None
        items = raw.get("items")
        self.items: Structural | None = Structural(items) if isinstance(items, dict) else None
        self.preserve = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        self.embedded = bool(raw.get("x-kubernetes-embedded-resource"))
        self.nullable = bool(raw.get("nullable"))
        self.default: Any = raw.get("default")  # None: there is none
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
        """Whether something below this node has a default; its own is for whoever holds it to set."""
        below = (*self.properties.values(), self.additional, self.items)
        return any(node is not None and node.has_defaults for node in below)

    def child(self, name: str) -> Structural | None:
        """The node of a field; None if the schema says nothing of it."""
        return self.properties.get(name) or self.additional
