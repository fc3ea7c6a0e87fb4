"""Watch events: `on.event` handlers, called with every event of an object, in order, without progress or retries.

- The first list of a process has events of the type None.
- Objects do not wait for each other. An error is logged, and the next event follows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.errors import Conflict, NotFound
from ostinato.cache.events import Added, Deleted, Event
from ostinato.controllers.context import Context
from ostinato.controllers.current import Reconcile
from ostinato.controllers.objects.applying import Applier
from ostinato.controllers.reasons import Why
from ostinato.controllers.reconcilers import Reconciler
from ostinato.controllers.runnable import Dependencies
from ostinato.frontends.handlers.handler import Handler
from ostinato.frontends.handlers.objects.filters import Change
from ostinato.frontends.handlers.objects.patching import Patch
from ostinato.frontends.handlers.running.calls import Kwargs, call, log_failure, object_arguments
from ostinato.frontends.handlers.running.current import handling
from ostinato.frontends.handlers.running.memory import Memories, Shared
from ostinato.frontends.handlers.state.stores import is_record
from ostinato.frontends.handlers.state.writing import ObjectWriter

Json = dict[str, Any]

_WHY: Final = Why(("watch event",), None)


class EventWatch(Reconciler):
    """The event handlers of a kind, as a runnable. A reconciler only for its threads."""

    def __init__(
        self, name: str, handlers: Sequence[Handler], writer: ObjectWriter, shared: Shared, memories: Memories
    ) -> None:
        super().__init__(_placeholder, None)
        self.name = name
        self._handlers = handlers
        self._writer = writer
        self._shared = shared
        self._memories = memories
        self._waiting: dict[Hashable, deque[tuple[str | None, Json]]] = {}  # events of keys that have a task
        self._tasks: set[asyncio.Task[None]] = set()
        self.has_synced = False

    async def run(self, dependencies: Dependencies) -> None:  # type: ignore[override]  # a runnable
        informer = dependencies.informers.of(self._writer.view)
        registration = informer.add_handler(lambda event: self._received(event, dependencies), name=self.name)
        try:
            informer.start()
            await registration.synced()
            self.has_synced = True
            await asyncio.get_running_loop().create_future()
        finally:
            registration.remove()
            await self._stop()

    async def _stop(self) -> None:
        """Let running handlers finish; when cancelled again, cancel them."""
        for waiting in self._waiting.values():
            waiting.clear()
        try:
            if self._tasks:
                await asyncio.wait(self._tasks)
        except asyncio.CancelledError:
            self.abandon()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)
            raise

    def _received(self, event: Event, dependencies: Dependencies) -> None:
        if isinstance(event, Deleted):
            kind: str | None = "DELETED"
        elif isinstance(event, Added):
            kind = None if event.initial else "ADDED"
        else:
            kind = "MODIFIED"
        body, key = event.object.read(self._writer.view), event.key
        if is_record(body):
            return
        known = self._waiting.get(key)
        if known is not None:
            known.append((kind, body))
            return
        waiting = self._waiting[key] = deque([(kind, body)])
        task = asyncio.get_running_loop().create_task(self._work(key, waiting, dependencies), name=f"{self.name} {key}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, key: Any, waiting: deque[tuple[str | None, Json]], dependencies: Dependencies) -> None:
        reconcile = Reconcile(
            id=dependencies.world.ids.uid(),
            controller=self.name,
            request=key,
            gvk=self._writer.view.gvk,
            why=_WHY,
            attempt=1,
        )
        context = Context(reconcile, dependencies, Applier(dependencies.client, self.name), ())
        try:
            while waiting:
                kind, body = waiting.popleft()
                await self._handle(kind, body, context)
        finally:
            del self._waiting[key]

    async def _handle(self, kind: str | None, body: Json, context: Context) -> None:
        context.object = body
        memory = self._memories.of(context.request, access.uid(body))
        patch = Patch()
        now = context.world.clock.now()
        arguments: Kwargs = {
            **object_arguments(body),
            "patch": patch,
            "memo": memory.memo,
            "resource": self._writer.resource,
            "logger": context.logger,
            "type": kind,
            "event": {"type": kind, "object": body},
            "retry": 0,
            "started": now,
            "runtime": now - now,
            **self._shared.indexes,
        }
        change = Change(body, lambda: arguments)
        for handler in self._handlers:
            try:
                if handler.filters.match_object(change):
                    with handling(body, context):
                        result = await call(handler, arguments | {"param": handler.param}, context, self.in_thread)
                    if result is not None:
                        patch.status[handler.id] = result
            except Exception as error:  # noqa: BLE001 - a user's function
                log_failure(context.logger, handler, error, "event handler failed")
        if kind == "DELETED":
            self._memories.pop(context.request)
        elif patch:
            await self._send(body, patch, context)

    async def _send(self, body: Json, patch: Patch, context: Context) -> None:
        try:
            await self._writer.write(body, patch, None, context)
        except (NotFound, Conflict):  # the object is gone
            return
        except Exception as error:  # noqa: BLE001 - reported; the next event follows
            context.logger.error("patch of event handlers failed object=%s error=%s", context.request, error)


async def _placeholder(request: Any, ctx: Any) -> None:
    """Never called."""
