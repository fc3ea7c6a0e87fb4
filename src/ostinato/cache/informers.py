"""Informers: the shared informers of a process, one for each kind and selection.

    settings = {Secret: InformerSettings(namespaces=("widgets",), labels="owner=widgets")}
    informers = Informers(client, settings=settings)
    pods = informers.of(Pod)          # the same informer for every caller
    informers.start()
    await informers.synced(timeout=60)

client-go's SharedInformerFactory:

- `start` starts all informers that have not started, and may be called again after others were added.
- `InformerSettings` declare once what is cached of a kind; `of` uses them unless it is given others. Callers that share
  an informer may add indexes, but must agree on the transform. One that needs managedFields has an informer of its own.
- An informer of whole objects also serves metadata-only reads; there is no second store.
- When `stop` returns, all informers have ended, and no other can be created.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo, Object
from ostinato.cache.informer import Informer, InformerStopped
from ostinato.cache.lister import selector_of
from ostinato.cache.reflector.feed import FeedOptions
from ostinato.cache.sync_tracker import SyncError
from ostinato.client.list_watch import ListWatch
from ostinato.client.options import FieldSelection, LabelSelection, selection_query
from ostinato.client.unreadable import UnreadableObjects
from ostinato.client.views import MetadataOf, View, view_of
from ostinato.world import World

AnyKind = type[Object] | View[Any] | GroupVersionKind


class InformerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is cached of a kind.

    - `namespaces`: the namespaces to watch; "" is all. Defaults to all.
    - `labels`, `fields`: selectors. Default to all objects.
    - `feed`: indexes, transform, and how to list and watch. Its metrics default to those of the default settings.
    """

    namespaces: tuple[str, ...] = ("",)
    labels: LabelSelection = None
    fields: FieldSelection = None
    feed: FeedOptions = FeedOptions()

    def for_view(self, view: View[Any]) -> InformerSettings:
        """Return the settings for a kind: all namespaces if it is cluster-scoped, or if "" is one of them."""
        if "" not in self.namespaces and (view.info is None or view.info.namespaced):
            return self
        return msgspec.structs.replace(self, namespaces=("",))


class Sources(Protocol):
    """The part of a client that informers need."""

    @property
    def world(self) -> World: ...

    def list_watch(
        self, kind: AnyKind, *, namespace: str = "", labels: LabelSelection = None, fields: FieldSelection = None
    ) -> ListWatch: ...


class _Scope(msgspec.Struct, frozen=True):
    """The identity of an informer."""

    gvk: GroupVersionKind
    metadata_only: bool
    namespaces: tuple[str, ...]
    selection: tuple[tuple[str, str], ...]
    keep_managed_fields: bool


_DEFAULTS = InformerSettings()


class Informers:
    def __init__(
        self,
        client: Sources,
        *,
        settings: Mapping[AnyKind, InformerSettings] | None = None,
        defaults: InformerSettings = _DEFAULTS,
        unreadable: UnreadableObjects | None = None,
    ) -> None:
        """
        - `settings`: what to cache, by kind.
        - `defaults`: what to cache of other kinds. Defaults to all objects.
        - `unreadable`: reports objects that listers skip. Defaults to one of its own.
        """
        self._unreadable = unreadable or UnreadableObjects()
        self._client = client
        self._world = client.world
        self._settings = {view_of(kind).gvk: each for kind, each in (settings or {}).items()}
        self._defaults = defaults
        self._informers: dict[_Scope, Informer] = {}
        self._of_kind: dict[GroupVersionKind, list[Informer]] = {}
        self._stopped = False

    def of(self, kind: AnyKind, settings: InformerSettings | None = None) -> Informer:
        """Return the informer of a kind, created on first use. `settings` replace those of the kind."""
        view: View[Any] = view_of(kind)
        wanted = self.settings_of(view) if settings is None else settings.for_view(view)
        metadata_only = isinstance(view, MetadataOf)
        scope = _scope(view.gvk, wanted, metadata_only=False)
        if metadata_only and scope not in self._informers:
            scope = _scope(view.gvk, wanted, metadata_only=True)
        informer = self._informers.get(scope)
        if informer is None:
            if self._stopped:
                raise InformerStopped(f"of() the informers have stopped; cannot create one of {view.gvk}")
            informer = self._informers[scope] = self._create(view, wanted)
            self._of_kind.setdefault(view.gvk, []).append(informer)
        else:
            _share(informer, wanted.feed)
        return informer

    @property
    def watches_all_namespaces(self) -> bool:
        """Whether the default settings include all namespaces."""
        return "" in self._defaults.namespaces

    def settings_of(self, kind: AnyKind) -> InformerSettings:
        """Return the settings of a kind, or the defaults."""
        view: View[Any] = view_of(kind)
        return self._settings.get(view.gvk, self._defaults).for_view(view)

    async def info(self, kind: AnyKind) -> KindInfo:
        """Return the kind as the server serves it; raises `NoSuchKind` if it does not."""
        return await self._client.list_watch(kind).info()

    def all(self, gvk: GroupVersionKind | None = None) -> Sequence[Informer]:
        """Return all informers, or those of a kind, in the order of creation."""
        return list(self._informers.values()) if gvk is None else self._of_kind.get(gvk, [])

    def start(self) -> None:
        """Start all informers that have not started. No effect after `stop`."""
        if not self._stopped:
            for informer in self.all():
                informer.start()

    async def synced(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error names the cause
        """Wait until all started informers have synced; raises `SyncError` if one fails."""
        started = [each for each in self.all() if each.has_started]
        try:
            async with asyncio.TaskGroup() as group:
                for informer in started:
                    group.create_task(informer.synced(timeout))
        except ExceptionGroup as failed:
            error = failed.exceptions[0]
            if not isinstance(error, SyncError):
                raise
            others = sorted(str(each) for each in started if not each.has_synced and str(each) not in str(error))
            waiting = f"; also waiting for {', '.join(others)}" if others else ""
            raise SyncError(f"{error}{waiting}", error.cause) from None

    async def release(self, informer: Informer) -> None:
        """Stop and remove an informer without handlers: its kind is no longer served."""
        if informer.has_handlers:
            return
        self._informers = {scope: each for scope, each in self._informers.items() if each is not informer}
        self._of_kind[informer.gvk] = [each for each in self._of_kind.get(informer.gvk, ()) if each is not informer]
        await informer.stop()

    async def stop(self) -> None:
        """Stop all informers, and wait until they have ended."""
        self._stopped = True
        for informer in self.all():
            await informer.stop()

    async def abort(self) -> None:
        """Stop all informers immediately, and cancel running handlers."""
        self._stopped = True
        for informer in self.all():
            await informer.abort()

    def _create(self, view: View[Any], settings: InformerSettings) -> Informer:
        feed = msgspec.structs.replace(
            settings.feed,
            metadata_only=isinstance(view, MetadataOf),
            metrics=settings.feed.metrics or self._defaults.feed.metrics,
        )
        sources = [
            self._client.list_watch(view, namespace=namespace, labels=settings.labels, fields=settings.fields)
            for namespace in settings.namespaces
        ]
        selector = None if settings.labels is None else selector_of(settings.labels)
        return Informer(
            sources,
            self._world,
            feed,
            selector=selector,
            complete=settings.fields is None,
            unreadable=self._unreadable,
        )


def _share(informer: Informer, wanted: FeedOptions) -> None:
    """Add the indexes that another caller needs. Raises ValueError if it needs another transform."""
    if informer.options.transform != wanted.transform:
        raise ValueError(
            f"of() {informer} has another transform already; set it once, in the settings of the informers "
            "(CacheOptions of a manager)"
        )
    known = {each.name for each in informer.feeds[0].store.indexes}
    for index in wanted.indexes:
        if index.name not in known:
            informer.add_index(index)


def _scope(gvk: GroupVersionKind, settings: InformerSettings, *, metadata_only: bool) -> _Scope:
    selection = tuple(selection_query(settings.labels, settings.fields))
    namespaces = tuple(sorted(settings.namespaces))
    return _Scope(gvk, metadata_only, namespaces, selection, settings.feed.keep_managed_fields)
