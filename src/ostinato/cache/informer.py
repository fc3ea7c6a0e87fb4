"""The informer: one store of a kind, shared by all who read it or want to hear of changes.

    informer = Informer([client.list_watch(Pod)], world)
    informer.add_handler(lambda event: queue.add(event.key))
    informer.start()
    await informer.synced(timeout=60)

- It follows one collection, or several of a kind: one a namespace.
- Each handler hears every change, in order and at its own pace, and everything once more when its own period has
  passed. One that comes late is first told of what is there.
- `has_synced` says that the first list is in the store; that of a registration, that its handler has heard of it.
- It starts once and stops once. When `stop` returns nothing of it runs any more; what handlers have not heard is
  dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.labels import Selector
from ostinato.api.object import KindInfo
from ostinato.cache.events import Added, Event, Predicate
from ostinato.cache.listener import Handler, Listener, ListenerOptions
from ostinato.cache.lister import Lister
from ostinato.cache.readable_store import ReadableStore, combine
from ostinato.cache.reflector.failures import is_expired
from ostinato.cache.reflector.feed import Feed, FeedCallbacks, FeedOptions
from ostinato.cache.store.indexes import IndexBy
from ostinato.cache.sync_tracker import SyncTracker
from ostinato.client.list_watch import ListWatch
from ostinato.client.views import Kind
from ostinato.metrics import Sample
from ostinato.world import Timer, World
from ostinato.world.insisting import insist

T = TypeVar("T")

_UNSTARTED: Final = 30.0  # seconds after which a handler of an informer that nobody starts is a mistake
_DEFAULTS: Final = FeedOptions()
_logger = logging.getLogger("ostinato.cache")


class InformerStopped(RuntimeError):  # noqa: N818 - what is the matter
    """Nothing can be asked of an informer that has stopped."""


class Registration:
    """A handler that was added to an informer."""

    def __init__(self, informer: Informer, listener: Listener) -> None:
        self._informer = informer
        self._listener = listener

    @property
    def has_synced(self) -> bool:
        """Whether the handler has returned from every object that was there at the beginning."""
        return self._listener.has_synced

    @property
    def pending(self) -> int:
        """How many events the handler has still to hear."""
        return self._listener.pending

    async def synced(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error says what was waited for
        """Return when it has; `SyncError` as `Informer.synced`."""
        await self._informer.sync_tracker.wait(timeout, self._listener)

    def remove(self) -> None:
        """Tell the handler nothing more. Harmless when it was removed, or when the informer has stopped."""
        self._informer.remove_handler(self)


class Informer:
    def __init__(
        self,
        sources: Sequence[ListWatch],
        world: World,
        options: FeedOptions = _DEFAULTS,
        *,
        selector: Selector | None = None,
        complete: bool = True,
    ) -> None:
        """
        - `sources`: the collection to follow, or several of a kind, each in another namespace.
        - `selector`: which labels the objects of the sources have. Defaults to any.
        - `complete`: whether the sources give all objects of their namespaces that `selector` matches.
        """
        if not sources:
            raise ValueError("an informer needs a collection to follow")
        self.gvk: GroupVersionKind = sources[0].gvk
        self.options = options
        self.metadata_only = options.metadata_only
        self.selector = selector
        self.complete = complete
        self._world = world
        self._feeds = {source.namespace: self._feed(source, options) for source in sources}
        if len(self._feeds) != len(sources):
            raise ValueError(f"{self}: a namespace is given twice")
        if len(sources) > 1 and "" in self._feeds:
            raise ValueError(f"{self}: all namespaces are given, and some of them once more")
        self.store: ReadableStore = combine([feed.store for feed in self._feeds.values()])
        self.sync_tracker = SyncTracker(list(self._feeds.values()), world.clock)
        self._listeners: dict[Registration, Listener] = {}
        self._tasks: dict[Listener, asyncio.Task[None]] = {}  # of those that are told now
        self._timers: dict[Listener, Timer] = {}  # of those that resync, or that nobody starts
        self._running: asyncio.Task[None] | None = None
        self._stopped = False

    def _feed(self, source: ListWatch, options: FeedOptions) -> Feed:
        return Feed(
            source, self._world, options, FeedCallbacks(self._emit, self._feed_synced, self._failure_of(source))
        )

    def __str__(self) -> str:
        return ", ".join(str(feed.source) for feed in self._feeds.values())

    # What it knows

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Those that it follows; "" is all."""
        return tuple(self._feeds)

    @property
    def feeds(self) -> tuple[Feed, ...]:
        return tuple(self._feeds.values())

    def feed_of(self, namespace: str) -> Feed | None:
        """Which of them follows a namespace, or objects that have none."""
        return self._feeds.get("") or self._feeds.get(namespace)

    @property
    def info(self) -> KindInfo | None:
        """What the server calls the kind; known once it has synced."""
        return next((feed.info for feed in self._feeds.values() if feed.info is not None), None)

    @property
    def has_started(self) -> bool:
        return self._running is not None

    @property
    def is_running(self) -> bool:
        return self._running is not None and not self._stopped

    @property
    def has_stopped(self) -> bool:
        return self._stopped

    @property
    def has_synced(self) -> bool:
        """Whether the first list is in the store."""
        return self.sync_tracker.has_synced

    @property
    def has_handlers(self) -> bool:
        return bool(self._listeners)

    @property
    def resource_version(self) -> str:
        """Up to which everything came from the server, "" before the first list; of several, that of the first."""
        return next(iter(self._feeds.values())).reflector.resource_version

    def lister(self, kind: Kind[T]) -> Lister[T]:
        """Its objects, in a form of the reader's choice."""
        return Lister(self.store, kind)

    async def synced(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error says what was waited for
        """Return when the first list is in the store.

        `SyncError`, which names kind, namespace and cause: after `timeout` seconds; after five if the server refuses
        (no such kind, forbidden), for that does not pass by itself; at once if the informer is not started, or ends.
        It goes on trying all the same.
        """
        await self.sync_tracker.wait(timeout)

    def gauges(self) -> list[Sample]:
        """What is the case now, for whoever keeps metrics."""
        return [gauge for feed in self._feeds.values() for gauge in feed.gauges()]

    # Handlers and indexes

    def add_index(self, definition: IndexBy) -> None:
        """Keep another index, of what is there too. A ValueError if there is one of that name."""
        self._check_alive("an index")
        for feed in self._feeds.values():
            feed.store.add_index(definition)

    def add_handler(
        self, handler: Handler, *, resync: float = 0.0, predicate: Predicate | None = None, name: str = ""
    ) -> Registration:
        """Have a handler told of what is there, and then of what changes.

        - `resync`: seconds after which it is told of everything once more, at least 1. Defaults to 0, never.
        - `predicate`: of which objects it is told. Defaults to all.
        - `name`: for messages. Defaults to the name of the function.
        """
        self._check_alive("a handler")
        listener = Listener(handler, ListenerOptions(resync, predicate, name), self._world.clock)
        registration = Registration(self, listener)
        self._listeners[registration] = listener
        listener.enqueue([Added(entry, initial=True) for entry in self.store.entries()])
        if self.has_synced:
            listener.mark_synced()
        if self._running is None:
            self._warn_unless_started(listener)
        else:
            self._run_listener(listener)
        return registration

    def remove_handler(self, registration: Registration) -> None:
        """Tell it nothing more. Harmless when it was removed already; a ValueError if it is another informer's."""
        if registration._informer is not self:
            raise ValueError(f"{self}: that handler was added to another informer")
        listener = self._listeners.pop(registration, None)
        if listener is not None:
            self._cancel_timer(listener)
            listener.remove()

    def suspect_restore(self, why: str) -> None:
        """What is here is no longer true: the server went back to an earlier state."""
        for feed in self._feeds.values():
            feed.reflector.suspect_restore(why)

    # Its life

    def start(self) -> None:
        """Begin, on the running event loop. Harmless when it has begun."""
        self._check_alive("a start")
        if self._running is not None:
            return
        self._running = asyncio.get_running_loop().create_task(self._run(), name=f"informer of {self}")
        self.sync_tracker.started()
        for listener in self._listeners.values():
            self._cancel_timer(listener)
            self._run_listener(listener)

    async def stop(self) -> None:
        """End it: first what reads from the server, then the handlers, each after the event that it is hearing."""
        self._stopped = True
        self.sync_tracker.stopped()
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        for registration in list(self._listeners):
            self.remove_handler(registration)
        tasks = [task for task in self._tasks.values() if task is not asyncio.current_task()]
        if tasks:
            await asyncio.wait(tasks)

    async def abort(self) -> None:
        """End it at once: what handlers are hearing is cut short. One that will not have it is left behind."""
        self._stopped = True
        self.sync_tracker.stopped()
        for registration in list(self._listeners):
            self.remove_handler(registration)
        tasks = [*self._tasks.values(), *([] if self._running is None else [self._running])]
        for task in await insist(tasks, self._world.clock):
            _logger.error("%s does not end though it was cancelled: it is left behind", task.get_name())

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for feed in self._feeds.values():
                    group.create_task(feed.run())
        except Exception as error:
            _logger.exception("informer of %s failed", self)
            self.sync_tracker.broken(error)

    def _run_listener(self, listener: Listener) -> None:
        task = asyncio.get_running_loop().create_task(listener.run(), name=f"handler {listener.name} of {self}")
        self._tasks[listener] = task
        task.add_done_callback(lambda _: self._tasks.pop(listener, None))
        if listener.resync:
            self._timers[listener] = self._world.clock.timer(listener.resync, self._resync, listener)

    def _resync(self, listener: Listener) -> None:
        self._timers[listener] = self._world.clock.timer(listener.resync, self._resync, listener)
        if not listener.resyncing:
            for feed in self._feeds.values():
                feed.resync(listener)

    def _warn_unless_started(self, listener: Listener) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:  # there is no loop yet, so whoever adds handlers will start one
            return
        self._timers[listener] = self._world.clock.timer(_UNSTARTED, self._warn, listener)

    def _warn(self, listener: Listener) -> None:
        del self._timers[listener]
        _logger.warning("handler %s hears nothing: the informer of %s was not started", listener.name, self)

    def _cancel_timer(self, listener: Listener) -> None:
        timer = self._timers.pop(listener, None)
        if timer is not None:
            timer.cancel()

    def _check_alive(self, what: str) -> None:
        if self._stopped:
            raise InformerStopped(f"{what} for the informer of {self}, which has stopped")

    # What its feeds tell

    def _emit(self, events: list[Event]) -> None:
        for listener in self._listeners.values():
            listener.enqueue(events)

    def _feed_synced(self) -> None:
        if self.sync_tracker.feed_synced():
            for listener in self._listeners.values():
                listener.mark_synced()

    def _failure_of(self, source: ListWatch) -> Callable[[Exception], None]:
        def failed(error: Exception) -> None:
            level = logging.DEBUG if is_expired(error) else logging.WARNING
            _logger.log(level, "%s: %s: %s", source, type(error).__name__, error)
            self.sync_tracker.failed(source, error)

        return failed
