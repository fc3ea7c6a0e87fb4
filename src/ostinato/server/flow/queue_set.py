"""Queue set: the seats of one priority level, and the queues of requests that wait for seats.

Fair queuing for server requests, as in kube-apiserver:

- A request occupies seats while it is executed. If none are free, it waits in one of the queues dealt to its flow.
- `R` is the progress meter: the seat-seconds that each non-idle queue could have received so far. Each queue has a
  virtual start: the `R` at which its next request begins. The queue whose next request would finish first is served.
- Work is estimated when a request is dispatched and corrected when it finishes.
- A request that is next and needs more seats than are free holds back the others until it gets them.

Unlike in kube-apiserver, a flow without a seat gets one for a single request even if all are occupied, up to twice the
limit. Otherwise it would wait for requests that keep their seats for long because all of them take turns on the event
loop (`turns`).
"""

from __future__ import annotations

import asyncio
from collections import deque

from ostinato.server.flow.demand import Demand
from ostinato.server.flow.estimate import Estimate
from ostinato.server.flow.flow import Flow
from ostinato.server.request import Request
from ostinato.world import Clock

SERVICE_SECONDS = 0.003  # assumed duration of a request until it has finished


class SeatedRequest:
    """A request that waits for seats or occupies them."""

    __slots__ = ("arrival", "arrived", "estimate", "flow", "gate", "queue", "request", "started", "waits", "work")

    def __init__(self, flow: Flow, estimate: Estimate, request: Request | None, now: float, arrival: float) -> None:
        self.flow = flow
        self.request = request
        self.estimate = estimate
        self.arrived = now
        self.arrival = arrival  # R at its arrival
        self.queue: Queue | None = None
        self.started = -1.0  # when it was dispatched; negative before
        self.waits = False  # it is in a queue
        self.gate: asyncio.Future[None] | None = None  # resolved when it is dispatched
        self.work = estimate.initial * SERVICE_SECONDS + estimate.final * estimate.seconds


class Queue:
    __slots__ = ("executing", "index", "seats", "start", "waiting", "work")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[SeatedRequest] = deque()
        self.work = 0.0  # estimated work of the waiting requests
        self.executing = 0  # requests
        self.seats = 0  # occupied by them
        self.start = 0.0  # the R at which its next request begins

    @property
    def active(self) -> bool:
        return bool(self.waiting) or self.executing > 0


class QueueSet:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.exempt = False
        self.limit = 0  # seats
        self.length_limit = 0  # requests per queue
        self.queues: list[Queue] = []  # empty: requests without a free seat are rejected
        self.r = 0.0
        self._last = clock.monotonic()  # when R was updated
        self._active = 0  # queues that are not idle
        self._robin = -1  # the queue that was served last
        self._enqueues = 0
        self.waiting = self.waiting_seats = 0
        self.seated: set[SeatedRequest] = set()  # executing requests
        self.brief = 0  # further executing requests that took one free seat
        self.seats = 0  # occupied by all of them and their watchers
        self.rejected = self.timed_out = self.cancelled = 0
        self.demand = Demand(self._last)

    @property
    def executing(self) -> int:
        return len(self.seated) + self.brief

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.executing

    def configure(self, *, exempt: bool, limit: int, queues: int, length_limit: int) -> None:
        """Apply the configuration. Surplus queues are removed once they are idle."""
        self._sync()
        self.exempt = exempt
        self.limit = limit
        self.length_limit = length_limit
        for index in range(len(self.queues), queues):
            self.queues.append(Queue(index))
        while len(self.queues) > queues and not self.queues[-1].active:
            self.queues.pop()
        self._dispatch()

    def take_one(self, flow: Flow, now: float) -> bool:
        """Take one seat if one is free and no request waits: the fast path of most requests."""
        if not self.exempt and (self.waiting or self.seats >= self.limit) and not self._has_first(flow, 1):
            return False
        flow.line.seated += 1
        self.seats += 1
        self.brief += 1
        count = flow.count
        count.executing += 1
        count.seats += 1
        count.dispatched += 1
        self.demand.seats.set(self.seats, now)
        return True

    def give_one(self, flow: Flow) -> None:
        """Release the seat of `take_one`."""
        self.seats -= 1
        self.brief -= 1
        flow.line.seated -= 1
        flow.count.executing -= 1
        flow.count.seats -= 1
        if self.waiting:
            self._sync()
            self._dispatch()

    def start(self, flow: Flow, estimate: Estimate, request: Request | None = None) -> SeatedRequest | None:
        """Take seats for a request, or enqueue it (then it has a `gate`); None if it is rejected."""
        now = self._sync()
        seated = SeatedRequest(flow, estimate, request, now, self.r)
        first = self._has_first(flow, estimate.seats)
        if self.exempt or first or not flow.hand:
            if not first and not self._fits(estimate.seats):
                self.rejected += 1
                flow.count.reject("concurrency-limit")
                return None
            self._take(seated, now)
            return seated
        queue = self._choose(flow)
        if self.seats >= self.limit and len(queue.waiting) >= self.length_limit:
            self.rejected += 1
            flow.count.reject("queue-full")
            return None
        if not queue.waiting and not queue.executing:
            queue.start = self.r
            self._active += 1
        seated.queue = queue
        queue.waiting.append(seated)
        seated.waits = True
        queue.work += seated.work
        self.waiting += 1
        self.waiting_seats += estimate.seats
        self._dispatch()
        if seated.started < 0:
            seated.gate = asyncio.get_running_loop().create_future()
            flow.count.waiting += 1
            self.demand.seats.set(self.seats + self.waiting_seats, now)
        return seated

    def leave(self, seated: SeatedRequest, *, timed_out: bool) -> None:
        """Remove a waiting request."""
        queue = seated.queue
        assert queue is not None
        self._sync()
        queue.waiting.remove(seated)
        queue.work -= seated.work
        self._left(seated)
        self.rejected += 1
        self.cancelled += 1
        self.timed_out += timed_out
        seated.flow.count.reject("time-out")
        if not queue.active:
            self._active -= 1
        self._bound(queue)
        self.demand.seats.set(self.seats + self.waiting_seats, self._last)

    def finish(self, seated: SeatedRequest) -> None:
        """Finish a request: release its seats, now or after the time for its watchers."""
        now = self._sync()
        estimate, queue = seated.estimate, seated.queue
        self.seated.discard(seated)
        seated.flow.line.seated -= 1
        seated.flow.count.executing -= 1
        if queue is not None:
            queue.executing -= 1
            queue.start -= estimate.initial * (SERVICE_SECONDS - (now - seated.started))
            self._bound(queue)
            if not queue.active:
                self._active -= 1
        if estimate.seconds > 0:
            self._clock.timer(estimate.seconds, self._release_later, seated)
        else:
            self._release(seated)
        self._dispatch()

    # Seats

    def _has_first(self, flow: Flow, seats: int) -> bool:
        """Whether a request is the only one of its flow and may exceed the limit."""
        return not flow.line.seated and self.seats + seats <= 2 * self.limit

    def _fits(self, seats: int) -> bool:
        if self.exempt:
            return True
        if seats > self.limit:
            return not self.executing
        return self.seats + seats <= self.limit

    def _take(self, seated: SeatedRequest, now: float) -> None:
        seats = seated.estimate.seats
        seated.started = now
        seated.flow.line.seated += 1
        self.seated.add(seated)
        self.seats += seats
        seated.flow.count.executing += 1
        seated.flow.count.seats += seats
        seated.flow.count.dispatched += 1
        self.demand.seats.set(self.seats + self.waiting_seats, now)

    def _release_later(self, seated: SeatedRequest) -> None:
        self._sync()
        self._release(seated)
        self._dispatch()

    def _release(self, seated: SeatedRequest) -> None:
        seats = seated.estimate.seats
        self.seats -= seats
        seated.flow.count.seats -= seats
        if seated.queue is not None:
            seated.queue.seats -= seats
        self.demand.seats.set(self.seats + self.waiting_seats, self._last)

    # Virtual time

    def _sync(self) -> float:
        """Update R and return the current time."""
        now = self._clock.monotonic()
        if self._active:
            self.r += min(self.seats + self.waiting_seats, self.limit) / self._active * (now - self._last)
        self._last = now
        return now

    def _bound(self, queue: Queue) -> None:
        """Unused share is not saved: the next request of a queue does not start before its arrival."""
        if queue.waiting:
            queue.start = max(queue.start, queue.waiting[0].arrival)

    # Queues

    def _choose(self, flow: Flow) -> Queue:
        """Return the queue of the flow's hand with the least waiting work."""
        hand = flow.hand
        offset = self._enqueues % len(hand)
        self._enqueues += 1
        if not self.waiting:
            return self.queues[hand[offset]]
        return min((self.queues[card] for card in hand[offset:] + hand[:offset]), key=_work)

    def _dispatch(self) -> None:
        while self.waiting and self.seats < self.limit and self._dispatch_one():
            pass

    def _dispatch_one(self) -> bool:
        queue = self._next_queue()
        seated = queue.waiting[0]
        if not self._fits(seated.estimate.seats):
            return False
        self._robin = queue.index
        queue.waiting.popleft()
        queue.work -= seated.work
        self._left(seated)
        queue.executing += 1
        queue.seats += seated.estimate.seats
        queue.start += seated.work
        self._take(seated, self._last)
        if seated.gate is not None:
            seated.flow.count.waited(self._last - seated.arrived)
            if not seated.gate.done():
                seated.gate.set_result(None)
        self._bound(queue)
        return True

    def _left(self, seated: SeatedRequest) -> None:
        """Update the counters for a request that left its queue."""
        self.waiting -= 1
        self.waiting_seats -= seated.estimate.seats
        seated.waits = False
        if seated.gate is not None:
            seated.flow.count.waiting -= 1

    def _next_queue(self) -> Queue:
        """Return the queue whose first request would finish first, round-robin among equals."""
        count = len(self.queues)
        order = (self.queues[(self._robin + 1 + i) % count] for i in range(count))
        return min((queue for queue in order if queue.waiting), key=_end)


def _work(queue: Queue) -> float:
    return queue.work


def _end(queue: Queue) -> float:
    return queue.start + queue.waiting[0].work
