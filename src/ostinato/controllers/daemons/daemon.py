"""Daemon: the task of one object, from its start to its end.

- `stop` cancels it. A cancelled daemon ends when its `finally` blocks have run; until then it is stopping.
- One that does not end is cancelled again, and logged, at intervals.
- `enqueue` is called after the end, also if it was stopped before its first step; and after a failure of the previous
  daemon when this one has become stable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context as Variables
from logging import Logger
from typing import Any, Final

from ostinato.world import Clock, Timer

STABLE: Final = 60.0  # seconds that the daemon after a failed one has to run before the backoff is reset
_PATIENCE: Final = 60.0  # seconds that a stopped daemon may take to end before it is logged and cancelled again


class Daemon:
    def __init__(self, uid: str, clock: Clock, logger: Logger) -> None:
        """`uid`: of its object."""
        self.uid = uid
        self.is_stopping = False
        self.is_stable = True
        self.error: Exception | None = None  # of a daemon that ended by itself
        self._clock = clock
        self._logger = logger
        self._task: asyncio.Task[object] | None = None
        self._timer: Timer | None = None  # until it is stable, or, once it is stopping, until it is cancelled again

    def start(
        self, name: str, work: Coroutine[Any, Any, object], variables: Variables, enqueue: Callable[[], object]
    ) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name, context=variables)
        task.add_done_callback(self._done)
        task.add_done_callback(lambda _: enqueue())
        self._task = task

    def watch_stability(self, enqueue: Callable[[], object]) -> None:
        """Become stable, and enqueue, after it has run for a while: the previous daemon of the object failed."""

        def stable() -> None:
            self.is_stable = True
            enqueue()

        self.is_stable = False
        self._timer = self._clock.timer(STABLE, stable)

    @property
    def has_ended(self) -> bool:
        return self._task is None or self._task.done()

    def stop(self) -> None:
        """Cancel the task. No effect if it is stopping or has ended."""
        if self.is_stopping or self.has_ended:
            return
        self.is_stopping = True
        self._cancel()

    def abandon(self) -> None:
        """Cancel the task again: the time for its clean-up is over."""
        if self._task is not None and not self._task.done():
            self._task.cancel()

    async def wait(self) -> None:
        """Wait for the end."""
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])

    def _cancel(self) -> None:
        assert self._task is not None
        self._task.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.timer(_PATIENCE, self._insist)

    def _insist(self) -> None:
        assert self._task is not None
        self._logger.warning("daemon does not end after cancellation, waiting task=%r", self._task.get_name())
        self._cancel()

    def _done(self, task: asyncio.Task[object]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if task.cancelled():
            if not self.is_stopping:
                self.error = RuntimeError("the daemon was cancelled by something it awaited, or cancelled itself")
            return
        error = task.exception()
        if error is None:
            return
        if self.is_stopping:
            self._logger.error(
                "daemon failed while it was stopped task=%r error=%s: %s",
                task.get_name(),
                type(error).__name__,
                error,
                exc_info=error,
            )
        elif isinstance(error, Exception):
            self.error = error
        else:
            self.error = RuntimeError(f"the daemon raised {error!r}")
            self.error.__cause__ = error
