"""The work queue against a naive model: random sequences of calls, in virtual time.

The model keeps plain lists and searches them on each call: queued keys in order, keys being processed, delayed keys and
their times, and counters.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ostinato.queue import FastSlow, QueueShutDown, QueueStatistics, WorkQueue
from ostinato.world import Clock

KEYS = st.sampled_from("abcdef")
PRIORITIES = st.sampled_from([-100, -100, 0, 0, 0, 7])


@dataclass
class Entry:
    key: str
    priority: int


@dataclass
class Model:
    now: int = 0
    queued: list[Entry] = field(default_factory=list)  # in order of arrival in their priority
    processing: dict[str, int] = field(default_factory=dict)
    again: dict[str, int] = field(default_factory=dict)  # added while processed
    waiting: list[tuple[int, int, str, int]] = field(default_factory=list)  # when, number, key, priority
    failures: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    adds: int = 0
    down: bool = False

    def add(self, key: str, priority: int) -> None:
        if self.down:
            return
        if key in self.processing:
            self.adds += key not in self.again
            self.again[key] = max(priority, self.again.get(key, priority))
            return
        for entry in self.queued:
            if entry.key == key:
                if priority > entry.priority:
                    self.queued.remove(entry)
                    self.queued.append(Entry(key, priority))
                return
        self.adds += 1
        self.queued.append(Entry(key, priority))

    def add_after(self, key: str, delay: int, priority: int) -> None:
        if self.down:
            return
        if delay <= 0:
            self.add(key, priority)
            return
        self.calls += 1
        when = self.now + delay
        for wait in self.waiting:
            if wait[2] == key:
                if wait[0] <= when and wait[3] >= priority:
                    return
                self.waiting.remove(wait)
                when, priority = min(when, wait[0]), max(priority, wait[3])
                break
        self.waiting.append((when, self.calls, key, priority))

    def advance(self, seconds: int) -> None:
        self.now += seconds
        for wait in sorted(self.waiting):
            if wait[0] <= self.now:
                self.waiting.remove(wait)
                self.add(wait[2], wait[3])

    def get(self) -> str:
        first = max(self.queued, key=lambda entry: entry.priority)  # the first of those
        self.queued.remove(first)
        self.processing[first.key] = first.priority
        return first.key

    def done(self, key: str) -> None:
        del self.processing[key]
        if key in self.again:
            self.queued.append(Entry(key, self.again.pop(key)))


class SteppedClock(Clock):
    """Whole seconds, moved by hand; fires the one timer that may be set."""

    def __init__(self) -> None:
        self.at = 0.0
        self.timers: list[SteppedTimer] = []

    def monotonic(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at

    def _loop_time_at(self, at: float) -> float:
        return at

    def timer(self, delay: float, callback: object, *_: object) -> SteppedTimer:
        timer = SteppedTimer(self.at + delay, callback)
        self.timers.append(timer)
        return timer

    def active(self) -> list[SteppedTimer]:
        self.timers = [timer for timer in self.timers if not timer.over]
        assert len(self.timers) <= 1
        return self.timers

    def advance(self, seconds: int) -> None:
        until = self.at + seconds
        while (timers := self.active()) and timers[0].when <= until:
            self.at = timers[0].when
            timers[0].over = True
            timers[0].callback()  # type: ignore[operator]
        self.at = until


class SteppedTimer:
    def __init__(self, when: float, callback: object) -> None:
        self.when, self.callback, self.over = when, callback, False

    def cancel(self) -> None:
        self.over = True

    def cancelled(self) -> bool:
        return self.over


class Calls(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = SteppedClock()
        self.statistics: QueueStatistics[str] = QueueStatistics("calls", self.clock)
        self.queue: WorkQueue[str] = WorkQueue(self.clock, limiter=FastSlow(1, 5, 2), metrics=self.statistics)
        self.model = Model()

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: int) -> None:
        self.queue.add(key, priority)
        self.model.add(key, priority)

    @rule(key=KEYS, delay=st.integers(-1, 6), priority=PRIORITIES)
    def add_after(self, key: str, delay: int, priority: int) -> None:
        self.queue.add_after(key, delay, priority)
        self.model.add_after(key, delay, priority)

    @rule(key=KEYS, priority=PRIORITIES)
    def add_rate_limited(self, key: str, priority: int) -> None:
        self.queue.add_rate_limited(key, priority)
        failures = self.model.failures[key] = self.model.failures.get(key, 0) + 1
        self.model.add_after(key, 1 if failures <= 2 else 5, priority)

    @rule(key=KEYS)
    def forget(self, key: str) -> None:
        self.queue.forget(key)
        self.model.failures.pop(key, None)

    @rule()
    def get(self) -> None:
        if self.model.queued:
            assert self.queue.get_nowait() == self.model.get()
        else:
            try:
                got = self.queue.get_nowait()
            except asyncio.QueueEmpty:
                assert not self.model.down
            except QueueShutDown:
                assert self.model.down
            else:
                raise AssertionError(f"got {got} from an empty queue")

    @precondition(lambda self: self.model.processing)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.processing)))
        self.queue.done(key)
        self.model.done(key)

    @rule(seconds=st.integers(1, 4))
    def advance(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.model.advance(seconds)

    @precondition(lambda self: self.model.adds > 12)
    @rule()
    def shut_down(self) -> None:
        self.queue.shut_down()
        self.model.down = True
        self.model.waiting.clear()

    @invariant()
    def agrees(self) -> None:
        queue, model = self.queue, self.model
        assert len(queue) == len(model.queued)
        assert queue._processing == model.processing
        assert queue._dirty == model.again | {entry.key: entry.priority for entry in model.queued}
        assert len(queue._delayed) == len(model.waiting)
        assert len(self.clock.active()) == bool(model.waiting)
        assert {key: queue.requeues(key) for key in model.failures} == model.failures
        assert self.statistics.adds == model.adds
        assert self.statistics.depth == len(model.queued) + len(model.again)
        assert queue.shutting_down == model.down


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
