"""Agenda: ready queue and timers of a simulated loop.

- Time does not advance while a callback is ready; then it jumps to the next timer.
- Callbacks run in the order in which they became ready; timers of the same time in the order in which they were set.
- With interleaving the next task is drawn at random from those that are ready. Plain callbacks keep their order. These
  schedules are possible with other timings, so a correct program works with all of them.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from ostinato.world.rng import Rng

_FEW_TIMERS = 100  # below this, cancelled timers are not removed early


class Agenda:
    def __init__(self, interleave: Rng | None = None) -> None:
        self.time = 0.0
        self._interleave = interleave
        self._ready: deque[asyncio.Handle] = deque()  # in order; all ready callbacks, without interleaving
        self.add: Callable[[asyncio.Handle], None] = self._ready.append if interleave is None else self._add_drawn
        self._ready_tasks: list[asyncio.Handle] = []  # with interleaving: ready tasks, unordered
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []  # a heap; the number orders equal times
        self._numbers = itertools.count()
        self._cancelled = 0  # number of cancelled timers in the heap

    def _add_drawn(self, handle: asyncio.Handle) -> None:
        if _task_of(callback_of(handle)) is not None:
            self._ready_tasks.append(handle)
        else:
            self._ready.append(handle)

    def add_timer(self, timer: asyncio.TimerHandle) -> None:
        when = timer.when()
        if math.isnan(when):
            raise ValueError("the time of a timer is NaN")
        if when <= self.time:
            self.add(timer)
        else:
            heapq.heappush(self._timers, (when, next(self._numbers), timer))
            timer._scheduled = True  # type: ignore[attr-defined]  # asyncio's flag: the timer is in a heap

    def timer_was_cancelled(self, timer: asyncio.TimerHandle) -> None:
        """Remove cancelled timers if they are more than half; otherwise each is removed at its time."""
        if not timer._scheduled:  # type: ignore[attr-defined]
            return
        self._cancelled += 1
        if len(self._timers) > _FEW_TIMERS and self._cancelled * 2 > len(self._timers):
            self._timers = [entry for entry in self._timers if entry[2] is not timer and not entry[2].cancelled()]
            heapq.heapify(self._timers)
            self._cancelled = 0

    def next(self) -> asyncio.Handle | None:
        """Remove and return the next ready callback, which may be cancelled; None if there is none."""
        if self._interleave is None:
            return self._ready.popleft() if self._ready else None
        if not self._ready and not self._ready_tasks:
            return None
        draw = self._interleave.randrange(len(self._ready) + len(self._ready_tasks)) - len(self._ready)
        if draw < 0:
            return self._ready.popleft()
        tasks = self._ready_tasks
        tasks[draw], tasks[-1] = tasks[-1], tasks[draw]
        return tasks.pop()

    def next_time(self) -> float:
        """Return the time of the next timer; infinity if there is none."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
            self._cancelled -= 1
        return self._timers[0][0] if self._timers else math.inf

    def move_to(self, when: float) -> None:
        """Advance the time to `when`, and make the due timers ready."""
        self.time = when
        while self._timers and self._timers[0][0] <= when:
            timer = heapq.heappop(self._timers)[2]
            timer._scheduled = False  # type: ignore[attr-defined]
            if timer.cancelled():
                self._cancelled -= 1
            else:
                self.add(timer)

    def clear(self) -> None:
        """Drop all callbacks and timers."""
        self._ready.clear()
        self._ready_tasks.clear()
        self._timers.clear()
        self._cancelled = 0


def callback_of(handle: asyncio.Handle) -> Callable[..., object]:
    callback: Callable[..., object] = handle._callback  # type: ignore[attr-defined]
    return callback


def name_of(callback: Callable[..., object]) -> str:
    """Return a name that is the same in every run: of the task that the callback resumes, or of the function."""
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):  # most callbacks
        return owner.get_name()
    while isinstance(callback, partial):
        callback = callback.func
    task = _task_of(callback)
    if task is not None:
        return task.get_name()
    return getattr(callback, "__qualname__", type(callback).__qualname__)


def _task_of(callback: Callable[..., object]) -> asyncio.Task[Any] | None:
    owner = getattr(callback, "__self__", None)
    return owner if isinstance(owner, asyncio.Task) else None
