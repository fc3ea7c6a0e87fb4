"""Recording of handlers: each call of a create, update, delete, resume or field handler, as a request and a result.

| part | content |
|---|---|
| `request.trigger` | the reason, and as data the handler, `old`, `new` and `retry` |
| `request.parent` | the object |
| `result.operations` | the patch |
| `result.status` | the result of the handler |

A replay calls the function again, without a cluster: `ctx` is not available then.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any

from ostinato.frontends.handlers.handler import CHANGING, Handler
from ostinato.frontends.handlers.objects.diffs import diff, reduced
from ostinato.frontends.handlers.objects.patching import Patch, pruned
from ostinato.frontends.handlers.objects.views import View, resolve
from ostinato.frontends.handlers.running.calls import object_arguments, selected
from ostinato.frontends.kernel.recording import DIRECTORY, recorded
from ostinato.frontends.kernel.sync import Decider, SyncRequest, SyncResult, Trigger

Json = dict[str, Any]


class CallRecorder:
    """Records calls, if the environment asked for recordings when it was created."""

    def __init__(self) -> None:
        self.is_enabled = bool(os.environ.get(DIRECTORY))
        self._decide = recorded(self._call)

    async def record(self, request: SyncRequest, patch: Patch, call: Callable[[], Awaitable[Any]]) -> Any:
        """Make a call, and record it. Returns the result of the handler."""
        running = _Running(patch, call)
        token = _current.set(running)
        try:
            await self._decide(request)
        finally:
            _current.reset(token)
        return running.answer

    async def _call(self, request: SyncRequest) -> SyncResult:
        running = _current.get()
        running.answer = await running.call()
        return result_of(request, running.patch, running.answer)


class _Running:
    """The call that is made now."""

    def __init__(self, patch: Patch, call: Callable[[], Awaitable[Any]]) -> None:
        self.patch = patch
        self.call = call
        self.answer: Any = None


_current: ContextVar[_Running] = ContextVar("ostinato.handlers.recording")


def request_of(operator: str, handler: Handler, reason: str, body: Json, data: Json) -> SyncRequest:
    """Return the request of a call. `data`: the old and the new essence, and the number of earlier calls."""
    trigger = Trigger(type=reason, reasons=[handler.form], data={"handler": handler.id, **data})
    return SyncRequest(controller=operator, trigger=trigger, parent=body)


def result_of(request: SyncRequest, patch: Patch, answer: Any) -> SyncResult:
    change = pruned(patch)
    name = request.trigger.data["handler"]
    return SyncResult(
        operations=[{"operation": "MergePatch", "mergePatch": change}] if change else [],
        status=None if answer is None else {name: answer},
    )


def decider_of(handlers: Iterable[Handler]) -> Decider:
    """Return the decider that replays calls."""
    known: dict[tuple[str, str], Handler] = {(each.id, each.form): each for each in handlers if each.form in CHANGING}

    async def decide(request: SyncRequest) -> SyncResult:
        data = request.trigger.data
        handler = known.get((data.get("handler", ""), next(iter(request.trigger.reasons), "")))
        if handler is None:
            raise LookupError(f"there is no {request.trigger.reasons} handler {data.get('handler')!r} in the program")
        body, path, patch = request.parent or {}, handler.filters.field, Patch()
        old, new, retry = data.get("old"), data.get("new"), data.get("retry", 0)
        arguments = {
            **object_arguments(body),
            "patch": patch,
            "memo": {},
            "logger": logging.getLogger("ostinato.handlers"),
            "reason": request.trigger.type,
            "old": resolve(old, path) if path else (None if old is None else View(old)),
            "new": resolve(new, path) if path else View(new),
            "diff": reduced(diff(old, new), path) if path else diff(old, new),
            "param": handler.param,
            "retry": retry,
            "ctx": _NoContext(),
        }
        answer = handler.function(**selected(handler.function, arguments))
        if handler.is_async:
            answer = await answer
        return result_of(request, patch, answer)

    return decide


class _NoContext:
    """The context in a replay."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"ctx.{name} is not available in a replay: there is no cluster")
