"""Informers: all the caches of one process, one for each kind and selection.

    informers = Informers(client, settings={Secret: InformerSettings(namespaces=("widgets",), labels="owner=widgets")})
    pods = informers.of(Pod)          # whoever asks for the same gets the same
    informers.start()
    await informers.synced(timeout=60)

- Nothing starts by itself: `start` starts those that have not started, and may be called again after others came.
- What is cached of a kind is said once, in its `InformerSettings`; `of` gives that unless asked for something else.
  Two who share a cache may want other indexes, and get them; they cannot want other parts of the same objects.
- The whole of a kind serves those who need its metadata alone; there is no second store for them.
- `stop` returns when all have ended; then nothing can be started any more.
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
from ostinato.client.views import MetadataOf, View, view_of
from ostinato.world import World

AnyKind = type[Object] | View[Any] | GroupVersionKind


class InformerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What is cached of a kind.

    - `namespaces`: those whose objects are cached; "" is all. Defaults to all.
    - `labels`, `fields`: which objects. Defaults to all.
    - `feed`: indexes, transforms, and how the server is asked. Its metrics default to those of the defaults.
    """

    namespaces: tuple[str, ...] = ("",)
    labels: LabelSelection = None
    fields: FieldSelection = None
    feed: FeedOptions = FeedOptions()

    def for_view(self, view: View[Any]) -> InformerSettings:
        """The same for a kind: one that is in no namespace is followed whatever namespaces are named.

        All namespaces are all, whatever others are named beside them.
        """
        if "" not in self.namespaces and (view.info is None or view.info.namespaced):
            return self
        return msgspec.structs.replace(self, namespaces=("",))


class Sources(Protocol):
    """What gives the collections to follow: a client."""

    @property
    def world(self) -> World: ...

    def list_watch(
        self, kind: AnyKind, *, namespace: str = "", labels: LabelSelection = None, fields: FieldSelection = None
    ) -> ListWatch: ...


class _Scope(msgspec.Struct, frozen=True):
    """What makes two informers the same."""

    gvk: GroupVersionKind
    metadata_only: bool
    namespaces: tuple[str, ...]
    selection: tuple[tuple[str, str], ...]


_DEFAULTS = InformerSettings()


class Informers:
    def __init__(
        self,
        client: Sources,
        *,
        settings: Mapping[AnyKind, InformerSettings] | None = None,
        defaults: InformerSettings = _DEFAULTS,
    ) -> None:
        """
        - `settings`: what is cached of which kind.
        - `defaults`: what is cached of the others. Defaults to all objects.
        """
        self._client = client
        self._world = client.world
        self._settings = {view_of(kind).gvk: each for kind, each in (settings or {}).items()}
        self._defaults = defaults
        self._informers: dict[_Scope, Informer] = {}
        self._of_kind: dict[GroupVersionKind, list[Informer]] = {}
        self._stopped = False

    def of(self, kind: AnyKind, settings: InformerSettings | None = None) -> Informer:
        """The informer of a kind, made if there is none. `settings` are taken in place of the kind's own."""
        view: View[Any] = view_of(kind)
        wanted = self.settings_of(view) if settings is None else settings.for_view(view)
        metadata_only = isinstance(view, MetadataOf)
        scope = _scope(view.gvk, wanted, metadata_only=False)
        if metadata_only and scope not in self._informers:
            scope = _scope(view.gvk, wanted, metadata_only=True)
        informer = self._informers.get(scope)
        if informer is None:
            if self._stopped:
                raise InformerStopped(f"an informer of {view.gvk}, after all have stopped")
            informer = self._informers[scope] = self._made(view, wanted)
            self._of_kind.setdefault(view.gvk, []).append(informer)
        else:
            _share(informer, wanted.feed)
        return informer

    @property
    def watches_all_namespaces(self) -> bool:
        """Whether what is cached, unless said otherwise for a kind, is that of all namespaces."""
        return "" in self._defaults.namespaces

    def settings_of(self, kind: AnyKind) -> InformerSettings:
        """What is cached of a kind, by its own settings or by default."""
        view: View[Any] = view_of(kind)
        return self._settings.get(view.gvk, self._defaults).for_view(view)

    async def info(self, kind: AnyKind) -> KindInfo:
        """What the server calls a kind; `NoSuchKind` if it does not have it."""
        return await self._client.list_watch(kind).info()

    def all(self, gvk: GroupVersionKind | None = None) -> Sequence[Informer]:
        """All, or those of a kind, in the order in which they were made."""
        return list(self._informers.values()) if gvk is None else self._of_kind.get(gvk, [])

    def start(self) -> None:
        """Start those that have not started. After `stop` it does nothing."""
        if not self._stopped:
            for informer in self.all():
                informer.start()

    async def synced(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error says what was waited for
        """Return when the first lists of all that were started are in their stores; `SyncError` if one fails."""
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
        """Stop one and forget it, unless somebody listens to it: what it followed is no longer served."""
        if informer.has_handlers:
            return
        self._informers = {scope: each for scope, each in self._informers.items() if each is not informer}
        self._of_kind[informer.gvk] = [each for each in self._of_kind.get(informer.gvk, ()) if each is not informer]
        await informer.stop()

    async def stop(self) -> None:
        """Stop all of them. Returns when nothing of them runs any more."""
        self._stopped = True
        for informer in self.all():
            await informer.stop()

    async def abort(self) -> None:
        """Stop all of them at once: what handlers are hearing is cut short."""
        self._stopped = True
        for informer in self.all():
            await informer.abort()

    def _made(self, view: View[Any], settings: InformerSettings) -> Informer:
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
        return Informer(sources, self._world, feed, selector=selector, complete=settings.fields is None)


def _share(informer: Informer, wanted: FeedOptions) -> None:
    """Have an informer serve who wants this, too. A ValueError if it holds something else of its objects."""
    options = informer.options
    if (options.transform, options.keep_managed_fields) != (wanted.transform, wanted.keep_managed_fields):
        raise ValueError(
            f"{informer}: cached already with another transform, or other managed fields; say once for all what is "
            "cached of this kind, in the settings of the informers (CacheOptions of a manager)"
        )
    known = {each.name for each in informer.feeds[0].store.indexes}
    for index in wanted.indexes:
        if index.name not in known:
            informer.add_index(index)


def _scope(gvk: GroupVersionKind, settings: InformerSettings, *, metadata_only: bool) -> _Scope:
    selection = tuple(selection_query(settings.labels, settings.fields))
    return _Scope(gvk, metadata_only, tuple(sorted(settings.namespaces)), selection)
