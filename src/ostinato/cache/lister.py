"""Lister: typed reads from a store.

    pods = informer.lister(Pod)
    pods.get("web-0", "default")
    pods.list(namespace="default", labels="app=web")
    pods.by_index("spec.nodeName", "node-1")

- Every read decodes a new object, which the caller may change.
- Lists skip objects that cannot be decoded, and report them; with `strict=True` they raise `ObjectError`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from ostinato.api.codec import ObjectError, WrongKind
from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupResource, NamespacedName
from ostinato.api.object import plural_of
from ostinato.api.selectors import labels as label_selectors
from ostinato.cache.readable_store import ReadableStore
from ostinato.cache.store.entry import Entry
from ostinato.client.arguments import key_from
from ostinato.client.discovery.paths import Key
from ostinato.client.options import LabelSelection, selection_query
from ostinato.client.unreadable import UnreadableObjects
from ostinato.client.views import Kind, MetadataOf, View, view_of

T = TypeVar("T")


class Lister(Generic[T]):
    def __init__(self, store: ReadableStore, kind: Kind[T], unreadable: UnreadableObjects | None = None) -> None:
        """`unreadable`: reports objects that lists skip. Defaults to one of its own."""
        self._store = store
        self._unreadable = unreadable or UnreadableObjects()
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

    def list(self, namespace: str = "", labels: LabelSelection = None, *, strict: bool = False) -> list[T]:
        """Return all objects, or those of a namespace, or those that match a label selector."""
        return self._read(selected(self._store, namespace, selector_of(labels)), strict=strict)

    def by_index(self, index: str, value: str, *, strict: bool = False) -> list[T]:  # type: ignore[valid-type]  # the method above, to mypy
        """Return the objects with a value in an index; raises `NoSuchIndex` if there is no such index."""
        return self._read(self._store.by_index(index, value), strict=strict)

    def _read(self, entries: Iterable[Entry], *, strict: bool) -> list[T]:  # type: ignore[valid-type]
        return [*readable(entries, self._view, None if strict else self._unreadable)]

    def _resource(self) -> GroupResource:
        info, gvk = self._view.info, self._view.gvk
        return info.gvr.group_resource if info is not None else GroupResource(gvk.group, plural_of(gvk.kind))


def readable(entries: Iterable[Entry], view: View[T], unreadable: UnreadableObjects | None) -> Iterator[T]:
    """Decode objects; those that cannot be decoded are skipped and reported. None raises `ObjectError`."""
    for entry in entries:
        try:
            found = entry.read(view)
        except WrongKind:
            raise
        except ObjectError as error:
            if unreadable is None or (entry.collection.metadata_only and not isinstance(view, MetadataOf)):
                raise
            unreadable.report(entry.collection.info.gvk, str(entry.key), entry.resource_version, error)
        else:
            yield found


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
    if selector.empty:
        return entries
    known: dict[bytes, bool] = {}  # by labels: those of many objects are equal
    found = []
    for entry in entries:
        labels = entry.labels_json
        matches = known.get(labels)
        if matches is None:
            matches = known[labels] = selector.matches(entry.labels)
        if matches:
            found.append(entry)
    return found


def selector_of(labels: LabelSelection) -> label_selectors.Selector:
    """Parse a label selection: a string, a mapping, or a selector in one of its forms."""
    if isinstance(labels, label_selectors.Selector):
        return labels
    query = selection_query(labels, None)
    return label_selectors.parse(query[0][1]) if query else label_selectors.everything()
