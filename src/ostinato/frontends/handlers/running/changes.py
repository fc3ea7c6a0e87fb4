"""Changes: the reconciler behind create, update, delete, resume and field handlers.

A reconcile compares the object with the state that was last handled, which is stored; events only say when to look.

| found | reason |
|---|---|
| no last handled state | create |
| a difference to it | update |
| none, and this process sees the object for the first time | resume |
| the object is being deleted, and has the finalizer | delete |
| otherwise | nothing to do |

- Resume handlers also run with an update, if the object is handled for the first time by this process.
- The finalizer is added before the first handler, if a delete handler may be called for the object; it is removed when
  the delete handlers have finished, and from objects that no longer match one.
- An object that matches no handler is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.client.views import Unstructured
from ostinato.controllers.context import Context
from ostinato.controllers.reconcilers import Reconciler
from ostinato.controllers.request import Request
from ostinato.controllers.result import Result, Unsettled
from ostinato.frontends.handlers.handler import CREATE, DELETE, NOOP, RESUME, UPDATE, Handler, distinct
from ostinato.frontends.handlers.objects.diffs import essence
from ostinato.frontends.handlers.running.cycle import Cause, Cycle, Tools, change_of
from ostinato.frontends.handlers.running.memory import Memories, Memory, Shared
from ostinato.frontends.handlers.state.stores import is_record
from ostinato.frontends.handlers.state.writing import ObjectWriter, PatchRejected

Json = dict[str, Any]

_DONE: Final = Result()
_UNSETTLED: Final = Unsettled()
_AGAIN: Final = Result(retry=True)  # with backoff: a handler may change its object without end
_MANY: Final = 10  # such changes in a row before a warning


class ChangeReconciler(Reconciler):
    def __init__(
        self,
        handlers: Sequence[Handler],
        writer: ObjectWriter,
        shared: Shared,
        memories: Memories,
        typed: Callable[[Json], Any] | None = None,
    ) -> None:
        super().__init__(_placeholder, None)
        self._kind: Unstructured = writer.view
        self._handlers = handlers
        self._writer = writer
        self._shared = shared
        self._memories = memories
        self._typed = typed
        self._uids: dict[Hashable, str] = {}  # of the objects that were handled
        paths = {each.filters.field for each in handlers if each.filters.field}
        self._extra = [path for path in paths if path[0] in ("status", "metadata")]

    async def run(self, context: Context) -> Result:
        key = context.request
        body = await context.client.get(self._kind, key, missing=None)
        if body is None:
            await self._forget(key, context)
            return _DONE
        if is_record(body):
            return _DONE
        context.object = body
        memory = self._memories.of(key, access.uid(body))
        self._uids[key] = memory.uid
        if memory.record is None:
            memory.record = await self._writer.store.load(body, context.client)
        if memory.is_dirty or memory.unsent is not None:
            body = await self._catch_up(body, memory, context)
        return await self._handle(body, memory, context)

    async def _catch_up(self, body: Json, memory: Memory, context: Context) -> Json:
        """Write what an earlier reconcile could not."""
        try:
            body = await self._writer.write(body, memory.unsent, memory.record, context)
        except PatchRejected as error:
            context.logger.error("patch of a handler rejected object=%s error=%s", context.request, error)
            body = await self._writer.write(body, None, memory.record, context)
        memory.is_dirty, memory.unsent = False, None
        return body

    async def _handle(self, body: Json, memory: Memory, context: Context) -> Result:
        finalizer = self._shared.finalizer
        deleting, blocked = access.is_being_deleted(body), finalizer in access.finalizers(body)
        if deleting and not blocked:
            return _DONE
        tools = self._tools(context)
        change = change_of(self._cause(body, memory), memory, tools)
        relevant = [each for each in self._handlers if each.filters.match_object(change)]
        needed = any(each.needs_finalizer for each in relevant)
        if blocked != needed and (blocked or not deleting):
            body = await self._writer.set_finalizer(body, finalizer, context, present=needed)
            if deleting:
                return _DONE
        if not relevant:
            return _DONE
        cause = self._cause(body, memory)
        if cause.reason == NOOP:
            memory.resumed = True
            return _UNSETTLED if memory.failed else _DONE
        handlers = [
            each
            for each in relevant
            if each.handles(cause.reason, initial=cause.initial, deleting=deleting)
            and each.filters.match_change(change, needs_change=each.needs_change)
        ]
        cycle = Cycle(distinct(handlers), cause, memory, tools)
        return await self._run(cycle, cause, memory, context)

    async def _run(self, cycle: Cycle, cause: Cause, memory: Memory, context: Context) -> Result:
        assert memory.record is not None
        if cycle.handlers:
            await cycle.run()
        elif cause.reason != DELETE:
            await self._skip(cause, memory, context)
        if not cycle.is_done:
            cycle.raise_errors(again=True)
            return Unsettled(requeue_after=cycle.wait)
        if cause.reason == DELETE:
            await self._writer.set_finalizer(cycle.body, self._shared.finalizer, context, present=False)
        elif not memory.is_dirty:
            memory.resumed = True
        # A handler has patched it, or it changed while handlers were retried.
        again = cause.reason != DELETE and self._essence(cycle.body) != memory.record.last
        if again and context.reconcile.attempt > _MANY:
            context.logger.warning(
                "handlers change their own object again and again; compare before you patch object=%s times=%d",
                context.request,
                context.reconcile.attempt,
            )
        cycle.raise_errors(again=again)
        return _AGAIN if again else _DONE

    async def _skip(self, cause: Cause, memory: Memory, context: Context) -> None:
        """Note a change for which there is no handler."""
        record = memory.record
        assert record is not None
        record.last, record.target, record.progress = cause.new, None, {}
        memory.is_dirty = True
        await self._writer.write(cause.body, None, record, context)
        memory.is_dirty = False

    def _cause(self, body: Json, memory: Memory) -> Cause:
        record = memory.record
        assert record is not None
        new, deleting = self._essence(body), access.is_being_deleted(body)
        if record.target is not None and record.last == new and not deleting:
            # The change was reverted while handlers were retried: those that saw it must see the reversal.
            record.last, record.target, record.progress = record.target, None, {}
        initial = not memory.resumed and record.last is not None
        if deleting:
            reason = DELETE
        elif record.last is None:
            reason = CREATE
        elif record.last != new:
            reason = UPDATE
        else:
            reason = RESUME if initial else NOOP
        return Cause(reason=reason, body=body, old=record.last, new=new, initial=initial, deleting=deleting)

    def _essence(self, body: Json) -> Json:
        return essence(body, self._extra)

    def _tools(self, context: Context) -> Tools:
        return Tools(
            context=context,
            writer=self._writer,
            shared=self._shared,
            in_thread=self.in_thread,
            typed=self._typed,
        )

    async def _forget(self, key: Hashable, context: Context) -> None:
        self._memories.gone(key)
        uid = self._uids.pop(key, None)
        if uid is not None:
            await self._writer.store.discard(uid, context.client)

    async def release(self, selects: Callable[[Hashable], bool]) -> None:
        """Forget objects of shards that another replica handles now."""
        for key in list(self._memories):
            if selects(key):
                self._memories.pop(key)
                self._uids.pop(key, None)


async def _placeholder(request: Request, ctx: Context) -> None:
    """Never called: `run` does the work."""
