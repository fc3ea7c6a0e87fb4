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

SLICE = 0.0005  # seconds of work that run in one turn of the loop while flows contend; writes of a turn share a commit
CALM_SECONDS = 10.0  # without a request of another flow, after which requests are no longer measured

Work = Callable[[], object] | asyncio.Future[None]  # a function to call, or a gate to open
Turn = Line[Work]


class ChargedRequest(Protocol):
    """A request: the line that its steps are charged to; None until its flow is known."""

    line: Turn | None


class Turns:
    """Scheduler of one event loop."""

    def __init__(self, clock: Callable[[], float], slice_: float = SLICE) -> None:
        """`clock`: measures the steps. In virtual time steps take none, so nothing waits."""
        self.clock = clock
        self.queue: FairQueue[Work] = FairQueue()
        self.contended = False  # requests of more than one line came in the last CALM_SECONDS
        self.latest: Turn | None = None  # line of the latest request
        self.busy = False  # work must check `may_run`: other work waits, or the slice of this turn is used up
        self.began = 0.0  # when the current step began
        self._slice = slice_
        self._met = 0.0  # when a request of another line than the one before came last
        self._spent = 0.0  # seconds of this turn of the loop
        self._scheduled = False

    def meet(self, line: Turn | None) -> None:
        """Record a request of another line than the latest one; None if its flow was not determined.

        Lines of exempt priority levels do not contend with each other, as health probes with an administrator.
        """
        latest = self.latest
        if latest is not None and not (line is not None and line.belongs.exempt and latest.belongs.exempt):
            self.contended = True
            self._met = self.clock()
        self.latest = line

    def is_contended(self) -> bool:
        """Whether requests of several lines came lately. Call it only while `contended` is true; it may end that."""
        self.contended = self.busy or self.clock() - self._met < CALM_SECONDS
        return self.contended

    def may_run(self, line: Turn) -> bool:
        """Whether work of a line may run now: the slice is not used up and no other line waits, or the line is next."""
        if self._spent < self._slice and self.queue.holds_only(line):
            return True
        return self.queue.is_first(line)

    def charge(self, line: Turn | None, seconds: float) -> None:
        """Charge time to a line."""
        if seconds == 0:  # in virtual time
            return
        if line is not None:
            self.queue.charge(line, seconds)
        self._spent += seconds
        if self._spent >= self._slice and not self.busy:
            self._use_up()

    def prepay(self, line: Turn | None) -> float:
        """Charge the expected duration of a request's first step in advance, and return it."""
        if line is None:
            return 0.0
        self.charge(line, line.begins)
        return line.begins

    def wait(self, line: Turn, work: Callable[[], object]) -> None:
        """Call a function when it is the line's turn; its duration is measured and charged."""
        self._enqueue(line, work)

    def gate(self, line: Turn) -> asyncio.Future[None]:
        """Return a future that is resolved when it is the line's turn. The caller charges the duration of its work."""
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._enqueue(line, gate)
        return gate

    def steps(self, coroutine: Coroutine[Any, Any, T], request: ChargedRequest, prepaid: float = 0.0) -> Steps[T]:
        """Return an awaitable that runs a coroutine; each step is charged to the request's line and waits for its turn.

        `prepaid`: time already charged for the first step, which runs without waiting.
        """
        return Steps(coroutine, request, self, prepaid)

    async def pause(self) -> None:
        """Yield to other tasks if the current step has used its slice. Call it often within long work."""
        if self.clock() - self.began >= self._slice:
            await _others()
            self.began = self.clock()

    def _use_up(self) -> None:
        """Mark the slice of this turn as used up: new work waits for the next turn, unless its line is next."""
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
        """Begin a turn of the loop: serve waiting work for one slice, then let the loop poll for requests."""
        self._spent = 0.0
        queue, self.busy = self.queue, True
        while queue and self._spent < self._slice:
            self._serve()
        self._spent = 0.0  # later work of this turn has a slice of its own
        self.busy = self._scheduled = bool(queue)
        if queue:
            self._schedule()

    def _serve(self) -> None:
        line, work = self.queue.pop()
        if isinstance(work, asyncio.Future):
            if not work.done():  # otherwise it was cancelled
                work.set_result(None)
                self._spent += line.expected  # its step runs later in this turn and is charged then
            return
        self.began = began = self.clock()
        try:
            work()
        finally:
            self.charge(line, self.clock() - began)


@types.coroutine
def _others() -> Generator[None, None, None]:
    """Yield to the event loop once."""
    yield


class Steps(Generic[T]):
    """Awaitable that runs a coroutine step by step, each in its turn."""

    __slots__ = ("_coroutine", "_prepaid", "_request", "_turns")

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], request: ChargedRequest, turns: Turns, prepaid: float
    ) -> None:
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
                contended = turns.contended and turns.is_contended()
                if contended and turns.busy and error is None and not prepaid:
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
                    if contended:
                        turns.charge(request.line, clock() - began - prepaid)
                    return stop.value  # type: ignore[no-any-return]
                if contended:
                    self._charge(clock() - began, prepaid, first)
                prepaid, first = 0.0, False
                try:
                    error = None
                    yield waited
                except BaseException as thrown:  # noqa: BLE001 - the coroutine gets it
                    error = thrown
        finally:
            self._coroutine.close()

    def _charge(self, seconds: float, prepaid: float, first: bool) -> None:
        """Charge a step to the line of the request, and learn how long its steps take."""
        line = self._request.line
        self._turns.charge(line, seconds - prepaid)
        if line is None:
            return
        if first:
            line.begins += (seconds - line.begins) / 8
        else:
            line.expected += (seconds - line.expected) / 8
