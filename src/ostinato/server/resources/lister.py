"""Lister: the stored objects of one built-in kind."""

from __future__ import annotations

from collections.abc import Sized
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry
    from ostinato.server.resources.resource import Resource
    from ostinato.server.store.collection import Collection
    from ostinato.server.store.records import Entry


class Lister:
    """Reads the objects of a built-in kind from the store, including writes that are not durable yet."""

    def __init__(self, registry: Registry, group: str, version: str, resource: str) -> None:
        found = registry.get(group, version, resource)
        assert found is not None
        assert found.collection is not None
        self.resource: Resource = found
        self._collection: Collection = found.collection
        self._kept: tuple[Any, list[Json]] = (None, [])

    @property
    def collection(self) -> Collection:
        return self._collection

    def get(self, name: str, namespace: str = "") -> Json | None:
        entry = self._collection.newest(self.resource.key(namespace, name))
        return None if entry is None else msgspec.json.decode(entry.data)

    @property
    def present(self) -> tuple[Sized, Sized]:
        """Collections that are empty while no object of the kind exists, for `Plugin.skip_while_empty`."""
        return self._collection.entries, self._collection.pending

    def entries(self, namespace: str = "") -> list[Entry]:
        prefix = f"{namespace}/" if namespace else ""
        found = {entry.key: entry for entry in self._collection.select(prefix)}
        for key, entry in self._collection.pending.items():
            if key.startswith(prefix):
                if entry is None:
                    found.pop(key, None)
                else:
                    found[key] = entry
        return list(found.values())

    def all(self) -> list[Json]:
        """All objects, decoded once per state of the store; for kinds with few objects. Do not modify them."""
        entries = self.entries()
        state = [entry.version for entry in entries]
        if state != self._kept[0]:
            self._kept = (state, [msgspec.json.decode(entry.data) for entry in entries])
        return self._kept[1]
