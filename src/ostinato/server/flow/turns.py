"""Turns on the event loop: a fair scheduler for the processor time of one process.

- As long as all requests come from one flow (`contended` is false), nothing is measured and nothing waits.
- With requests of several flows, each step of a request is measured and charged to its flow's line. In one turn of the
  loop about `SLICE` seconds of work run; then the loop polls for new requests. A request of a flow that has used little
  waits for one slice of another flow, however many requests of that one are queued.
- Steps cannot be interrupted. Work that takes longer than a slice pauses by itself (`Turns.pause`) or runs in a worker
  thread (`heavy.HeavyLane`).
- Requests of the same process (the in-process transport) do not wait for turns: their number is bounded by the workers
  of its controllers.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar

from ostinato.server.flow.fair_queue import FairQueue, Line

T = TypeVar("T")

SLICE = 0.002  # seconds of work that run in one turn of the loop; writes of one turn share a commit
CALM_SECONDS = 10.0  # without a request of another flow, after which requests are no longer measured

Work = Callable[[], object] | asyncio.Future[None]  # a function to call, or a gate to open
Turn = Line[Work]


class Asking(Protocol):
    """A request: the line that its steps are charged to, None as long as nobody knows whose it is."""

    line: Turn | None


class Turns:
    """The scheduler of one event loop."""

    def __init__(self, clock: Callable[[], float], slice_: float = SLICE) -> None:
        """`clock`: the time of work is measured by it; in virtual time work takes none, so nothing ever waits."""
        self.clock = clock
        self.queue: FairQueue[Work] = FairQueue()
        self.contended = False  # requests of more than one line came in the last CALM_SECONDS
        self.latest: Turn | None = None  # line of the latest request
        self.busy = False  # work has to ask whether it may run: others wait, or this turn of the loop is used up
        self.began = 0.0  # when the step under way began
        self._slice = slice_
        self._met = 0.0  # when a request of another line than the one before came last
        self._spent = 0.0  # seconds, in this turn of the loop
        self._scheduled = False

    def meet(self, line: Turn | None) -> None:
        """Record a request of another line than the latest one; None if its flow was not determined."""
        if self.latest is not None:
            self.contended = True
            self._met = self.clock()
        self.latest = line

    def is_contended(self) -> bool:
        """Whether requests of several lines came lately. Call it only while `contended` is true; it may end that."""
        self.contended = self.busy or self.clock() - self._met < CALM_SECONDS
        return self.contended

    def may_run(self, line: Turn) -> bool:
        """Whether work of a line may run now: there is time and nobody else waits, or it is ahead of all who do."""
        if self._spent < self._slice and self.queue.holds_only(line):
            return True
        return self.queue.is_first(line)

    def charge(self, line: Turn | None, seconds: float) -> None:
        """Work of a line has run for so long."""
        if seconds == 0:  # in virtual time
            return
        if line is not None:
            self.queue.charge(line, seconds)
        self._spent += seconds
        if self._spent >= self._slice and not self.busy:
            self._use_up()

    def prepay(self, line: Turn | None) -> float:
        """Charge what the first step of a request is likely to take, before it runs; what was charged."""
        if line is None:
            return 0.0
        self.charge(line, line.begins)
        return line.begins

    def wait(self, line: Turn, work: Callable[[], object]) -> None:
        """Call a function when it is the line's turn. What it takes is measured and charged."""
        self._enqueue(line, work)

    def gate(self, line: Turn) -> asyncio.Future[None]:
        """Resolved when it is the line's turn. Whoever awaits it charges what the work takes."""
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(line, gate)
        return gate

    def steps(self, coroutine: Coroutine[Any, Any, T], request: Asking, prepaid: float = 0.0) -> Steps[T]:
        """Await a coroutine, each step of which is charged to the request's line and waits for its turn.

        `prepaid`: the first step has its turn already; so much was charged for it.
        """
        return Steps(coroutine, request, self, prepaid)

    async def pause(self) -> None:
        """Let others run if the step under way has used its slice. Call it often within long work."""
        if self.clock() - self.began >= self._slice:
            await _others()
            self.began = self.clock()

    def _use_up(self) -> None:
        """This turn of the loop is used up: what comes now waits for the next, unless it is ahead of the others."""
        self.busy = True
        if not self._scheduled:
            self._schedule()

    def _schedule(self) -> None:
        self._scheduled = True
        asyncio.get_running_loop().call_soon(self._turn)

    def _enqueue(self, line: Turn, work: Work) -> None:
        self.queue.push(line, work)
        self.busy = True
        if not self._scheduled:
            self._schedule()

    def _turn(self) -> None:
        """One turn of the loop begins: serve for a slice what waits, then let the loop look for more."""
        self._spent = 0.0
        queue, self.busy = self.queue, True
        while queue and self._spent < self._slice:
            self._serve()
        self._spent = 0.0  # what comes next has as much time again
        self.busy = self._scheduled = bool(queue)
        if queue:
            self._schedule()

    def _serve(self) -> None:
        line, work = self.queue.pop()
        if isinstance(work, asyncio.Future):
            if not work.done():  # else it was cancelled: who asked is gone
                work.set_result(None)
                self._spent += line.expected  # its step runs later in this turn, and is charged to the line then
            return
        self.began = began = self.clock()
        try:
            work()
        finally:
            self.charge(line, self.clock() - began)


@types.coroutine
def _others() -> Generator[None, None, None]:
    """Let others run once."""
    yield


class Steps(Generic[T]):
    """An awaitable that runs a coroutine step by step, as turns allow."""

    __slots__ = ("_coroutine", "_prepaid", "_request", "_turns")

    def __init__(self, coroutine: Coroutine[Any, Any, T], request: Asking, turns: Turns, prepaid: float) -> None:
        self._coroutine = coroutine
        self._prepaid = prepaid
        self._request = request
        self._turns = turns

    def __await__(self) -> Generator[Any, Any, T]:
        turns, request, send = self._turns, self._request, self._coroutine.send
        clock, prepaid = turns.clock, self._prepaid
        error: BaseException | None = None
        first = True
        try:
            while True:
                if turns.busy and error is None and not prepaid:
                    line = request.line
                    if line is not None and not turns.may_run(line):
                        try:
                            yield from turns.gate(line)
                        except BaseException as thrown:  # noqa: BLE001 - the coroutine gets it
                            error = thrown
                turns.began = began = clock()
                try:
                    waited = send(None) if error is None else self._coroutine.throw(error)
                except StopIteration as stop:
                    turns.charge(request.line, clock() - began - prepaid)
                    return stop.value  # type: ignore[no-any-return]
                seconds = clock() - began
                line = request.line
                turns.charge(line, seconds - prepaid)
                if line is not None:
                    if first:
                        line.begins += (seconds - line.begins) / 8
                    else:
                        line.expected += (seconds - line.expected) / 8
                prepaid, first = 0.0, False
                try:
                    error = None
                    yield waited
                except BaseException as thrown:  # noqa: BLE001 - the coroutine gets it
                    error = thrown
        finally:
            self._coroutine.close()
