"""Reading from one store, or from several of a kind as if they were one.

An informer that follows a few namespaces has a store for each. Which one an object is in follows from its namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.store import Store


class ReadableStore(Protocol):
    """What there is to read; see `Store`."""

    def __len__(self) -> int: ...

    def __contains__(self, key: NamespacedName) -> bool: ...

    def get(self, key: NamespacedName) -> Entry | None: ...

    def keys(self) -> list[NamespacedName]: ...

    def entries(self, namespace: str = "") -> list[Entry]:
        """All, or those of a namespace."""

    def index_keys(self, index: str, value: str) -> list[NamespacedName]:
        """The keys of the objects that have a value in an index; `NoSuchIndex` if there is none."""

    def by_index(self, index: str, value: str) -> list[Entry]:
        """The objects that have a value in an index."""

    def index_values(self, index: str) -> list[str]:
        """All values that any object has in an index."""

    def values_of(self, index: str, key: NamespacedName) -> tuple[str, ...]:
        """The values that an object has in an index."""


def combine(stores: Sequence[Store]) -> ReadableStore:
    return stores[0] if len(stores) == 1 else _CombinedStore(stores)


class _CombinedStore:
    def __init__(self, stores: Sequence[Store]) -> None:
        self._stores = stores

    def __len__(self) -> int:
        return sum(map(len, self._stores))

    def __contains__(self, key: NamespacedName) -> bool:
        return any(key in store for store in self._stores)

    def get(self, key: NamespacedName) -> Entry | None:
        return next((found for store in self._stores if (found := store.get(key)) is not None), None)

    def keys(self) -> list[NamespacedName]:
        return [key for store in self._stores for key in store.keys()]  # noqa: SIM118 - a store is no dict

    def entries(self, namespace: str = "") -> list[Entry]:
        return [entry for store in self._stores for entry in store.entries(namespace)]

    def index_keys(self, index: str, value: str) -> list[NamespacedName]:
        return [key for store in self._stores for key in store.index_keys(index, value)]

    def by_index(self, index: str, value: str) -> list[Entry]:
        return [entry for store in self._stores for entry in store.by_index(index, value)]

    def index_values(self, index: str) -> list[str]:
        return list(dict.fromkeys(value for store in self._stores for value in store.index_values(index)))

    def values_of(self, index: str, key: NamespacedName) -> tuple[str, ...]:
        return next((found for store in self._stores if (found := store.values_of(index, key))), ())
