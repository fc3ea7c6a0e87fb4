"""Daemons and timers: those of `ostinato.controllers.daemons`, called with the arguments of handlers.

- An exception is retried after `backoff`, TemporaryError after its delay; `retries` and `timeout` count from the first
  call that failed. After a permanent failure it stands still until the object changes.
- Of a timer, `interval` counts from the end of a call to the next one; with `sharp`, from start to start.
- The patch is sent after a call; for a daemon, when it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from ostinato.api import accessors as access
from ostinato.api.errors import NotFound
from ostinato.controllers.blocking.calls import StoppedThread
from ostinato.controllers.blocking.context import BlockingContext
from ostinato.controllers.context import Context
from ostinato.controllers.controller import Controller
from ostinato.controllers.daemons.decorators import daemon, timer
from ostinato.controllers.result import PermanentError, Result, TemporaryError, is_permanent
from ostinato.frontends.handlers.handler import ErrorsMode, Handler, HandlerRetriesError, HandlerTimeoutError
from ostinato.frontends.handlers.objects.filters import Change
from ostinato.frontends.handlers.objects.patching import Patch
from ostinato.frontends.handlers.running.calls import Kwargs, log_failure, object_arguments, selected
from ostinato.frontends.handlers.running.current import handling
from ostinato.frontends.handlers.running.memory import Memories, Shared
from ostinato.frontends.handlers.state.stores import is_record
from ostinato.frontends.handlers.state.writing import ObjectWriter

Json = dict[str, Any]


class Stopped:
    """`stopped`: true once the daemon must end; `stopped.wait(seconds)` sleeps at most so long."""

    def __init__(self, context: BlockingContext | Context) -> None:
        self._context = context

    def __bool__(self) -> bool:
        return isinstance(self._context, BlockingContext) and self._context.stopped

    def is_set(self) -> bool:
        return bool(self)

    def wait(self, seconds: float | None = None) -> Any:
        """Sleep, and return whether the daemon must end. In an `async def`, await it: it is cancelled instead."""
        limit = _FOR_EVER if seconds is None else seconds
        if isinstance(self._context, Context):
            return self._sleep(self._context, limit)
        try:
            self._context.sleep(limit)
        except StoppedThread:
            return True
        return bool(self)

    async def _sleep(self, context: Context, seconds: float) -> bool:
        await context.sleep(seconds)
        return False


_FOR_EVER = 1e9


class _Attempts(msgspec.Struct):
    """The calls of the function for one object since it last succeeded."""

    uid: str
    started: datetime
    retries: int = 0


class Background:
    """One daemon or timer of a kind."""

    def __init__(self, handler: Handler, writer: ObjectWriter, shared: Shared, memories: Memories) -> None:
        self._handler = handler
        self._writer = writer
        self._shared = shared
        self._memories = memories
        self._attempts: dict[Any, _Attempts] = {}
        self._is_timer = handler.form == "timer"

    def controller(self, name: str) -> Controller:
        """Create the controller that runs it."""
        options, view = self._handler.options, self._writer.view
        function = self._async_function() if self._handler.is_async else self._plain_function()
        when: Callable[[Any], object] = self._includes
        limits: Any = {"max_concurrent": self._shared.settings.workers, "error_conditions": False}
        if not self._is_timer:
            return daemon(view, name=name, when=when, **limits)(function).make()
        delay = options.initial_delay if isinstance(options.initial_delay, int | float) else 0.0
        return timer(
            view, every=options.interval, idle=options.idle, initial_delay=delay, name=name, when=when, **limits
        )(function).make()

    def _includes(self, body: Json) -> bool:
        if is_record(body):
            return False
        memory = self._memories.of(access.key(body), access.uid(body))
        return self._handler.filters.match_object(Change(body, lambda: self._arguments(body, memory.memo, Patch())))

    def _async_function(self) -> Callable[..., Any]:
        async def work(body: Json, ctx: Context) -> Result | None:
            patch, attempts = Patch(), self._begun(body, ctx.world.clock.now())
            try:
                await ctx.sleep(self._initial_delay(body))
                with handling(body, ctx):
                    await self._handler.function(**self._called_with(body, ctx, patch, attempts, ctx))
            except Exception as error:  # noqa: BLE001 - a user's function
                await self._send(body, patch, ctx)
                self._failed(error, attempts, ctx)
            else:
                await self._send(body, patch, ctx)
            return self._ended(body, ctx)

        return work

    def _plain_function(self) -> Callable[..., Any]:
        def work(body: Json, ctx: BlockingContext) -> Result | None:
            patch, attempts = Patch(), self._begun(body, ctx.world.clock.now())
            try:
                ctx.sleep(self._initial_delay(body))
                with handling(body, ctx.asynchronous):
                    self._handler.function(**self._called_with(body, ctx, patch, attempts, ctx.asynchronous))
            except Exception as error:  # noqa: BLE001 - a user's function
                ctx.wait(self._send(body, patch, ctx.asynchronous))
                self._failed(error, attempts, ctx.asynchronous)
            else:
                if not ctx.stopped:
                    ctx.wait(self._send(body, patch, ctx.asynchronous))
            return self._ended(body, ctx.asynchronous)

        return work

    # Attempts

    def _begun(self, body: Json, now: datetime) -> _Attempts:
        key, uid = access.key(body), access.uid(body)
        found = self._attempts.get(key)
        if found is None or found.uid != uid:
            found = self._attempts[key] = _Attempts(uid, now)
        return found

    def _ended(self, body: Json, context: Context) -> Result | None:
        self._attempts.pop(access.key(body), None)
        options = self._handler.options
        if self._is_timer and options.interval and not options.sharp:
            return Result(requeue_after=options.interval)
        del context
        return None

    def _failed(self, error: Exception, attempts: _Attempts, context: Context) -> None:
        """Raise what makes the controller retry, or give up. Returns if the error is ignored."""
        options = self._handler.options
        attempts.retries += 1
        backoff = options.backoff
        if backoff is None:
            backoff = self._shared.settings.execution.default_backoff
        delay = backoff
        if isinstance(error, TemporaryError):
            delay = backoff if error.delay is None else error.delay
        elif is_permanent(error):
            raise error
        elif options.errors is ErrorsMode.IGNORED:
            log_failure(context.logger, self._handler, error, f"{self._handler.form} failed; ignored")
            return
        elif options.errors is ErrorsMode.PERMANENT:
            raise PermanentError(f"{self._handler}: {type(error).__name__}: {error}") from error
        runtime = (context.world.clock.now() - attempts.started).total_seconds()
        if options.timeout is not None and runtime + delay >= options.timeout:
            raise HandlerTimeoutError(f"{self._handler} would exceed its timeout: {error}") from error
        if options.retries is not None and attempts.retries >= options.retries:
            raise HandlerRetriesError(f"{self._handler} has exceeded its {options.retries} retries: {error}") from error
        raise TemporaryError(f"{self._handler}: {type(error).__name__}: {error}", delay=delay) from error

    # Arguments and writes

    def _called_with(self, body: Json, ctx: Any, patch: Patch, attempts: _Attempts, context: Context) -> Kwargs:
        memory = self._memories.of(access.key(body), access.uid(body))
        now = context.world.clock.now()
        arguments = self._arguments(body, memory.memo, patch) | {
            "ctx": ctx,
            "logger": context.logger,
            "param": self._handler.param,
            "retry": attempts.retries,
            "started": attempts.started,
            "runtime": now - attempts.started,
            "stopped": Stopped(ctx),
        }
        return selected(self._handler.function, arguments)

    def _arguments(self, body: Json, memo: Any, patch: Patch) -> Kwargs:
        return {
            **object_arguments(body),
            "patch": patch,
            "memo": memo,
            "resource": self._writer.resource,
            **self._shared.indexes,
        }

    def _initial_delay(self, body: Json) -> float:
        """Return the seconds to wait; of a timer only before its first call, and only if a function gives them."""
        delay = self._handler.options.initial_delay
        memory = self._memories.of(access.key(body), access.uid(body))
        if self._is_timer and (not callable(delay) or self._handler.id in memory.begun):
            return 0.0
        memory.begun.add(self._handler.id)
        if delay is None or isinstance(delay, int | float):
            return float(delay or 0.0)
        return float(delay(**selected(delay, self._arguments(body, memory.memo, Patch()))))

    async def _send(self, body: Json, patch: Patch, context: Context) -> None:
        if patch:
            try:
                await self._writer.write(body, patch, None, context)
            except NotFound:
                return  # it was deleted meanwhile
