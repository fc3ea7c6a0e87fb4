"""Store: the objects of one collection, with their indexes and resourceVersion.

- Reads never wait, and never observe half of a change: every change is one step of the event loop.
- A relist builds a `Replacement` beside the current contents, in any number of steps, and swaps it in.
- Objects, keys and index values are in insertion order, which is deterministic in a simulation.
- Entries are immutable and returned without a copy.
- Objects are packed (`packing`): those of a list as they are added, changed ones by `pack`, called when idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.indexes import NAMESPACE, Index, IndexBy, Values, by_namespace
from ostinato.cache.store.packing import Packer


class NoSuchIndex(LookupError):  # noqa: N818 - named after the condition
    """The store does not have the index."""


class Contents:
    """Entries by key, with their indexes."""

    __slots__ = ("entries", "indexes")

    def __init__(self, definitions: Iterable[IndexBy]) -> None:
        self.entries: dict[NamespacedName, Entry] = {}
        self.indexes: dict[str, Index] = {each.name: Index(each) for each in definitions}

    def put(self, entry: Entry) -> Entry | None:
        """Return the previous entry of the key."""
        entries, key = self.entries, entry.key
        known = entries.get(key)
        entries[key] = entry
        for index in self.indexes.values():
            index.put(entry)
        return known

    def remove(self, key: NamespacedName) -> Entry | None:
        known = self.entries.pop(key, None)
        if known is not None:
            for index in self.indexes.values():
                index.remove(key)
        return known

    def add_index(self, definition: IndexBy) -> None:
        index = Index(definition)
        for entry in self.entries.values():
            index.put(entry)
        self.indexes[definition.name] = index


class Replacement:
    """New contents under construction.

    Unchanged entries are taken over from the current contents, so that a relist without changes takes no memory.
    """

    __slots__ = ("_current", "_packer", "_restored", "contents")

    def __init__(self, current: Contents, packer: Packer, *, restored: bool = False) -> None:
        self._restored = restored  # the server was restored: take nothing over
        self._current = current
        self._packer = packer
        self.contents = Contents(index.by for index in current.indexes.values())

    def put(self, entry: Entry) -> None:
        key = entry.key
        known = self._current.entries.get(key)
        if known is None or self._restored or not known.same_state(entry):
            self.contents.put(entry)
            self.contents.entries[key] = self._packer.pack(entry, b"" if known is None else known.reference)
            return
        self.contents.entries[key] = known
        for name, index in self.contents.indexes.items():
            index.set(key, self._current.indexes[name].values_of(key))

    def remove(self, key: NamespacedName) -> None:
        self.contents.remove(key)

    def __len__(self) -> int:
        return len(self.contents.entries)


class Store:
    def __init__(self, indexes: Iterable[IndexBy] = ()) -> None:
        """`indexes`: in addition to the index by namespace."""
        self.resource_version = ""  # "" before the first list
        self._contents = Contents([by_namespace()])
        self._packer = Packer()
        self._unpacked: dict[NamespacedName, bytes] = {}  # changed keys, with their previous reference
        for definition in indexes:
            self.add_index(definition)

    def add_index(self, definition: IndexBy) -> None:
        """Add an index, and index all entries. Raises ValueError if the name is taken."""
        if definition.name in self._contents.indexes:
            raise ValueError(f"add_index() index {definition.name!r} already exists; use another name")
        self._contents.add_index(definition)

    @property
    def indexes(self) -> tuple[IndexBy, ...]:
        return tuple(index.by for index in self._contents.indexes.values())

    def __len__(self) -> int:
        return len(self._contents.entries)

    def __contains__(self, key: NamespacedName) -> bool:
        return key in self._contents.entries

    def get(self, key: NamespacedName) -> Entry | None:
        return self._contents.entries.get(key)

    def keys(self) -> list[NamespacedName]:
        return list(self._contents.entries)

    def entries(self, namespace: str = "") -> list[Entry]:
        """Return all entries, or those of a namespace."""
        return self.by_index(NAMESPACE, namespace) if namespace else list(self._contents.entries.values())

    def index_keys(self, index: str, value: str) -> list[NamespacedName]:
        """Return the keys of the objects with a value in an index."""
        return list(self._index(index).keys(value))

    def by_index(self, index: str, value: str) -> list[Entry]:
        """Return the objects with a value in an index."""
        entries = self._contents.entries
        return [entries[key] for key in self._index(index).keys(value)]

    def index_values(self, index: str) -> list[str]:
        """Return all values of an index."""
        return list(self._index(index).values())

    def values_of(self, index: str, key: NamespacedName) -> tuple[str, ...]:
        """Return the values of an object in an index."""
        values: Values = self._index(index).values_of(key)
        return (values,) if isinstance(values, str) else values

    def sharing(self, index: str, key: NamespacedName) -> list[Entry]:
        """Return the objects that share a value with this one, itself included."""
        found = self._index(index)
        keys = {each: None for value in self.values_of(index, key) for each in found.keys(value)}
        return [self._contents.entries[each] for each in keys]

    def put(self, entry: Entry) -> Entry | None:
        """Add or update an object; return its previous entry."""
        if entry.resource_version:
            self.resource_version = entry.resource_version
        known = self._contents.put(entry)
        self._unpacked.setdefault(entry.key, b"" if known is None else known.reference)
        return known

    def remove(self, entry: Entry) -> Entry | None:
        """Remove a deleted object, given its final state; return its previous entry."""
        if entry.resource_version:
            self.resource_version = entry.resource_version
        self._unpacked.pop(entry.key, None)
        return self._contents.remove(entry.key)

    def bookmark(self, resource_version: str) -> None:
        """Advance the resourceVersion."""
        self.resource_version = resource_version

    def replacement(self, *, restored: bool = False) -> Replacement:
        """Begin new contents. `restored`: take no entry over, even if its resourceVersion is unchanged."""
        return Replacement(self._contents, self._packer, restored=restored)

    def replace(self, replacement: Replacement, resource_version: str) -> dict[NamespacedName, Entry]:
        """Swap in new contents; return the previous entries."""
        before, contents = self._contents, replacement.contents
        for name, index in before.indexes.items():  # added during construction
            if name not in contents.indexes:
                contents.add_index(index.by)
        self._contents = contents
        self.resource_version = resource_version
        return before.entries

    @property
    def unpacked(self) -> int:
        """The number of changed entries to pack."""
        return len(self._unpacked)

    def pack(self, most: int) -> None:
        """Pack up to `most` changed entries."""
        entries, unpacked = self._contents.entries, self._unpacked
        for _ in range(min(most, len(unpacked))):
            key, reference = unpacked.popitem()
            entry = entries.get(key)
            if entry is not None:
                entries[key] = self._packer.pack(entry, reference)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def _index(self, name: str) -> Index:
        index = self._contents.indexes.get(name)
        if index is None:
            known = ", ".join(sorted(self._contents.indexes))
            raise NoSuchIndex(f"no index {name!r}; existing indexes: {known}")
        return index
