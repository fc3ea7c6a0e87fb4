"""Read access to one store, or to several of a kind as one.

An informer of several namespaces has a store for each; the namespace of an object determines the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import Entry
from ostinato.cache.store.store import Store


class ReadableStore(Protocol):
    """The reads of a `Store`."""

    @property
    def resource_version(self) -> str:
        """Changes with every change of the contents; to be compared for equality only."""

    def __len__(self) -> int: ...

    def __contains__(self, key: NamespacedName) -> bool: ...

    def get(self, key: NamespacedName) -> Entry | None: ...

    def keys(self) -> list[NamespacedName]: ...

    def entries(self, namespace: str = "") -> list[Entry]:
        """Return all entries, or those of a namespace."""

    def index_keys(self, index: str, value: str) -> list[NamespacedName]:
        """Return the keys of the objects with a value in an index; raises `NoSuchIndex`."""

    def by_index(self, index: str, value: str) -> list[Entry]:
        """Return the objects with a value in an index."""

    def index_values(self, index: str) -> list[str]:
        """Return all values of an index."""

    def values_of(self, index: str, key: NamespacedName) -> tuple[str, ...]:
        """Return the values of an object in an index."""


def combine(stores: Sequence[Store]) -> ReadableStore:
    return stores[0] if len(stores) == 1 else _CombinedStore(stores)


class _CombinedStore:
    def __init__(self, stores: Sequence[Store]) -> None:
        self._stores = stores

    @property
    def resource_version(self) -> str:
        return ",".join(store.resource_version for store in self._stores)

    def __len__(self) -> int:
        return sum(map(len, self._stores))

    def __contains__(self, key: NamespacedName) -> bool:
        return any(key in store for store in self._stores)

    def get(self, key: NamespacedName) -> Entry | None:
        return next((found for store in self._stores if (found := store.get(key)) is not None), None)

    def keys(self) -> list[NamespacedName]:
        return [key for store in self._stores for key in store.keys()]  # noqa: SIM118 - a store is not a dict

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
