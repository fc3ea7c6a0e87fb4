"""An event loop with real sockets and virtual time.

- Time stands still while callbacks are ready or sockets have data, and then jumps to the next timer.
- Executor calls run inline. So only data in flight between two sockets is unknown to the loop; it waits for that.
- Unhandled errors are collected in `failures`.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from typing import Any

from ostinato.world import DeadlockError

_IN_FLIGHT = 0.001  # longest delivery between two sockets, in real seconds
_DEADLOCK = 10.0  # real seconds without timer and data


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.failures: list[Exception] = []
        self._now = 0.0
        super().__init__(_Selector(self._jump))
        self.set_exception_handler(self._failed)

    def time(self) -> float:
        return self._now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised by the future
            done.set_exception(error)
        return done

    def _jump(self) -> None:
        self._now = max(self._now, self._scheduled[0].when())  # asyncio's heap of timers

    @staticmethod
    def _failed(loop: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, Exception):
            error = RuntimeError(context["message"])
        error.add_note(f"at {loop.time():.6f} s: {context['message']}")
        loop.failures.append(error)


class _Selector(selectors.DefaultSelector):
    def __init__(self, jump: Callable[[], None]) -> None:
        super().__init__()
        self._jump = jump
        self._quiet = False  # since the jump nothing has run but the timers themselves: they have set off nothing

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready; nothing, after a jump, if nothing comes. No timer is set if there is no timeout."""
        ready = super().select(0)
        if not ready and (timeout is None or timeout > 0):
            if timeout is None:
                ready = super().select(_DEADLOCK)
            elif not self._quiet:
                ready = super().select(_IN_FLIGHT)
            if not ready:
                if timeout is None:
                    raise DeadlockError("nothing can happen any more")
                self._jump()
                self._quiet = True
                return ready
        self._quiet = False
        return ready
