"""Cycle: calls the handlers of one change of one object, each until it has succeeded or failed for good.

- Progress is stored after each handler: after a crash, those that have finished are not called again.
- A handler that fails for now is called again after a delay; the others do not wait for it.
- The last handler's patch, result and the end of the handling are one request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from ostinato.api.errors import Conflict
from ostinato.api.serializer.scalars import encode_scalar
from ostinato.controllers.context import Context
from ostinato.controllers.result import PermanentError, TemporaryError, is_permanent
from ostinato.frontends.handlers.handler import (
    DELETE,
    RESUME,
    UPDATE,
    ErrorsMode,
    Handler,
    HandlerRetriesError,
    HandlerTimeoutError,
    parameters_of,
)
from ostinato.frontends.handlers.objects.diffs import Diff, diff, digest, reduced
from ostinato.frontends.handlers.objects.filters import Change
from ostinato.frontends.handlers.objects.patching import Patch
from ostinato.frontends.handlers.objects.views import View, resolve
from ostinato.frontends.handlers.running.calls import InThread, Kwargs, call, log_failure, object_arguments
from ostinato.frontends.handlers.running.current import handling
from ostinato.frontends.handlers.running.memory import Memory, Shared
from ostinato.frontends.handlers.running.recording import request_of
from ostinato.frontends.handlers.running.subhandlers import Scope, current_scope
from ostinato.frontends.handlers.state.progress import HandlerState, formatted
from ostinato.frontends.handlers.state.writing import ObjectWriter, PatchRejected

Json = dict[str, Any]

_CONFLICT_DELAY: Final = 1.0  # seconds before the retry of a handler that met a conflict


class HandlerFailed(TemporaryError):  # noqa: N818 - named after the event
    """A handler has failed and will be retried. The cause is its error."""


class HandlerGivenUp(PermanentError):  # noqa: N818
    """A handler has failed for good. The cause is its error."""


class _Unfinished(Exception):  # noqa: N818 - not an error of a handler
    """Sub-handlers have not finished."""

    def __init__(self, delay: float) -> None:
        self.delay = delay


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why an object is handled. `old` and `new` are essences; `initial`: the first time by this process."""

    reason: str
    body: Json
    old: Json | None
    new: Json
    initial: bool
    deleting: bool

    @property
    def diff(self) -> Diff:
        return diff(self.old, self.new)


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle works with."""

    context: Context
    writer: ObjectWriter
    shared: Shared
    in_thread: InThread
    typed: Callable[[Json], Any] | None = None  # decodes the object for `obj`; None if the kind has no class


def arguments_of(cause: Cause, memory: Memory, tools: Tools, handler: Handler | None, patch: Patch) -> Kwargs:
    """Return the arguments of a handler, or of filters if there is none."""
    path = () if handler is None else handler.filters.field
    found = {
        **object_arguments(cause.body),
        "patch": patch,
        "memo": memory.memo,
        "resource": tools.writer.resource,
        "logger": tools.context.logger,
        "reason": cause.reason,
        "old": resolve(cause.old, path) if path else _viewed(cause.old),
        "new": resolve(cause.new, path) if path else _viewed(cause.new),
        "diff": reduced(cause.diff, path) if path else cause.diff,
        **tools.shared.indexes,
    }
    if tools.typed is not None and handler is not None and "obj" in parameters_of(handler.function):
        found["obj"] = tools.typed(cause.body)
    return found


def change_of(cause: Cause, memory: Memory, tools: Tools) -> Change:
    """Return what filters look at."""
    made: list[Kwargs] = []

    def arguments() -> Kwargs:
        if not made:
            made.append(arguments_of(cause, memory, tools, None, Patch()))
        return made[0]

    return Change(cause.body, arguments, cause.old, cause.new)


class Cycle:
    def __init__(self, handlers: Iterable[Handler], cause: Cause, memory: Memory, tools: Tools) -> None:
        assert memory.record is not None, "the record is loaded first"
        self.handlers = list(handlers)
        self.body = cause.body  # as the last write returned it
        self.errors: list[tuple[Handler, Exception]] = []  # of this pass
        self._cause = cause
        self._memory = memory
        self._record = memory.record
        self._tools = tools
        self._clock = tools.context.world.clock
        self._seen = digest(cause.new)
        self._has_ended = False  # all handlers have finished, and the record says so
        kept = (cause.reason, RESUME) if cause.reason == UPDATE else (cause.reason,)
        self._record.progress = {name: each for name, each in self._record.progress.items() if each.purpose in kept}

    async def run(self) -> None:
        """Call the handlers that may be called now."""
        await self._run(self.handlers)

    @property
    def is_done(self) -> bool:
        return self._has_ended or all(self._state(each).is_finished for each in self.handlers)

    @property
    def wait(self) -> float:
        """Seconds until the next handler may be called; 0 at the end."""
        return 0.0 if self._has_ended else self._wait(self.handlers)

    def raise_errors(self, *, again: bool) -> None:
        """Raise the errors of this pass. `again`: the object needs another pass, after `wait` or with backoff."""
        if not self.errors:
            return
        text = "; ".join(f"{handler}: {type(error).__name__}: {error}" for handler, error in self.errors)
        delay = None if self._has_ended else self.wait
        failed = HandlerFailed(text, delay=delay) if again else HandlerGivenUp(text)
        errors = [error for _, error in self.errors if not isinstance(error, TemporaryError | PermanentError)]
        raise failed from (errors[0] if errors else None)

    # Calls

    async def _run(self, handlers: Iterable[Handler]) -> None:
        for handler in handlers:
            if self._has_ended:
                return
            state = self._state(handler)
            if not state.is_finished and not state.wait(self._clock.now()):
                await self._attempt(handler, state)

    async def _attempt(self, handler: Handler, state: HandlerState) -> None:
        """Call a handler, and write what follows from it."""
        patch, now = Patch(), self._clock.now()
        try:
            result = await self._called(handler, state, patch, now)
            if result is not None:
                patch.status[handler.id] = result
            state = state.succeeded(self._seen)
        except _Unfinished as unfinished:
            state = state.postponed(None, self._clock.now(), unfinished.delay)
        except (Exception, SystemExit, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever the function does
            state = self._judged(handler, state, _contained(error))
        self._record.progress[handler.id] = state
        await self._write(handler, patch)

    async def _called(self, handler: Handler, state: HandlerState, patch: Patch, now: datetime) -> Any:
        runtime = now - state.start(now)
        limit = None if handler.options.timeout is None else handler.options.timeout - runtime.total_seconds()
        if limit is not None and limit <= 0:
            raise HandlerTimeoutError(f"{handler} has timed out after {runtime}")
        if handler.options.retries is not None and state.retries >= handler.options.retries:
            raise HandlerRetriesError(f"{handler} has exceeded {handler.options.retries} retries")
        cause = msgspec.structs.replace(self._cause, body=self.body)
        arguments = arguments_of(cause, self._memory, self._tools, handler, patch) | {
            "param": handler.param,
            "retry": state.retries,
            "started": state.start(now),
            "runtime": runtime,
        }

        async def work() -> Any:
            scope = Scope(handler, self._run_children)
            token = current_scope.set(scope)
            try:
                with handling(self.body, self._tools.context):
                    result = await call(handler, arguments, self._tools.context, self._tools.in_thread, limit)
                    await scope.execute()
            finally:
                current_scope.reset(token)
            return _stored(result)

        recorder = self._tools.shared.recorder
        if not recorder.is_enabled:
            return await work()
        data = {"old": cause.old, "new": cause.new, "retry": state.retries}
        request = request_of(self._tools.shared.name, handler, cause.reason, self.body, data)
        return await recorder.record(request, patch, work)

    async def _run_children(self, handlers: list[Handler]) -> None:
        change = change_of(msgspec.structs.replace(self._cause, body=self.body), self._memory, self._tools)
        chosen = [
            each
            for each in handlers
            if each.filters.match_object(change) and each.filters.match_change(change, needs_change=False)
        ]
        await self._run(chosen)
        if not all(self._state(each).is_finished for each in chosen):
            raise _Unfinished(self._wait(chosen))

    def _state(self, handler: Handler) -> HandlerState:
        found = self._record.progress.get(handler.id)
        if found is None:
            now = formatted(self._clock.now())
            found = self._record.progress[handler.id] = HandlerState(purpose=self._cause.reason, started=now)
        return found

    def _wait(self, handlers: Iterable[Handler]) -> float:
        now = self._clock.now()
        states = [self._state(each) for each in handlers]
        return min((each.wait(now) for each in states if not each.is_finished), default=0.0)

    def _judged(self, handler: Handler, state: HandlerState, error: Exception) -> HandlerState:
        """Return the state after an error: retried later, or failed for good."""
        options, now = handler.options, self._clock.now()
        mode = options.errors or ErrorsMode.TEMPORARY
        delay = options.backoff
        if delay is None:
            delay = self._tools.shared.settings.execution.default_backoff
        if isinstance(error, TemporaryError):
            delay = delay if error.delay is None else error.delay
        elif is_permanent(error):
            return self._given_up(handler, state, error)
        elif mode is ErrorsMode.IGNORED:
            log_failure(self._tools.context.logger, handler, error, "handler failed; ignored")
            return state.succeeded(self._seen)
        elif mode is ErrorsMode.PERMANENT:
            return self._given_up(handler, state, error)
        elif isinstance(error, Conflict):
            delay = min(delay, _CONFLICT_DELAY)
        runtime = (now - state.start(now)).total_seconds()
        if options.timeout is not None and runtime + delay >= options.timeout:
            late = HandlerTimeoutError(f"it would exceed its timeout of {options.timeout:g} s: {error}")
            return self._given_up(handler, state, late)
        if options.retries is not None and state.retries + 1 >= options.retries:
            tired = HandlerRetriesError(f"it has exceeded its {options.retries} retries: {error}")
            return self._given_up(handler, state, tired)
        self.errors.append((handler, error))
        return state.postponed(f"{type(error).__name__}: {error}", now, delay)

    def _given_up(self, handler: Handler, state: HandlerState, error: Exception) -> HandlerState:
        self.errors.append((handler, error))
        return state.failed(f"{type(error).__name__}: {error}", self._seen)

    # Writes

    async def _write(self, handler: Handler, patch: Patch) -> None:
        """Write the patch of a handler and the progress; the end of the handling with the last one."""
        record, reason = self._record, self._cause.reason
        is_done = self.is_done
        if is_done and not self._has_ended:
            self._memory.failed = any(self._state(each).failure for each in self.handlers)
        if is_done and reason != DELETE:
            self._end()
        elif record.target is None and reason not in (DELETE, RESUME):
            record.target = self._cause.new
        stored = None if reason == RESUME or (is_done and reason == DELETE) else record
        self._memory.is_dirty = stored is not None
        try:
            self.body = await self._tools.writer.write(self.body, patch, stored, self._tools.context)
        except PatchRejected as error:
            self._reject(handler, error)
            self.body = await self._tools.writer.write(self.body, None, stored and self._record, self._tools.context)
        except BaseException:
            self._memory.unsent = patch
            raise
        self._memory.is_dirty = False

    def _end(self) -> None:
        """Note in the record that the change is handled."""
        record = self._record
        seen = {self._state(each).seen for each in self.handlers}
        record.last = self._cause.new if record.target is None or seen == {self._seen} else record.target
        record.target, record.progress = None, {}
        self._has_ended = True

    def _reject(self, handler: Handler, error: PatchRejected) -> None:
        """Report a patch that the server rejects. Calling the handler again would not help: it has done its work."""
        self.errors.append((handler, error))


def _contained(error: BaseException) -> Exception:
    """Return an error that a function raised, as an exception. Raises the cancellation of this task itself."""
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error
        wrapped: Exception = RuntimeError("something that the handler awaited was cancelled")
    elif isinstance(error, SystemExit):
        wrapped = RuntimeError(f"the handler called sys.exit({error.code!r})")
    else:
        assert isinstance(error, Exception)
        return error
    wrapped.__cause__ = error
    return wrapped


def _stored(result: Any) -> Any:
    """Return the result of a handler as JSON, for the status."""
    try:
        return None if result is None else msgspec.to_builtins(result, enc_hook=_encode, str_keys=True)
    except (TypeError, ValueError, RecursionError, NotImplementedError) as error:
        raise PermanentError(
            f"returned {type(result).__name__}, which cannot be stored in the status ({error}); return JSON or None"
        ) from None


def _encode(value: Any) -> Any:
    if isinstance(value, View):
        return dict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return encode_scalar(value)


def _viewed(essence: Json | None) -> Any:
    return None if essence is None else View(essence)
