"""Kind source: enqueues keys for the events of a kind, from a shared informer.

- The informer is shared with other sources and readers of the same kind, and started if necessary.
- The source is ready when its event handler has processed all initial objects.
- An error of the server (unknown kind, forbidden) is logged and retried, since a CRD may be created later; after the
  sync timeout the source fails with that error. With `optional=True` a kind that does not exist does not delay the
  controller: it is watched when it is created. A source that is added to a running controller has no sync timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from inspect import isawaitable
from math import inf
from typing import Any, Final, TypedDict, TypeVar

import msgspec

from ostinato.api.errors import APIError, NotFound
from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.informer import Informer, Registration
from ostinato.cache.informers import AnyKind, Informers, InformerSettings
from ostinato.cache.sync_tracker import SyncError
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import MetadataOf, Unstructured, View, view_of
from ostinato.controllers.failures.trace import shorten
from ostinato.controllers.guards.remedy import remedy_for
from ostinato.controllers.reasons import Cause, resynced
from ostinato.controllers.sources.handlers import Handler, Keys, keys_of
from ostinato.controllers.sources.predicates import EventFunction, check_predicate
from ostinato.controllers.sources.sources import Sink
from ostinato.queue import LOW_PRIORITY

T = TypeVar("T")

_RETRY_PERIOD: Final = 1.0  # seconds
_RETURNED: Final = "the handler returned"


class KindOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `predicates`: filter the events; all must return true. Defaults to none.
    - `priority`: of the enqueued keys. Defaults to 0, and to `LOW_PRIORITY` for initial objects and resyncs.
    - `resync`: seconds between resyncs. Defaults to 0, no resync.
    - `settings`: what the informer caches. Defaults to the settings of the informers.
    - `metadata_only`: watch PartialObjectMetadata. Defaults to False.
    - `optional`: do not wait for a kind that does not exist. Defaults to False.
    - `informers`: informers of another cluster. Defaults to those of the manager.
    """

    predicates: tuple[EventFunction, ...] = ()
    priority: int | None = None
    resync: float = 0.0
    settings: InformerSettings | None = None
    metadata_only: bool = False
    optional: bool = False
    informers: Informers | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and not isinstance(self.priority, int):
            raise TypeError(f"priority must be an integer such as 0 or LOW_PRIORITY, not {self.priority!r}")


class KindKeywords(TypedDict, total=False):
    """The fields of `KindOptions` other than `predicates` as keyword arguments, so that type checkers know them."""

    priority: int | None
    resync: float
    settings: InformerSettings | None
    metadata_only: bool
    optional: bool
    informers: Informers | None


_DEFAULTS = KindOptions()


class KindSource:
    def __init__(self, kind: AnyKind, handler: Handler, options: KindOptions = _DEFAULTS) -> None:
        for each in options.predicates:
            check_predicate(each)
        view: View[Any] = view_of(kind)
        if not isinstance(handler, Handler):
            raise TypeError(f"{view.gvk.kind}: {handler!r} is not an event handler; pass one such as ForObject()")
        self.view: View[Any] = MetadataOf(kind) if options.metadata_only and not isinstance(view, MetadataOf) else view
        self._handler = handler
        self.options = options

    def __str__(self) -> str:
        return f"{self.view.gvk.kind} of {self.view.gvk.api_version}"

    def with_filters(self, filters: Sequence[EventFunction]) -> KindSource:
        """Return a copy with predicates before its own."""
        options = msgspec.structs.replace(self.options, predicates=(*filters, *self.options.predicates))
        source = KindSource(self.view, self._handler, options)
        source.view = self.view
        return source

    async def run(self, sink: Sink) -> None:
        clock = sink.dependencies.world.clock
        until = clock.monotonic() + (inf if sink.sync_timeout is None else sink.sync_timeout)
        handler = await self._prepared(sink, until)
        informers = self.options.informers or sink.dependencies.informers
        informer: Informer = informers.of(await self._placed(informers, sink, until), self.options.settings)
        if handler.index is not None:
            with suppress(ValueError):  # the index exists
                informer.add_index(handler.index)
        events = _EventHandler(self.view, handler, self.options, sink)
        registration = informer.add_handler(
            events.handle, resync=self.options.resync, name=f"controller {sink.controller}"
        )
        try:
            informer.start()
            await self._synced(registration, sink, until)
            sink.ready()
            await asyncio.get_running_loop().create_future()
        finally:
            registration.remove()

    async def _prepared(self, sink: Sink, until: float) -> Handler:
        """Return a prepared copy of the handler. Retries: the CRD of an owner may be created later."""
        handler = copy(self._handler)  # its state belongs to this source
        await self._answered(lambda: handler.prepare(self.view, sink.dependencies), sink, until)
        return handler

    async def _placed(self, informers: Informers, sink: Sink, until: float) -> View[Any]:
        """Return the view, with its scope if the informers are restricted to namespaces."""
        settings = self.options.settings or informers.settings_of(self.view)
        if self.view.info is not None or "" in settings.namespaces:
            return self.view
        if self.options.optional:
            try:
                info = await informers.info(self.view)
            except (APIError, TransportError):  # reported by the informer
                return self.view
        else:
            info = await self._answered(lambda: informers.info(self.view), sink, until)
        placed = Unstructured(self.view.gvk, info)
        return MetadataOf(placed) if isinstance(self.view, MetadataOf) else placed

    async def _answered(self, ask: Callable[[], Awaitable[T]], sink: Sink, until: float) -> T:
        """Retry a call until it succeeds or the sync timeout passes."""
        clock, reported = sink.dependencies.world.clock, ""
        while True:
            try:
                return await ask()
            except (APIError, TransportError) as error:
                left = max(until - clock.monotonic(), 0.0)
                if left == 0:
                    raise SyncError(
                        f"controller {sink.controller}: {self} is not watched after {sink.sync_timeout:g} s: {error}",
                        error,
                    ) from None
                if str(error) != reported:
                    reported = str(error)
                    sink.logger.warning(
                        "kind not watched yet, retrying controller=%s source=%r error=%s",
                        sink.controller,
                        str(self),
                        error,
                    )
            await clock.sleep(min(_RETRY_PERIOD, left))

    async def _synced(self, registration: Registration, sink: Sink, until: float) -> None:
        clock, reported = sink.dependencies.world.clock, ""
        while True:
            left = max(until - clock.monotonic(), 0.0)
            try:
                await registration.synced(None if left == inf else left)
                return
            except SyncError as error:
                left = max(until - clock.monotonic(), 0.0)
                if self.options.optional and isinstance(error.cause, NotFound):
                    sink.logger.warning(
                        "optional kind does not exist controller=%s source=%r error=%s",
                        sink.controller,
                        str(self),
                        error,
                    )
                    return
                remedy = remedy_for(self.view, error.cause)
                if left == 0 or error.cause is None:
                    late = "" if sink.sync_timeout is None else f" after {sink.sync_timeout:g} s"
                    raise SyncError(
                        f"controller {sink.controller}: {self} is not synced{late}: {error.cause or error}{remedy}",
                        error.cause,
                    ) from None
                if str(error) != reported:
                    reported = str(error)
                    sink.logger.warning(
                        "waiting for sync controller=%s source=%r error=%s%s", sink.controller, str(self), error, remedy
                    )
            await clock.sleep(min(_RETRY_PERIOD, left))


class _EventHandler:
    """Applies predicates and handler to the events of an informer, and enqueues the keys."""

    def __init__(self, view: View[Any], handler: Handler, options: KindOptions, sink: Sink) -> None:
        self._gvk = view.gvk
        self._handler = handler
        self._predicates = options.predicates
        self._priority = options.priority
        self._is_foreign = options.informers is not None
        self._sink = sink
        kind = view.gvk.kind
        self._found, self._resynced = f"{kind} found", resynced(kind)
        self._happened = {each: f"{kind} {each.__name__.lower()}" for each in (Added, Updated, Deleted)}

    def handle(self, event: Event) -> Awaitable[None] | None:
        for predicate in self._predicates:
            if not self._passes(predicate, event):
                return None
        try:
            keys = self._handler.keys(event)
            if isinstance(keys, tuple | list):  # the common case, often empty
                if keys:
                    self._add(keys, event)
            elif isawaitable(keys):
                return self._add_later(keys, event)
            else:
                self._add(keys_of(keys, _RETURNED), event)
        except Exception as error:  # noqa: BLE001 - a user's function
            self._failed(error, event)
        return None

    async def _add_later(self, keys: Awaitable[Keys], event: Event) -> None:
        try:
            self._add(keys_of(await keys, _RETURNED), event)
        except Exception as error:  # noqa: BLE001
            self._failed(error, event)

    def _add(self, keys: Iterable[Hashable], event: Event) -> None:
        entry = event.object
        reason, priority = self._happened[type(event)], 0
        cause: Cause | None = Cause(self._gvk, entry.key, entry.resource_version)
        if isinstance(event, Added):
            if event.initial:
                reason, priority = self._found, LOW_PRIORITY
        elif isinstance(event, Updated) and event.old.resource_version == entry.resource_version:
            reason, priority, cause = self._resynced, LOW_PRIORITY, None
        if self._is_foreign or (not isinstance(event, Deleted) and event.relisted):
            cause = None  # resourceVersions of another cluster; or events may have been missed before a relist
        for key in keys if isinstance(keys, tuple | list) and len(keys) == 1 else dict.fromkeys(keys):
            self._sink.add(key, reason, priority if self._priority is None else self._priority, cause)

    def _passes(self, predicate: EventFunction, event: Event) -> bool:
        try:
            return bool(predicate(event))
        except Exception as error:
            self._sink.logger.error(
                "predicate failed; event not filtered controller=%s predicate=%s object=%r error=%s: %s",
                self._sink.controller,
                getattr(predicate, "__qualname__", "") or predicate,
                str(event.object),
                type(error).__name__,
                error,
                exc_info=_trace(error),
            )
            return True

    def _failed(self, error: Exception, event: Event) -> None:
        self._sink.logger.error(
            "event handler failed; object not enqueued controller=%s object=%r error=%s: %s",
            self._sink.controller,
            str(event.object),
            type(error).__name__,
            error,
            exc_info=_trace(error),
        )


def _trace(error: Exception) -> Exception | None:
    """Return the error for its traceback; None if the TypeError is about a user's function, not raised by it."""
    return error if shorten(error) or not isinstance(error, TypeError) else None
