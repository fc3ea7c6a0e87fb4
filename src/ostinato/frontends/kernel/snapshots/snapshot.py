"""Snapshot: a live view of the objects of a selection, each with the result of a filter.

    snapshot = Snapshot(Selection(kind=POD, labels="app=web"), JqFilter(".metadata.labels"), on_change=changed)
    await snapshot.start(dependencies.informers)
    for item in snapshot.items(): ...

- The objects come from the shared informers. A selection by names has an informer for each name.
- `namespace_labels`: the namespaces follow: an informer for each namespace that matches, while it does. Objects of a
  namespace that begins or ceases to match appear and disappear without a change being reported.
- `on_change(type, item)` reports "Added", "Modified" and "Deleted" after the start. An object whose filter result, or
  without a filter its resourceVersion, is the same as before is not reported.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.api.object import KindInfo
from ostinato.api.wire.json import decode_json
from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.informer import Informer, Registration
from ostinato.cache.informers import Informers, InformerSettings
from ostinato.cache.lister import selector_of
from ostinato.cache.reflector.feed import FeedOptions
from ostinato.cache.store.entry import Entry
from ostinato.client.options import FieldSelection, LabelSelection
from ostinato.client.views import Kind, MetadataOf, view_of
from ostinato.frontends.kernel.snapshots.filters import Filter, FilterError

T = TypeVar("T")

ChangeType = Literal["Added", "Modified", "Deleted"]

NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
_logger = logging.getLogger("ostinato.frontends")


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `namespaces`: "" is all. Defaults to all; () with `namespace_labels` is those that match only.
    - `names`: of the objects. Defaults to all.
    - `labels`, `fields`: selectors, as the server evaluates them. Default to all objects.
    - `namespace_labels`: a selector of namespaces, in addition to `namespaces`. Defaults to none.
    - `managed_fields`: include metadata.managedFields; needs a cache of its own. Defaults to False.
    - `resync`: seconds after which the filter is applied to all objects again. Defaults to 0, never.
    """

    kind: GroupVersionKind
    namespaces: tuple[str, ...] = ("",)
    names: tuple[str, ...] = ()
    labels: LabelSelection = None
    fields: str = ""
    namespace_labels: LabelSelection = None
    managed_fields: bool = False
    resync: float = 0.0


class Item(NamedTuple):
    """An object of a snapshot.

    - `entry`: None if the snapshot does not keep objects.
    - `result`: JSON of the filter's result; None without a filter.
    - `version`: the resourceVersion of the object.
    - `data`: the JSON of the object, of an item without an entry that is not from a cache. Defaults to None.
    """

    key: NamespacedName
    entry: Entry | None
    result: bytes | None
    version: str
    labels: Mapping[str, str]
    data: bytes | None = None

    @property
    def json(self) -> bytes | None:
        """The object as JSON, with apiVersion and kind; None if it is not kept."""
        return self.data if self.entry is None else object_json(self.entry)

    def object(self) -> dict[str, Any] | None:
        data = self.json
        return None if data is None else decode_json(data)

    def read(self, kind: Kind[T]) -> T | None:
        """Decode the object as a class or a view; None if it is not kept."""
        if self.entry is not None:
            return self.entry.read(kind)
        view = view_of(kind)
        return (
            None
            if self.data is None
            else view.read(self.data, view.info or KindInfo(view.gvk, "", "", namespaced=True))
        )

    def value(self) -> Any:
        """The result of the filter; None without one."""
        return None if self.result is None else msgspec.json.decode(self.result)


OnChange = Callable[[ChangeType, Item], object]


class Snapshot:
    def __init__(
        self,
        selection: Selection,
        reduce: Filter | None = None,
        *,
        keep_objects: bool = True,
        on_change: OnChange | None = None,
    ) -> None:
        """`keep_objects`: False keeps the results of the filter only. Defaults to True."""
        self._selection = selection
        self._filter = reduce
        self._keep = keep_objects
        self._on_change = on_change
        self._items: dict[NamespacedName, Item] = {}
        self._followed: dict[str, list[tuple[Informer, Registration]]] = {}  # by namespace
        self._namespaces: tuple[Informer, Registration] | None = None
        self._informers: Informers | None = None
        self._live = False
        self._failure: FilterError | None = None

    def __len__(self) -> int:
        return len(self._items)

    def items(self) -> list[Item]:
        """Return all objects, sorted by namespace and name."""
        return [self._items[key] for key in sorted(self._items, key=lambda key: (key.namespace, key.name))]

    def is_behind(self, change: ChangeType, item: Item) -> bool:
        """Whether a change that another snapshot of the kind has reported is still to arrive here."""
        known = self._items.get(item.key)
        if change == "Deleted":
            return known is not None and not _is_newer(known.version, item.version)
        if known is None:
            return self._selects(item)
        return _is_newer(item.version, known.version)

    def _selects(self, item: Item) -> bool:
        """Whether the selection certainly contains an object; a field selector cannot be evaluated here."""
        chosen = self._selection
        return (
            not chosen.fields
            and (not chosen.names or item.key.name in chosen.names)
            and not {"", item.key.namespace}.isdisjoint(self._followed)
            and (chosen.labels is None or selector_of(chosen.labels).matches(item.labels))
        )

    async def start(self, informers: Informers) -> None:
        """Follow the selection, and wait until the current objects are there.

        Raises `SyncError` if they cannot be read, FilterError if the filter cannot be applied to one.
        """
        self._informers = informers
        chosen = self._selection
        for namespace in chosen.namespaces:
            self._follow(namespace)
        if chosen.namespace_labels is not None:
            settings = InformerSettings(labels=chosen.namespace_labels)
            informer = informers.of(MetadataOf(NAMESPACE), settings)
            informer.start()
            registration = informer.add_handler(self._namespace_changed, name="namespaces of a snapshot")
            self._namespaces = informer, registration
            await registration.synced()
        for followed in list(self._followed.values()):
            for _, registration in followed:
                await registration.synced()
        if self._failure is not None:
            raise self._failure
        self._live = True

    async def stop(self) -> None:
        """Stop following; informers that no one else uses are released."""
        self._live = False
        for namespace in list(self._followed):
            await self._unfollow(namespace)
        if self._namespaces is not None:
            await self._release(*self._namespaces)
            self._namespaces = None

    def _follow(self, namespace: str) -> None:
        assert self._informers is not None, "start() sets it"
        chosen = self._selection
        fields: list[FieldSelection] = [_with_name(chosen.fields, name) for name in chosen.names] or [
            chosen.fields or None
        ]
        found = self._followed.setdefault(namespace, [])
        for each in fields:
            settings = InformerSettings(
                namespaces=(namespace,),
                labels=chosen.labels,
                fields=each,
                feed=FeedOptions(keep_managed_fields=chosen.managed_fields),
            )
            informer = self._informers.of(chosen.kind, settings)
            informer.start()
            found.append((informer, informer.add_handler(self._changed, resync=chosen.resync, name="snapshot")))

    async def _unfollow(self, namespace: str) -> None:
        for informer, registration in self._followed.pop(namespace, ()):
            await self._release(informer, registration)
        for key in [key for key in self._items if namespace in ("", key.namespace)]:
            del self._items[key]

    async def _release(self, informer: Informer, registration: Registration) -> None:
        registration.remove()
        assert self._informers is not None, "start() sets it"
        await self._informers.release(informer)

    async def _namespace_changed(self, event: Event) -> None:
        name = event.key.name
        if name in self._selection.namespaces:
            return
        match event:
            case Deleted():
                await self._unfollow(name)
            case _ if name not in self._followed:
                self._follow(name)

    def _changed(self, event: Event) -> None:
        entry, known = event.object, self._items.get(event.key)
        try:
            item = self._item(entry)
        except FilterError as error:
            if not self._live:
                self._failure = self._failure or FilterError(f"{entry.key}: {error}")
            _logger.error("filter failed; change not reported object=%s error=%s", entry.key, error)
            return
        match event:
            case Deleted():
                self._items.pop(event.key, None)
                self._report("Deleted", item)
            case Added(initial=True):
                self._items[event.key] = item
            case Added() | Updated():
                self._items[event.key] = item
                if known is None or not self._is_same(known, item):
                    self._report("Added" if isinstance(event, Added) else "Modified", item)

    def _report(self, change: ChangeType, item: Item) -> None:
        if self._live and self._on_change is not None:
            self._on_change(change, item)

    def _is_same(self, one: Item, other: Item) -> bool:
        return one.version == other.version if self._filter is None else one.result == other.result

    def _item(self, entry: Entry) -> Item:
        result = None if self._filter is None else self._filter.apply(object_json(entry))
        return Item(entry.key, entry if self._keep else None, result, entry.resource_version, entry.labels)


def object_json(entry: Entry) -> bytes:
    """Return an object as JSON with apiVersion and kind, which items of lists may lack."""
    data = entry.data
    if b'"kind":' in entry.prefix and b'"apiVersion":' in entry.prefix:
        return data
    gvk = entry.collection.info.gvk
    head = msgspec.json.encode({"apiVersion": gvk.api_version, "kind": gvk.kind})
    return head[:-1] + b"," + data.lstrip()[1:]


def _is_newer(one: str, other: str) -> bool:
    return one.isdigit() and other.isdigit() and int(one) > int(other)


def _with_name(fields: str, name: str) -> str:
    return f"{fields},metadata.name={name}" if fields else f"metadata.name={name}"
