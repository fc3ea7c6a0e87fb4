"""Control loop: the run-time state of a started controller, its sources, its queue and its workers."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from contextvars import copy_context
from logging import Logger
from typing import TYPE_CHECKING, NamedTuple

from ostinato.cache.own_writes.recorder import OwnWrites
from ostinato.cache.store.entry import Entry
from ostinato.controllers.guards.hot_loop import HotLoopGuard
from ostinato.controllers.guards.own_events import OwnEvents
from ostinato.controllers.guards.stuck import StuckDeletions
from ostinato.controllers.objects.applying import Applier
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.reasons import SHARD, Cause, Reasons
from ostinato.controllers.reports.metrics import ControllerStatistics
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sharding import Selects, ShardedKeys
from ostinato.controllers.sources.kind import KindSource
from ostinato.controllers.sources.namespace_patterns import NamespacePatterns
from ostinato.controllers.sources.sources import Sink, Source
from ostinato.controllers.worker import Verdict, Worker
from ostinato.queue import QueueShutDown, WorkQueue

if TYPE_CHECKING:
    from ostinato.controllers.controller import Controller


class ControllerError(Exception):
    """A controller could not be created, started or continued."""


class _Started(NamedTuple):
    """A running source."""

    source: Source
    ready: asyncio.Future[None]


class ControlLoop:
    """The run-time state of a started controller."""

    def __init__(self, controller: Controller, options: ControllerOptions, dependencies: Dependencies) -> None:
        assert options.max_concurrent is not None, "options are complete"
        assert options.limiter is not None
        assert options.sync_timeout is not None
        self.name = controller.name
        self._workers = options.max_concurrent
        self._sync_timeout = options.sync_timeout
        self._dependencies = dependencies
        self._clock = dependencies.world.clock
        self._logger: Logger = dependencies.logger
        self._kind = None if controller.view is None else controller.view.gvk
        self._reconciler = controller.reconciler
        daemons = controller.reconciler.count_daemons  # they have threads of their own
        executor = None if controller.reconciler.is_async or daemons is not None else dependencies.world.executor
        self.statistics = ControllerStatistics(self.name, self._clock, self._workers, executor, daemons)
        self._queue: WorkQueue[Hashable] = WorkQueue(
            self._clock, limiter=options.limiter(), metrics=self.statistics.queue
        )
        self._reasons = Reasons()
        self._guard = HotLoopGuard(self._clock, dependencies.informers) if options.hot_loop_guard else None
        self._stuck = (
            None
            if controller.view is None
            else StuckDeletions(self._clock, dependencies.informers, controller.view.gvk, self._report_stuck)
        )
        self._worker = Worker(
            controller, options, dependencies, self.statistics, Applier(dependencies.client, self.name), self._guard
        )
        self._waits_for_writes = bool(options.wait_for_own_writes)
        self._own_events = OwnEvents(dependencies.informers)
        namespaces = NamespacePatterns(options.namespaces or "*")
        self._namespaces = None if namespaces.includes_all else namespaces
        self._unseen: dict[Hashable, OwnWrites] = {}  # last writes of each key that the cache may not have seen
        self._most_unseen = _MANY  # size at which entries that the cache has seen are removed
        self._parked: dict[Hashable, asyncio.Task[None]] = {}  # keys that wait for the cache to see their writes
        self._priorities: dict[Hashable, int] = {}  # with which parked keys will be enqueued
        self._shard = None if dependencies.shards is None else ShardedKeys(dependencies, controller.view)
        self._running: dict[asyncio.Task[None], _Started] = {}  # running sources
        self._working = False
        self._stopping = False
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._context = copy_context()  # for sources: one added by a reconcile must not inherit its context
        dependencies.metrics.add(self.statistics.families)
        if dependencies.observer is not None:
            dependencies.observer.started(self.name, self.statistics)
        if self._shard is not None:
            self._shard.shards.add(self)

    # Shards

    def gained(self, selects: Selects) -> None:
        if not self._stopping and self._shard is not None:
            for key in self._shard.selected(selects):
                self._reasons.add(key, SHARD, None)
                self._queue.add(key)

    async def left(self, selects: Selects) -> None:
        await self._reconciler.release(selects)

    # Sources

    def start_source(self, source: Source) -> None:
        if self._stopping:
            return
        if self._dependencies.observer is not None and isinstance(source, KindSource):
            gvk = source.view.gvk
            self._dependencies.observer.watches(self.name, gvk, primary=gvk == self._kind)
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        sink = Sink(
            controller=self.name,
            dependencies=self._dependencies,
            logger=self._logger,
            sync_timeout=None if self._working else self._sync_timeout,
            add=self._add,
            ready=lambda: None if ready.done() else ready.set_result(None),
        )
        name, context = f"controller {self.name}: {source}", self._context.copy()
        task = asyncio.get_running_loop().create_task(self._run_source(source, sink), name=name, context=context)
        self._running[task] = _Started(source, ready)
        task.add_done_callback(self._source_ended)

    async def end_source(self, source: Source) -> None:
        tasks = [task for task, each in self._running.items() if each.source is source]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _run_source(self, source: Source, sink: Sink) -> None:
        try:
            await source.run(sink)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # The source would silently stop enqueueing.
            raise ControllerError(f"controller {self.name}: {source} was cancelled by something it awaited") from error
        sink.ready()

    def _source_ended(self, task: asyncio.Task[None]) -> None:
        ready = self._running.pop(task).ready
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._failed.done():
            self._failed.set_exception(error)
            self._failed.exception()  # marks it as retrieved: after the end nothing awaits it
        if not ready.done():
            ready.cancel()

    async def ready(self) -> None:
        """Wait until all sources are ready. Raises the first error of a source, or names those that are late."""
        try:
            async with self._clock.timeout(self._sync_timeout + 1.0):  # a source times out first, with a better message
                while not self._failed.done() and (late := self._late()):
                    ready = [each.ready for each in late]
                    await asyncio.wait([self._failed, *ready], return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            names = ", ".join(str(each.source) for each in self._late())
            raise ControllerError(
                f"controller {self.name}: not ready after {self._sync_timeout:g} s: {names}; "
                "a source must call sink.ready() and must not block the event loop"
            ) from None
        if self._failed.done():
            self._failed.result()

    @property
    def is_ready(self) -> bool:
        return not self._late()

    def _late(self) -> list[_Started]:
        return [each for each in self._running.values() if not each.ready.done()]

    def _add(self, key: Hashable, reason: str, priority: int, cause: Cause | None) -> None:
        if self._stopping or (self._namespaces is not None and not self._namespaces.includes_key(key)):
            return
        if self._shard is not None and not self._shard.add(key):
            return
        if cause is not None and self._own_events.is_own(key, cause):
            writes = self._unseen.get(key)
            if writes is not None and writes.all_seen:
                del self._unseen[key]
            return
        self._reasons.add(key, reason, cause)
        self._queue.add(key, priority)

    # Workers

    async def work(self) -> None:
        """Reconcile until cancelled, or until a source or a worker fails."""
        self._working = True
        create = asyncio.get_running_loop().create_task
        workers = [create(self._work(), name=f"controller {self.name}: worker {n}") for n in range(self._workers)]
        try:
            await asyncio.wait([self._failed, *workers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stopping = True
            self._queue.shut_down()
            self._reconciler.close()
            await self._finish(workers)
        if self._failed.done():
            self._failed.result()
        for worker in workers:
            if worker.cancelled():
                raise ControllerError(
                    f"controller {self.name}: the reconciler cancelled the worker task; "
                    "cancel only tasks that it created, or use asyncio.timeout"
                )
            worker.result()

    async def _finish(self, workers: list[asyncio.Task[None]]) -> None:
        """Wait for running reconciles and daemons; when cancelled again, cancel the reconciles."""
        try:
            await asyncio.wait(workers)
            await self._reconciler.closed()
        except asyncio.CancelledError:
            for worker in workers:
                worker.cancel()
            self._reconciler.abandon()
            await asyncio.wait(workers)
            await self._reconciler.closed()
            raise

    async def _work(self) -> None:
        runs = 0
        while not self._stopping:
            runs += 1
            if not runs % _RUNS_A_TURN:
                await self._clock.sleep(0)
            try:
                key = await self._queue.get()
            except QueueShutDown:
                return
            try:
                if self._shard is not None and not self._shard.shards.owns(key):
                    self._reasons.take(key, self._clock.monotonic())
                elif not self._stopping and not self._waits(key):
                    await (self._reconcile(key) if self._shard is None else self._reconcile_in_shard(key, self._shard))
            finally:
                self._queue.done(key)

    async def _reconcile_in_shard(self, key: Hashable, shard: ShardedKeys) -> None:
        if not await shard.shards.run(key, lambda: self._reconcile(key)):  # the renewal is late, or the shard lost
            self._queue.add_after(key, _SHARD_DELAY, self._queue.priority_of(key))

    async def _reconcile(self, key: Hashable) -> None:
        why = self._reasons.take(key, self._clock.monotonic())
        if self._own_events.are_all(key, why) or self._worker.retries.skips(key, why):
            return
        self._own_events.begin(key)
        self.statistics.active_workers += 1
        try:
            verdict = await self._worker.reconcile(key, why, self._queue.requeues(key) + 1, self._own_events)
        finally:
            self.statistics.active_workers -= 1
        if self._waits_for_writes and not verdict.writes.all_seen:
            self._unseen[key] = verdict.writes
            if len(self._unseen) > self._most_unseen:
                self._forget_seen()
        delay = self._requeue(key, verdict)
        if verdict.failure is not None:
            self._worker.failures.log(verdict.failure, delay)
        if verdict.succeeded and self._stuck is not None:
            self._stuck.reconciled(key)

    def _requeue(self, key: Hashable, verdict: Verdict) -> float | None:
        """Requeue the key as the verdict says, and return the delay in seconds; None if it is not requeued."""
        queue = self._queue
        if verdict.succeeded or verdict.exhausted:
            queue.forget(key)
        if verdict.succeeded:
            self._worker.retries.succeeded(key)
        if verdict.delay is None and not verdict.retry:
            return None
        priority = queue.priority_of(key) if verdict.priority is None else verdict.priority
        now = self._clock.monotonic()
        delay = verdict.delay
        if delay is None:
            delay = queue.add_rate_limited(key, priority)
        else:
            queue.add_after(key, delay, priority)
            if verdict.failure is not None:
                queue.count_failure(key)
        self._reasons.add_later(key, verdict.reason, now, delay)
        return delay

    # Delayed keys

    def _forget_seen(self) -> None:
        self._unseen = {key: writes for key, writes in self._unseen.items() if not writes.all_seen}
        self._most_unseen = max(_MANY, 2 * len(self._unseen))

    def _waits(self, key: Hashable) -> bool:
        """Return whether the key must not run yet. It is enqueued again when it may."""
        wait = 0.0 if self._guard is None else self._guard.wait_of(key)
        if wait > 0:
            self._reasons.hold(key, self._clock.monotonic() + wait)
            self._queue.add_after(key, wait, self._queue.priority_of(key))
            return True
        if key in self._parked:
            self._priorities[key] = max(self._priorities[key], self._queue.priority_of(key))
            return True
        writes = self._unseen.pop(key, None)
        if writes is None or writes.all_seen:
            return False
        self.statistics.stale += 1
        task = asyncio.get_running_loop().create_task(
            self._wait_for(key, writes), name=f"controller {self.name}: {key} waits"
        )
        self._parked[key], self._priorities[key] = task, self._queue.priority_of(key)
        return True

    async def _wait_for(self, key: Hashable, writes: OwnWrites) -> None:
        try:
            await writes.wait_seen(_OWN_WRITES_TIMEOUT)
        except TimeoutError as error:
            self._logger.warning(
                "reconciling with a possibly stale cache controller=%s object=%s error=%s", self.name, key, error
            )
        finally:
            del self._parked[key]
        self._queue.add(key, self._priorities.pop(key))

    # Stop

    async def end(self) -> None:
        """Stop sources and waiting keys. No effect if nothing runs."""
        self._stopping = True
        self._queue.shut_down()
        if self._shard is not None:
            self._shard.shards.remove(self)
        if self._stuck is not None:
            self._stuck.stop()
        tasks = [*self._running, *self._parked.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._dependencies.metrics.remove(self.statistics.families)
        if self._dependencies.observer is not None:
            self._dependencies.observer.ended(self.name)

    # Reports

    def _report_stuck(self, entry: Entry, finalizers: tuple[str, ...]) -> None:
        self._logger.warning(
            "deletion blocked by finalizers; remove the finalizers of this controller in its reconcile (ctx.finalizer) "
            "controller=%s object=%s finalizers=%s",
            self.name,
            entry,
            ",".join(finalizers),
        )


_RUNS_A_TURN = 16  # reconciles after which a worker yields to the event loop
_OWN_WRITES_TIMEOUT = 10.0  # seconds
_MANY = 1_000  # keys
_SHARD_DELAY = 1.0  # seconds until a shard whose renewal is late is tried again
