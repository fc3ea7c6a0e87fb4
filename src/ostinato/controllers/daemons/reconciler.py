"""Daemon reconciler: keeps one daemon for each selected object of a kind.

| a reconcile finds | and |
|---|---|
| a selected object without a daemon | starts one |
| a daemon whose object is deleted, recreated or no longer selected | stops it; its end enqueues the key again |
| a daemon that has failed | raises its error, so that it is reported and the key retried with backoff |
| a daemon that has returned | nothing: its work is done, until the process restarts or the object is selected anew |

- A daemon is never started before the previous one of the same key has ended.
- After a failure the new daemon has to run for a minute before the backoff is reset.
- When the controller stops, by a shutdown or because leadership is lost, all daemons are cancelled and awaited.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextvars import copy_context
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.client.views import View
from ostinato.controllers.blocking.calls import StoppedThread, ThreadCall
from ostinato.controllers.context import Context
from ostinato.controllers.current import running
from ostinato.controllers.daemons.daemon import Daemon
from ostinato.controllers.daemons.failing import FailingObjects
from ostinato.controllers.daemons.selection import Selection
from ostinato.controllers.guards.steps import Measured
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.reasons import DAEMON
from ostinato.controllers.reconcilers import Reconciler
from ostinato.controllers.result import Result, Unsettled
from ostinato.controllers.sources.sources import Sink

_DONE: Final = Result()
_UNSETTLED: Final = Unsettled()


class DaemonReconciler(Reconciler):
    def __init__(
        self,
        function: Callable[..., Any],
        view: View[Any],
        selection: Selection,
        *,
        finalizer: str = "",
        options: ControllerOptions | None = None,
    ) -> None:
        """
        - `finalizer`: keeps an object until its daemon has ended. Defaults to "": objects are not changed.
        - `options`: of the controller.
        """
        super().__init__(function, view)
        self._kind = view
        self._selection = selection
        self._finalizer = finalizer
        self._daemons: dict[Hashable, Daemon] = {}  # at most one of each key; also those that have returned
        self._failing = FailingObjects()
        self._ends = _Ends(options or ControllerOptions())
        self._closed = False
        self.sources = (self._ends,)
        self.count_daemons = lambda: sum(not each.has_ended for each in self._daemons.values())

    async def run(self, context: Context) -> Result:
        key = context.request
        instance = await context.client.get(self._kind, key, missing=None)
        context.object = instance
        is_wanted = self._selection.includes(instance)
        daemon = self._daemons.get(key)
        if daemon is not None:
            is_same = instance is not None and access.uid(instance) == daemon.uid
            if not (is_wanted and is_same):
                daemon.stop()
            if not daemon.has_ended:
                return _DONE if daemon.is_stopping or daemon.is_stable else _UNSETTLED
            if is_wanted and is_same and not daemon.is_stopping and daemon.error is None:
                return _DONE
            del self._daemons[key]
            if instance is not None and is_wanted and is_same and daemon.error is not None:
                self._failing.add(key, instance, daemon.error)
                raise daemon.error
        if instance is None or not is_wanted:
            self._failing.discard(key)
            await self._release(instance, context)
            return _DONE
        if not self._failing.may_run(context.reconcile, instance):
            return _UNSETTLED
        return await self._start(instance, context)

    async def _start(self, instance: AnyObject, context: Context) -> Result:
        if self._finalizer:
            async with context.finalizer(instance, self._finalizer):
                pass
        if self._closed:
            return _DONE
        key = context.request
        daemon = self._daemons[key] = Daemon(access.uid(instance), context.world.clock, context.logger)
        name = f"controller {context.name}: daemon of {key}"
        daemon.start(name, self._work(instance, context), self._ends.variables.copy(), lambda: self._ends.add(key))
        if context.reconcile.attempt > 1:
            daemon.watch_stability(lambda: self._ends.add(key))
        return _DONE if daemon.is_stable else _UNSETTLED

    async def _work(self, instance: AnyObject, context: Context) -> None:
        """Body of the task. A plain function has a thread of its own: it would occupy one of the pool for ever."""
        own = context._detached()
        own.object = instance
        if not self.is_async:
            own.world = context.world.with_separate_executor()
        try:
            with running(own.reconcile):
                await self._measured(self.call(instance, own), own)
        finally:
            if not self.is_async:
                own.world.executor.close()

    def _measured(self, work: Coroutine[Any, Any, Result], context: Context) -> Awaitable[Result]:
        """Report the steps of an async function that block the event loop."""

        def slow(seconds: float) -> None:
            context.logger.warning(
                "daemon blocked the event loop; await long operations, or make it a plain def, which runs in a thread "
                "controller=%s object=%s seconds=%.1f",
                context.name,
                context.request,
                seconds,
            )

        limit = self._ends.slow_step
        return Measured(work, context.world.clock, limit, slow) if self.is_async and limit > 0 else work

    async def _release(self, instance: AnyObject | None, context: Context) -> None:
        """Remove the finalizer of an object that is being deleted."""
        if self._finalizer and instance is not None and access.is_being_deleted(instance):
            async with context.finalizer(instance, self._finalizer):
                pass

    # Stop

    async def release(self, selects: Callable[[Hashable], bool]) -> None:
        released = {key: daemon for key, daemon in self._daemons.items() if selects(key)}
        for daemon in released.values():
            daemon.stop()
        for key, daemon in released.items():
            await daemon.wait()
            if self._daemons.get(key) is daemon:
                del self._daemons[key]

    def close(self) -> None:
        self._closed = True
        for daemon in self._daemons.values():
            daemon.stop()

    async def closed(self) -> None:
        for daemon in list(self._daemons.values()):
            await daemon.wait()

    def abandon(self) -> None:
        super().abandon()
        for daemon in self._daemons.values():
            daemon.abandon()

    def _thread_call(self) -> ThreadCall:
        return ThreadCall(StoppedThread)

    def _waits_for_thread(self, context: Context) -> None:
        """A daemon that does not end is reported later."""


class _Ends:
    """Source of the keys whose daemons have ended, or become stable."""

    def __init__(self, options: ControllerOptions) -> None:
        self.variables = copy_context()
        self.slow_step = 0.0  # known once it runs
        self._options = options
        self._sink: Sink | None = None

    def __str__(self) -> str:
        return "ended daemons"

    async def run(self, sink: Sink) -> None:
        self._sink = sink
        self.slow_step = self._options.complete(sink.dependencies.controllers).slow_step or 0.0
        self.variables = copy_context()  # of the source: a daemon must not inherit those of a reconcile
        sink.ready()
        await asyncio.get_running_loop().create_future()

    def add(self, key: Hashable) -> None:
        if self._sink is not None:
            self._sink.add(key, DAEMON, 0, None)
