"""Heavy lane: runs long functions in one worker thread, one at a time, in an order that is fair to flows.

- A function that takes longer than a slice and cannot pause would block the event loop; here it runs beside it. While
  one runs, the interpreter switches threads every `SWITCH` seconds, so that requests of other flows are delayed by few
  switches.
- There is one thread, because the interpreter runs one at a time: a second would only take time from the event loop.
- Functions must not modify data that the event loop's thread uses at the same time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TypeVar

from ostinato.server.flow.fair_queue import FairQueue
from ostinato.server.flow.turns import Turn, Turns
from ostinato.world import World

T = TypeVar("T")

SWITCH = 0.0001  # interpreter switch interval while a function runs, in seconds
HEAVY_BYTES = 64 * 1024  # JSON from this size on is heavy
HEAVY_MEMBERS = 300  # as is JSON with more members of objects and lists
LIGHT_BYTES = 4096  # JSON up to this size is never heavy


def is_heavy(data: bytes, media: str = "json") -> bool:
    """Whether an object is too large to process on the event loop. YAML is slow to parse, whatever its content."""
    size = len(data)
    return size > LIGHT_BYTES and (size >= HEAVY_BYTES or media == "yaml" or data.count(b",") > HEAVY_MEMBERS)


class HeavyLane:
    def __init__(self, world: World, turns: Turns) -> None:
        self._executor = world.executor.separate()
        self.turns = turns
        self._clock = world.clock.monotonic
        self._queue: FairQueue[asyncio.Future[None]] = FairQueue()
        self._taken = False
        self._interval = sys.getswitchinterval()  # to restore afterwards
        self.runs = 0  # functions that have run

    async def run(self, line: Turn | None, function: Callable[[], T]) -> T:
        """Call a function in the worker thread when it is the line's turn. `line`: None for an unknown flow."""
        if line is None:
            line = self.turns.queue.line("", 1, None)
        own = self._queue.line(line.belongs.name, line.belongs.shares, line.flow)
        if self._taken:
            gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._queue.push(own, gate)
            try:
                await gate
            except asyncio.CancelledError:
                if gate.done() and not gate.cancelled():  # it was this call's turn
                    self._next()
                raise
        self._taken = True
        self.runs += 1
        sys.setswitchinterval(min(SWITCH, self._interval))
        began = self._clock()
        call = asyncio.ensure_future(self._executor.run(function))

        def ended(call: asyncio.Future[T]) -> None:
            if not call.cancelled():
                call.exception()  # the caller may have been cancelled; mark it as retrieved
            self._queue.charge(own, self._clock() - began)
            self._next()

        call.add_done_callback(ended)
        return await asyncio.shield(call)  # a thread cannot be cancelled; the lane stays occupied until it ends

    def close(self) -> None:
        self._executor.close()

    def _next(self) -> None:
        while self._queue:
            _, gate = self._queue.pop()
            if not gate.done():
                gate.set_result(None)
                return
        self._taken = False
        sys.setswitchinterval(self._interval)
