"""The store: the objects of one collection, with their indexes and the version of their state.

- Reads never wait and never see half of a change: everything is changed in one step of the event loop.
- A whole new state is put together beside the old one, in as many steps as it takes, and then takes its place.
- Objects, keys and values come in the order in which they entered the store. That order is the same in every run of a
  simulation.
- Entries go out as they are; they cannot be changed.
- Objects are packed (`packing`): those of a new state as they come, changed ones when `pack` is called, which is when
  there is nothing else to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.indexes import NAMESPACE, Index, IndexBy, Values, by_namespace
from ostinato.cache.store.packing import Packer


class NoSuchIndex(LookupError):  # noqa: N818 - what is the matter
    """An index that nobody asked to be kept."""


class Contents:
    """Entries by key, and the indexes of them."""

    __slots__ = ("entries", "indexes")

    def __init__(self, definitions: Iterable[IndexBy]) -> None:
        self.entries: dict[NamespacedName, Entry] = {}
        self.indexes: dict[str, Index] = {each.name: Index(each) for each in definitions}

    def put(self, entry: Entry) -> Entry | None:
        """What there was under its key."""
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
    """A new state that is being put together.

    What has not changed is taken over from the old one, so that a list that tells nothing new takes no memory.
    """

    __slots__ = ("_current", "_packer", "_restored", "contents")

    def __init__(self, current: Contents, packer: Packer, *, restored: bool = False) -> None:
        self._restored = restored  # nothing is taken over
        self._current = current
        self._packer = packer
        self.contents = Contents(index.by for index in current.indexes.values())

    def put(self, entry: Entry) -> None:
        key = entry.key
        known = self._current.entries.get(key)
        if known is None or self._restored or not known.same_state(entry):
            self.contents.put(entry)
            self.contents.entries[key] = self._packer.packed(entry, b"" if known is None else known.reference)
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
        """`indexes` are kept besides that by namespace, which always is."""
        self.resource_version = ""  # up to which everything is here; "" before the first list
        self._contents = Contents([by_namespace()])
        self._packer = Packer()
        self._unpacked: dict[NamespacedName, bytes] = {}  # by key of what has changed, the reference that it had
        for definition in indexes:
            self.add_index(definition)

    def add_index(self, definition: IndexBy) -> None:
        """Keep another index, of what is here too. A ValueError if there is one of that name."""
        if definition.name in self._contents.indexes:
            raise ValueError(f"there is an index {definition.name!r} already")
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
        """All, or those of a namespace."""
        return self.by_index(NAMESPACE, namespace) if namespace else list(self._contents.entries.values())

    def index_keys(self, index: str, value: str) -> list[NamespacedName]:
        """The keys of the objects that have a value in an index."""
        return list(self._index(index).keys(value))

    def by_index(self, index: str, value: str) -> list[Entry]:
        """The objects that have a value in an index."""
        entries = self._contents.entries
        return [entries[key] for key in self._index(index).keys(value)]

    def index_values(self, index: str) -> list[str]:
        """All values that any object has in an index."""
        return list(self._index(index).values())

    def values_of(self, index: str, key: NamespacedName) -> tuple[str, ...]:
        """The values that an object has in an index."""
        values: Values = self._index(index).values_of(key)
        return (values,) if isinstance(values, str) else values

    def sharing(self, index: str, key: NamespacedName) -> list[Entry]:
        """The objects that share any value with this one, itself included."""
        found = self._index(index)
        keys = {each: None for value in self.values_of(index, key) for each in found.keys(value)}
        return [self._contents.entries[each] for each in keys]

    def put(self, entry: Entry) -> Entry | None:
        """Take an object in, new or changed: what there was under its key."""
        if entry.resource_version:
            self.resource_version = entry.resource_version
        known = self._contents.put(entry)
        self._unpacked.setdefault(entry.key, b"" if known is None else known.reference)
        return known

    def remove(self, entry: Entry) -> Entry | None:
        """Drop the object that was deleted, `entry` being its last state: what there was under its key."""
        if entry.resource_version:
            self.resource_version = entry.resource_version
        self._unpacked.pop(entry.key, None)
        return self._contents.remove(entry.key)

    def bookmark(self, resource_version: str) -> None:
        """Nothing else has happened up to there."""
        self.resource_version = resource_version

    def replacement(self, *, restored: bool = False) -> Replacement:
        """Begin a new state. `restored`: what is here counts for nothing, not even if its version is the same."""
        return Replacement(self._contents, self._packer, restored=restored)

    def replace(self, replacement: Replacement, resource_version: str) -> dict[NamespacedName, Entry]:
        """Put a new state in the place of the old one, whose entries are given back."""
        before, contents = self._contents, replacement.contents
        for name, index in before.indexes.items():  # those that were added while it was put together
            if name not in contents.indexes:
                contents.add_index(index.by)
        self._contents = contents
        self.resource_version = resource_version
        return before.entries

    @property
    def unpacked(self) -> int:
        """How many `pack` has to pack."""
        return len(self._unpacked)

    def pack(self, most: int) -> None:
        """Pack some of what has changed."""
        entries, unpacked = self._contents.entries, self._unpacked
        for _ in range(min(most, len(unpacked))):
            key, reference = unpacked.popitem()
            entry = entries.get(key)
            if entry is not None:
                entries[key] = self._packer.packed(entry, reference)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries())

    def _index(self, name: str) -> Index:
        index = self._contents.indexes.get(name)
        if index is None:
            known = ", ".join(sorted(self._contents.indexes))
            raise NoSuchIndex(f"there is no index {name!r}; kept are {known}")
        return index
