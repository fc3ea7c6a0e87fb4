"""Lister: the stored objects of one built-in kind."""

from __future__ import annotations

from collections.abc import Sized
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.resources.registry import Registry
    from ostinato.server.resources.resource import Resource
    from ostinato.server.store.collection import Collection
    from ostinato.server.store.records import Entry

_MAX_SHARED = 64  # objects


class Lister:
    """Reads the objects of a built-in kind from the store, including writes that are not durable yet."""

    def __init__(self, registry: Registry, group: str, version: str, resource: str) -> None:
        self._registry = registry
        self._name = (group, version, resource)
        self._kept: tuple[Any, list[Json]] = (None, [])
        self._selected: list[Entry] | None = None  # that `_kept` was read from, if nothing was pending
        self._shared: dict[str, tuple[Entry, Json]] = {}  # by key; the entry tells whether it is outdated

    @cached_property
    def resource(self) -> Resource:
        found = self._registry.get(*self._name)
        assert found is not None
        return found

    @cached_property
    def collection(self) -> Collection:
        found = self.resource.collection
        assert found is not None
        return found

    def get(self, name: str, namespace: str = "") -> Json | None:
        entry = self.collection.newest(self.resource.key(namespace, name))
        return None if entry is None else msgspec.json.decode(entry.data)

    def shared(self, name: str, namespace: str = "") -> Json | None:
        """Like `get`, decoded once per state of the object. Do not modify it."""
        key = self.resource.key(namespace, name)
        entry = self.collection.newest(key)
        if entry is None:
            return None
        known = self._shared.get(key)
        if known is not None and known[0] is entry:
            return known[1]
        if known is None and len(self._shared) >= _MAX_SHARED:
            del self._shared[next(iter(self._shared))]
        obj: Json = msgspec.json.decode(entry.data)
        self._shared[key] = entry, obj
        return obj

    @property
    def present(self) -> tuple[Sized, Sized]:
        """Collections that are empty while no object of the kind exists, for `Plugin.skip_while_empty`."""
        return self.collection.entries, self.collection.pending

    def entries(self, namespace: str = "") -> list[Entry]:
        if not self.collection.entries and not self.collection.pending:
            return []
        prefix = f"{namespace}/" if namespace else ""
        found = {entry.key: entry for entry in self.collection.select(prefix)}
        for key, entry in self.collection.pending.items():
            if key.startswith(prefix):
                if entry is None:
                    found.pop(key, None)
                else:
                    found[key] = entry
        return list(found.values())

    def all(self) -> list[Json]:
        """All objects, decoded once per state of the store; for kinds with few objects. Do not modify them."""
        selected = None if self.collection.pending else self.collection.select()
        if selected is not None and selected is self._selected:
            return self._kept[1]
        self._selected = selected
        entries = self.entries()
        state = [entry.version for entry in entries]
        if state != self._kept[0]:
            self._kept = (state, [msgspec.json.decode(entry.data) for entry in entries])
        return self._kept[1]
