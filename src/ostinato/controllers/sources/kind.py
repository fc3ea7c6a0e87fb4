"""The kind source: objects of a kind, as an informer tells of them.

- It shares the informer with everybody else who watches the same, and starts it if nobody has.
- It is ready when its handler has heard of every object that was there.
- A server that refuses (no such kind, forbidden) is reported within seconds and asked again, since a definition may
  come later; when the time for the first sync is over, the error says what the server said. `optional=True` does not
  wait for a kind that does not exist: its objects are told when it does. A source that was added to a controller that
  works has all the time there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from inspect import isawaitable
from math import inf
from typing import Any, Final, TypeVar

import msgspec

from ostinato.api.errors import APIError, NotFound
from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.informer import Informer, Registration
from ostinato.cache.informers import AnyKind, Informers, InformerSettings
from ostinato.cache.sync_tracker import SyncError
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import MetadataOf, Unstructured, View, view_of
from ostinato.controllers.guards.remedy import remedy_for
from ostinato.controllers.reasons import Cause
from ostinato.controllers.sources.handlers import Handler, Keys, keys_of
from ostinato.controllers.sources.predicates import EventFunction, check_predicate
from ostinato.controllers.sources.sources import Sink
from ostinato.controllers.trace import shorten
from ostinato.queue import LOW_PRIORITY

T = TypeVar("T")

_PAUSE: Final = 1.0  # seconds between looks at a server that refuses
_RETURNED: Final = "it returned"


class KindOptions(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `predicates`: which events count; all must agree. Defaults to all events.
    - `priority`: of what is to be reconciled for it. Defaults to 0, and to a low one for what nobody waits for: the
      objects that were there at the beginning, and resyncs.
    - `resync`: seconds after which everything is told once more. Defaults to 0, never.
    - `settings`: what is cached of the kind. Defaults to the informers' own.
    - `metadata_only`: watch the metadata alone.
    - `optional`: do not wait for a kind that does not exist yet.
    - `informers`: those of another cluster, to watch it there. Default to the manager's own.
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
            raise TypeError(f"priority is a whole number, as 0 and LOW_PRIORITY are, not {self.priority!r}")


_DEFAULTS = KindOptions()


class KindSource:
    def __init__(self, kind: AnyKind, handler: Handler, options: KindOptions = _DEFAULTS) -> None:
        for each in options.predicates:
            check_predicate(each)
        view: View[Any] = view_of(kind)
        if not isinstance(handler, Handler):
            raise TypeError(f"{view.gvk.kind}: a handler is needed, such as ForObject(), got {handler!r}")
        self.view: View[Any] = MetadataOf(kind) if options.metadata_only and not isinstance(view, MetadataOf) else view
        self._handler = handler
        self.options = options

    def __str__(self) -> str:
        return f"{self.view.gvk.kind} of {self.view.gvk.api_version}"

    def with_filters(self, filters: Sequence[EventFunction]) -> KindSource:
        """The same, with predicates that are asked before its own."""
        options = msgspec.structs.replace(self.options, predicates=(*filters, *self.options.predicates))
        source = KindSource(self.view, self._handler, options)
        source.view = self.view
        return source

    async def run(self, sink: Sink) -> None:
        clock = sink.surroundings.world.clock
        until = clock.monotonic() + (inf if sink.sync_timeout is None else sink.sync_timeout)
        handler = await self._prepared(sink, until)
        informers = self.options.informers or sink.surroundings.informers
        informer: Informer = informers.of(await self._placed(informers, sink, until), self.options.settings)
        if handler.index is not None:
            with suppress(ValueError):  # somebody else has asked for it
                informer.add_index(handler.index)
        hearing = _Hearing(self.view, handler, self.options, sink)
        registration = informer.add_handler(
            hearing.hear, resync=self.options.resync, name=f"controller {sink.controller}"
        )
        try:
            informer.start()
            await self._synced(registration, sink, until)
            sink.ready()
            await asyncio.get_running_loop().create_future()
        finally:
            registration.remove()

    async def _prepared(self, sink: Sink, until: float) -> Handler:
        """The handler, once the server has what it asks for: the kind of an owner may be defined later, too."""
        handler = copy(self._handler)  # what it notes of this kind and these surroundings is not another source's
        await self._answered(lambda: handler.prepare(self.view, sink.surroundings), sink, until)
        return handler

    async def _placed(self, informers: Informers, sink: Sink, until: float) -> View[Any]:
        """The kind; with its scope, where that says what is followed: some namespaces, or all that is in none."""
        settings = self.options.settings or informers.settings_of(self.view)
        if self.view.info is not None or "" in settings.namespaces:
            return self.view
        if self.options.optional:
            try:
                info = await informers.info(self.view)
            except (APIError, TransportError):  # the informer will tell
                return self.view
        else:
            info = await self._answered(lambda: informers.info(self.view), sink, until)
        placed = Unstructured(self.view.gvk, info)
        return MetadataOf(placed) if isinstance(self.view, MetadataOf) else placed

    async def _answered(self, ask: Callable[[], Awaitable[T]], sink: Sink, until: float) -> T:
        """What the server answers in the end."""
        clock, told = sink.surroundings.world.clock, ""
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
                if str(error) != told:
                    told = str(error)
                    sink.logger.warning("controller %s does not watch %s yet: %s", sink.controller, self, error)
            await clock.sleep(min(_PAUSE, left))

    async def _synced(self, registration: Registration, sink: Sink, until: float) -> None:
        clock, told = sink.surroundings.world.clock, ""
        while True:
            left = max(until - clock.monotonic(), 0.0)
            try:
                await registration.synced(None if left == inf else left)
                return
            except SyncError as error:
                left = max(until - clock.monotonic(), 0.0)
                if self.options.optional and isinstance(error.cause, NotFound):
                    sink.logger.warning("controller %s: %s does not exist yet: %s", sink.controller, self, error)
                    return
                remedy = remedy_for(self.view, error.cause)
                if left == 0 or error.cause is None:
                    late = "" if sink.sync_timeout is None else f" after {sink.sync_timeout:g} s"
                    raise SyncError(
                        f"controller {sink.controller}: {self} is not synced{late}: {error.cause or error}{remedy}",
                        error.cause,
                    ) from None
                if str(error) != told:
                    told = str(error)
                    sink.logger.warning("controller %s waits for %s: %s%s", sink.controller, self, error, remedy)
            await clock.sleep(min(_PAUSE, left))


class _Hearing:
    """One controller's ear at an informer."""

    def __init__(self, view: View[Any], handler: Handler, options: KindOptions, sink: Sink) -> None:
        self._gvk = view.gvk
        self._handler = handler
        self._predicates = options.predicates
        self._priority = options.priority
        self._is_foreign = options.informers is not None
        self._sink = sink
        kind = view.gvk.kind
        self._found, self._resynced = f"{kind} found", f"{kind} resynced"
        self._happened = {each: f"{kind} {each.__name__.lower()}" for each in (Added, Updated, Deleted)}

    def hear(self, event: Event) -> Awaitable[None] | None:
        for predicate in self._predicates:
            if not self._passes(predicate, event):
                return None
        try:
            keys = self._handler.keys(event)
            if isinstance(keys, tuple | list):  # nearly always, and mostly nobody: what follows is for the others
                if keys:
                    self._add(keys, event)
            elif isawaitable(keys):
                return self._add_later(keys, event)
            else:
                self._add(keys_of(keys, _RETURNED), event)
        except Exception as error:  # noqa: BLE001 - whatever the user's function does
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
            reason, priority, cause = self._resynced, LOW_PRIORITY, None  # nothing has happened
        if self._is_foreign or (not isinstance(event, Deleted) and event.relisted):
            cause = None  # versions of another cluster; or somebody else wrote one before this, which nobody tells of
        for key in keys if isinstance(keys, tuple | list) and len(keys) == 1 else dict.fromkeys(keys):
            self._sink.add(key, reason, priority if self._priority is None else self._priority, cause)

    def _passes(self, predicate: EventFunction, event: Event) -> bool:
        try:
            return bool(predicate(event))
        except Exception as error:
            self._sink.logger.error(
                "controller %s: predicate %s failed on %s: %s: %s; the event counts all the same",
                self._sink.controller,
                getattr(predicate, "__qualname__", "") or predicate,
                event.object,
                type(error).__name__,
                error,
                exc_info=_trace(error),
            )
            return True

    def _failed(self, error: Exception, event: Event) -> None:
        self._sink.logger.error(
            "controller %s: the handler for %s failed on %s, which nobody reconciles now: %s: %s",
            self._sink.controller,
            self._gvk.kind,
            event.object,
            type(error).__name__,
            error,
            exc_info=_trace(error),
        )


def _trace(error: Exception) -> Exception | None:
    """The error with its traceback, unless it is said of a user's function, which has no part in that."""
    return error if shorten(error) or not isinstance(error, TypeError) else None
