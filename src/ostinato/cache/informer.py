"""Informer: one store of a kind, shared by its readers and event handlers.

    informer = Informer([client.list_watch(Pod)], world)
    informer.add_handler(lambda event: queue.add(event.key))
    informer.start()
    await informer.synced(timeout=60)

client-go's SharedIndexInformer:

- Follows one collection, or several of a kind: one per namespace.
- Each handler receives every event, in order and at its own pace, and a resync after its own period. A handler that is
  added late first receives an `Added` for every object.
- `has_synced`: the first list is in the store; of a registration: its handler has processed it.
- Starts once and stops once. When `stop` returns, all its tasks have ended; events in the handlers' queues are dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ostinato.api.gvk import GroupVersionKind
from ostinato.api.object import KindInfo
from ostinato.api.selectors.labels import Selector
from ostinato.cache.events import Added, Event, Predicate
from ostinato.cache.listener import Handler, Listener, ListenerOptions
from ostinato.cache.lister import Lister
from ostinato.cache.readable_store import ReadableStore, combine
from ostinato.cache.reflector.failures import is_expired
from ostinato.cache.reflector.feed import Feed, FeedCallbacks, FeedOptions
from ostinato.cache.store.indexes import IndexBy
from ostinato.cache.sync_tracker import SyncTracker
from ostinato.client.list_watch import ListWatch
from ostinato.client.unreadable import UnreadableObjects
from ostinato.client.views import Kind
from ostinato.metrics import Sample
from ostinato.world import Timer, World
from ostinato.world.cancellation import cancel_repeatedly

T = TypeVar("T")

_UNSTARTED: Final = 30.0  # seconds after which to warn of a handler of an informer that is not started
_DEFAULTS: Final = FeedOptions()
_logger = logging.getLogger("ostinato.cache")


class InformerStopped(RuntimeError):  # noqa: N818 - named after the condition
    """The informer has stopped."""


class Registration:
    """An event handler of an informer."""

    def __init__(self, informer: Informer, listener: Listener) -> None:
        self._informer = informer
        self._listener = listener

    @property
    def has_synced(self) -> bool:
        """Whether the handler has processed all initial objects."""
        return self._listener.has_synced

    @property
    def pending(self) -> int:
        """The number of events in the handler's queue."""
        return self._listener.pending

    async def synced(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error names the cause
        """Wait until `has_synced`; raises `SyncError` as `Informer.synced`."""
        await self._informer.sync_tracker.wait(timeout, self._listener)

    def remove(self) -> None:
        """Stop calling the handler. No effect if it was removed, or the informer has stopped."""
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
        unreadable: UnreadableObjects | None = None,
    ) -> None:
        """
        - `sources`: the collection to follow, or several of a kind, each in another namespace.
        - `selector`: the label selector of the sources. Defaults to none.
        - `complete`: whether the sources include all objects of their namespaces that match `selector`; False with a
          field selector. Defaults to True.
        - `unreadable`: reports objects that listers skip. Defaults to one of its own.
        """
        if not sources:
            raise ValueError("Informer() needs at least one source")
        self.gvk: GroupVersionKind = sources[0].gvk
        self.options = options
        self.metadata_only = options.metadata_only
        self.selector = selector
        self.complete = complete
        self._unreadable = unreadable or UnreadableObjects()
        self._world = world
        self._feeds = {source.namespace: self._feed(source, options) for source in sources}
        if len(self._feeds) != len(sources):
            raise ValueError(f"Informer() duplicate namespace in {self}; pass each once")
        if len(sources) > 1 and "" in self._feeds:
            raise ValueError(f"Informer() all namespaces and single ones in {self}; pass either")
        self.store: ReadableStore = combine([feed.store for feed in self._feeds.values()])
        self.sync_tracker = SyncTracker(list(self._feeds.values()), world.clock)
        self._listeners: dict[Registration, Listener] = {}
        self._tasks: dict[Listener, asyncio.Task[None]] = {}  # of running listeners
        self._timers: dict[Listener, Timer] = {}  # for resyncs, and for the warning about an unstarted informer
        self._running: asyncio.Task[None] | None = None
        self._stopped = False

    def _feed(self, source: ListWatch, options: FeedOptions) -> Feed:
        return Feed(
            source, self._world, options, FeedCallbacks(self._emit, self._feed_synced, self._failure_of(source))
        )

    def __str__(self) -> str:
        return ", ".join(str(feed.source) for feed in self._feeds.values())

    # State

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The followed namespaces; "" is all."""
        return tuple(self._feeds)

    @property
    def feeds(self) -> tuple[Feed, ...]:
        return tuple(self._feeds.values())

    def feed_of(self, namespace: str) -> Feed | None:
        """Return the feed of a namespace, or of cluster-scoped objects."""
        return self._feeds.get("") or self._feeds.get(namespace)

    @property
    def info(self) -> KindInfo | None:
        """The kind as the server serves it; known once synced."""
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
        """The resourceVersion of the last event, "" before the first list; of several feeds, that of the first."""
        return next(iter(self._feeds.values())).reflector.resource_version

    def lister(self, kind: Kind[T]) -> Lister[T]:
        """Return a lister of its objects in the requested form."""
        return Lister(self.store, kind, self._unreadable)

    async def synced(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - the error names the cause
        """Wait until the first list is in the store.

        Raises `SyncError` with kind, namespace and cause: after `timeout` seconds; after five seconds of rejections (no
        such kind, forbidden), which need an intervention; immediately if the informer is not running. The informer
        continues to retry.
        """
        await self.sync_tracker.wait(timeout)

    def gauges(self) -> list[Sample]:
        """Return the current values of the gauges."""
        return [gauge for feed in self._feeds.values() for gauge in feed.gauges()]

    # Handlers and indexes

    def add_index(self, definition: IndexBy) -> None:
        """Add an index, and index all objects. Raises ValueError if the name is taken."""
        self._check_not_stopped("add_index")
        for feed in self._feeds.values():
            feed.store.add_index(definition)

    def add_handler(
        self, handler: Handler, *, resync: float = 0.0, predicate: Predicate | None = None, name: str = ""
    ) -> Registration:
        """Add an event handler; it receives all current objects, then every change.

        - `resync`: seconds between resyncs, at least 1. Defaults to 0, never.
        - `predicate`: which objects it receives. Defaults to all.
        - `name`: for messages. Defaults to the name of the function.
        """
        self._check_not_stopped("add_handler")
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
        """Stop calling a handler. No effect if it was removed. Raises ValueError if it is another informer's."""
        if registration._informer is not self:
            raise ValueError(f"remove_handler() the handler was not added to the informer of {self}")
        listener = self._listeners.pop(registration, None)
        if listener is not None:
            self._cancel_timer(listener)
            listener.remove()

    def suspect_restore(self, why: str) -> None:
        """Relist: there is evidence that the server was restored to an earlier state."""
        for feed in self._feeds.values():
            feed.reflector.suspect_restore(why)

    # Lifecycle

    def start(self) -> None:
        """Start on the running event loop. No effect if it is running."""
        self._check_not_stopped("start")
        if self._running is not None:
            return
        self._running = asyncio.get_running_loop().create_task(self._run(), name=f"informer of {self}")
        self.sync_tracker.started()
        for listener in self._listeners.values():
            self._cancel_timer(listener)
            self._run_listener(listener)

    async def stop(self) -> None:
        """Stop reading from the server, then the handlers, each after its current event."""
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
        """Stop immediately: cancel running handlers, and abandon those that do not end."""
        self._stopped = True
        self.sync_tracker.stopped()
        for registration in list(self._listeners):
            self.remove_handler(registration)
        tasks = [*self._tasks.values(), *([] if self._running is None else [self._running])]
        for task in await cancel_repeatedly(tasks, self._world.clock):
            _logger.error("task does not end after cancellation, abandoned task=%s", task.get_name())

    async def _run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for feed in self._feeds.values():
                    group.create_task(feed.run())
        except Exception as error:
            _logger.exception("informer failed collection=%s", self)
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
        except RuntimeError:  # no event loop yet, so the program is still being set up
            return
        self._timers[listener] = self._world.clock.timer(_UNSTARTED, self._warn, listener)

    def _warn(self, listener: Listener) -> None:
        del self._timers[listener]
        _logger.warning("informer not started, handler gets no events handler=%s collection=%s", listener.name, self)

    def _cancel_timer(self, listener: Listener) -> None:
        timer = self._timers.pop(listener, None)
        if timer is not None:
            timer.cancel()

    def _check_not_stopped(self, action: str) -> None:
        if self._stopped:
            raise InformerStopped(f"{action}() the informer of {self} has stopped; create another one")

    # Callbacks of the feeds

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
            _logger.log(level, "list or watch failed collection=%s error=%s: %s", source, type(error).__name__, error)
            self.sync_tracker.failed(source, error)

        return failed
