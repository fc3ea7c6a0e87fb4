"""Collection: the objects of one kind, their history, and the hub of their watchers."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import TYPE_CHECKING

from ostinato.server.store.hub import Hub
from ostinato.server.store.records import Complete, Describe, Entry, Event

if TYPE_CHECKING:
    from ostinato.api.gvk import GroupVersionKind

MAX_SELECTED = 4  # cached selections


class Selected(list[Entry]):
    """Objects of a collection in their current state. Do not modify it: it is shared until one of them changes."""

    __slots__ = ("__weakref__",)


class Collection:
    """The objects of one kind."""

    def __init__(
        self, name: str, describe: Describe, complete: Complete | None = None, kind: GroupVersionKind | None = None
    ) -> None:
        self.name = name
        self.describe = describe
        self.complete = complete
        self.kind = kind  # of a custom resource, in its storage version
        self.entries: dict[str, Entry] = {}
        self.keys: list[str] = []  # sorted keys of `entries`
        self.history: deque[Event] = deque()  # recent writes, oldest first
        self.pending: dict[str, Entry | None] = {}  # written but not durable yet; None: deleted
        self._pending_versions: dict[str, int] = {}  # resourceVersion of the newest pending write of each key
        self._selected: dict[str, Selected] = {}  # cached results of `select`, by prefix
        self.hub = Hub()

    def newest(self, key: str) -> Entry | None:
        """The newest state, durable or not: writes are based on it."""
        if key in self.pending:
            return self.pending[key]
        return self.entries.get(key)

    def select(self, prefix: str = "", after: str = "") -> Selected:
        """The current objects whose key starts with the prefix, after the key `after` (exclusive), in order."""
        if not after and (known := self._selected.get(prefix)) is not None:
            return known
        keys = self.keys
        start = bisect_right(keys, after) if after > prefix else bisect_left(keys, prefix)
        end = bisect_left(keys, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else len(keys)
        found = Selected(map(self.entries.__getitem__, keys[start:end]))
        if not after:
            if len(self._selected) >= MAX_SELECTED:
                del self._selected[next(iter(self._selected))]
            self._selected[prefix] = found
        return found

    def select_at(self, version: int, prefix: str = "", after: str = "") -> list[Entry]:
        """Like `select`, at an older resourceVersion."""
        undone: dict[str, Entry | None] = {}
        for event in reversed(self.history):
            if event.version <= version:
                break
            undone[event.key] = event.previous
        if not undone:
            return self.select(prefix, after)
        then = {entry.key: entry for entry in self.select(prefix, after) if entry.key not in undone}
        then |= {key: e for key, e in undone.items() if e is not None and key.startswith(prefix) and key > after}
        return [then[key] for key in sorted(then)]

    def since(self, version: int) -> list[Event]:
        """The events after a resourceVersion, oldest first."""
        found: list[Event] = []
        for event in reversed(self.history):
            if event.version <= version:
                break
            found.append(event)
        found.reverse()
        return found

    def add_pending(self, event: Event) -> None:
        """Base further writes on an event that is not durable yet."""
        self.pending[event.key] = event.entry
        self._pending_versions[event.key] = event.version

    def remove_pending(self, event: Event) -> None:
        """Remove an event that is durable or has failed. Later writes of its key may still be pending."""
        key = event.key
        if self._pending_versions.get(key) == event.version:
            del self.pending[key], self._pending_versions[key]

    def apply(self, event: Event) -> None:
        """Make a durable event visible to readers."""
        key, entry = event.key, event.entry
        if self._selected:
            for prefix in [prefix for prefix in self._selected if key.startswith(prefix)]:
                del self._selected[prefix]
        if entry is None:
            del self.entries[key]
            del self.keys[bisect_left(self.keys, key)]
        else:
            if event.previous is None:
                insort(self.keys, key)
            self.entries[key] = entry
        self.remove_pending(event)
        self.history.append(event)
