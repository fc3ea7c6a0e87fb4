"""Queue sets: the seats of one priority level, and the queues of those who wait for one.

Fair queuing for server requests, as in kube-apiserver:

- A request takes seats while it is executed. If there are none, it waits in one of the queues that its flow was dealt.
- `R` is the work, in seat-seconds, that each queue that is not idle could have had since the beginning. Each queue has
  a virtual start: the `R` at which its next request begins. The queue whose next request would end first goes first.
- Work is estimated when a request is dispatched and corrected when it has ended.
- A request that is first and needs more seats than there are keeps the others waiting, so that it gets them.

One thing is not as in kube-apiserver: a flow that has no seat gets one although all are taken, for one request, until
twice as many are taken as there are. Otherwise it would wait for the end of requests that hold their seats for long,
because turns on the event loop (`turns`) are given to all of them.
"""

from __future__ import annotations

import asyncio
from collections import deque

from ostinato.server.flow.demand import Demand
from ostinato.server.flow.estimate import Estimate
from ostinato.server.flow.flow import Flow
from ostinato.server.request import Request
from ostinato.world import Clock

SERVICE_SECONDS = 0.003  # for which a request is thought to take its seats, before it has ended


class Seated:
    """A request that waits for seats, or has them."""

    __slots__ = ("arrival", "arrived", "estimate", "flow", "gate", "queue", "request", "started", "waits", "work")

    def __init__(self, flow: Flow, estimate: Estimate, request: Request | None, now: float, arrival: float) -> None:
        self.flow = flow
        self.request = request
        self.estimate = estimate
        self.arrived = now
        self.arrival = arrival  # R when it came
        self.queue: Queue | None = None
        self.started = -1.0  # when it was dispatched
        self.waits = False  # it is in its queue
        self.gate: asyncio.Future[None] | None = None  # there while it waits
        self.work = estimate.initial * SERVICE_SECONDS + estimate.final * estimate.seconds


class Queue:
    __slots__ = ("executing", "index", "seats", "start", "waiting", "work")

    def __init__(self, index: int) -> None:
        self.index = index
        self.waiting: deque[Seated] = deque()
        self.work = 0.0  # of those who wait
        self.executing = 0  # requests
        self.seats = 0  # that these have
        self.start = 0.0  # the R at which its next request begins

    @property
    def active(self) -> bool:
        return bool(self.waiting) or self.executing > 0


class QueueSet:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.exempt = False
        self.limit = 0  # seats
        self.length_limit = 0  # of a queue
        self.queues: list[Queue] = []  # none: what finds no seat is rejected
        self.r = 0.0
        self._last = clock.monotonic()  # when R was up to date
        self._active = 0  # queues that are not idle
        self._robin = -1  # the queue that was dispatched from last
        self._enqueues = 0
        self.waiting = self.waiting_seats = 0
        self.seated: set[Seated] = set()  # the requests that are executed
        self.brief = 0  # requests that are executed beside them, and took one seat that was free
        self.seats = 0  # that all of them and their watchers take
        self.rejected = self.timed_out = self.cancelled = 0
        self.demand = Demand(self._last)

    @property
    def executing(self) -> int:
        return len(self.seated) + self.brief

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.executing

    def configure(self, *, exempt: bool, limit: int, queues: int, length_limit: int) -> None:
        """Queues that there are too many of are removed when they are empty."""
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
        """Take one seat for a request if it is free and nobody waits: most requests need no more bookkeeping."""
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
        """Give back what `take_one` took."""
        self.seats -= 1
        self.brief -= 1
        flow.line.seated -= 1
        flow.count.executing -= 1
        flow.count.seats -= 1
        if self.waiting:
            self._sync()
            self._dispatch()

    def start(self, flow: Flow, estimate: Estimate, request: Request | None = None) -> Seated | None:
        """Take seats for a request, or a place in a queue (it has a `gate` then); None if there is no room."""
        now = self._sync()
        seated = Seated(flow, estimate, request, now, self.r)
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

    def leave(self, seated: Seated, *, timed_out: bool) -> None:
        """A request that waits goes away."""
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

    def finish(self, seated: Seated) -> None:
        """A request has ended; its seats are free now, or after the time for its watchers."""
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
        """Whether a request is the only one of its flow, and may have seats beyond the limit."""
        return not flow.line.seated and self.seats + seats <= 2 * self.limit

    def _fits(self, seats: int) -> bool:
        if self.exempt:
            return True
        if seats > self.limit:
            return not self.executing
        return self.seats + seats <= self.limit

    def _take(self, seated: Seated, now: float) -> None:
        seats = seated.estimate.seats
        seated.started = now
        seated.flow.line.seated += 1
        self.seated.add(seated)
        self.seats += seats
        seated.flow.count.executing += 1
        seated.flow.count.seats += seats
        seated.flow.count.dispatched += 1
        self.demand.seats.set(self.seats + self.waiting_seats, now)

    def _release_later(self, seated: Seated) -> None:
        self._sync()
        self._release(seated)
        self._dispatch()

    def _release(self, seated: Seated) -> None:
        seats = seated.estimate.seats
        self.seats -= seats
        seated.flow.count.seats -= seats
        if seated.queue is not None:
            seated.queue.seats -= seats
        self.demand.seats.set(self.seats + self.waiting_seats, self._last)

    # Virtual time

    def _sync(self) -> float:
        """Bring R up to date; the time."""
        now = self._clock.monotonic()
        if self._active:
            self.r += min(self.seats + self.waiting_seats, self.limit) / self._active * (now - self._last)
        self._last = now
        return now

    def _bound(self, queue: Queue) -> None:
        """What a queue could not use is not saved up: its next request does not begin before it came."""
        if queue.waiting:
            queue.start = max(queue.start, queue.waiting[0].arrival)

    # Queues

    def _choose(self, flow: Flow) -> Queue:
        """The queue of the flow's hand with the least work waiting."""
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

    def _left(self, seated: Seated) -> None:
        """A request is no longer in its queue."""
        self.waiting -= 1
        self.waiting_seats -= seated.estimate.seats
        seated.waits = False
        if seated.gate is not None:
            seated.flow.count.waiting -= 1

    def _next_queue(self) -> Queue:
        """The queue whose first request would end first, beginning after the one that was last."""
        count = len(self.queues)
        order = (self.queues[(self._robin + 1 + i) % count] for i in range(count))
        return min((queue for queue in order if queue.waiting), key=_end)


def _work(queue: Queue) -> float:
    return queue.work


def _end(queue: Queue) -> float:
    return queue.start + queue.waiting[0].work
