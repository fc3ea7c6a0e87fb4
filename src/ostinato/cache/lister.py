"""Lister: typed reads from a store.

    pods = informer.lister(Pod)
    pods.get("web-0", "default")
    pods.list(namespace="default", labels="app=web")
    pods.by_index("spec.nodeName", "node-1")

Every read decodes a new object, which the caller may change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupResource, NamespacedName
from ostinato.api.object import plural_of
from ostinato.api.selectors import labels as label_selectors
from ostinato.cache.readable_store import ReadableStore
from ostinato.cache.store.entry import Entry
from ostinato.client.arguments import key_from
from ostinato.client.discovery.paths import Key
from ostinato.client.options import LabelSelection, selection_query
from ostinato.client.views import Kind, view_of

T = TypeVar("T")


class Lister(Generic[T]):
    def __init__(self, store: ReadableStore, kind: Kind[T]) -> None:
        self._store = store
        self._view = view_of(kind)

    def get(self, name: Key, namespace: str = "") -> T:
        """Return an object; raises NotFound, with the server's message, if it does not exist."""
        found = self.find(name, namespace)
        if found is None:
            raise NotFound.of(self._resource(), key_of(name, namespace).name)
        return found

    def find(self, name: Key, namespace: str = "") -> T | None:
        """Return an object, or None."""
        entry = self._store.get(key_of(name, namespace))
        return None if entry is None else entry.read(self._view)

    def list(self, namespace: str = "", labels: LabelSelection = None) -> list[T]:
        """Return all objects, or those of a namespace, or those that match a label selector."""
        return self._read(selected(self._store, namespace, selector_of(labels)))

    def by_index(self, index: str, value: str) -> list[T]:  # type: ignore[valid-type]  # the method above, to mypy
        """Return the objects with a value in an index; raises `NoSuchIndex` if there is no such index."""
        return self._read(self._store.by_index(index, value))

    def _read(self, entries: Iterable[Entry]) -> list[T]:  # type: ignore[valid-type]
        return [entry.read(self._view) for entry in entries]

    def _resource(self) -> GroupResource:
        info, gvk = self._view.info, self._view.gvk
        return info.gvr.group_resource if info is not None else GroupResource(gvk.group, plural_of(gvk.kind))


def key_of(name: Key, namespace: str = "") -> NamespacedName:
    """Return the key of a name in a namespace, or of an object or request that has both."""
    if isinstance(name, NamespacedName):
        return name
    return NamespacedName(namespace, name) if isinstance(name, str) else key_from(None, name)


def selected(store: ReadableStore, namespace: str, selector: label_selectors.Selector) -> list[Entry]:
    """Return the objects of a namespace, or of all (""), that match. An empty selector decodes no labels."""
    if selector.selects_nothing:
        return []
    entries = store.entries(namespace)
    return entries if selector.empty else [entry for entry in entries if selector.matches(entry.labels)]


def selector_of(labels: LabelSelection) -> label_selectors.Selector:
    """Parse a label selection: a string, a mapping, or a selector in one of its forms."""
    if isinstance(labels, label_selectors.Selector):
        return labels
    query = selection_query(labels, None)
    return label_selectors.parse(query[0][1]) if query else label_selectors.everything()
