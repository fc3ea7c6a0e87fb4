"""Metrics of a work queue, under client-go's names.

A queue calls `QueueMetrics`; `QueueStatistics` implements it and exports:

| metric | meaning |
|---|---|
| `workqueue_depth` | keys that need processing, by priority |
| `workqueue_adds_total` | adds, except of keys that already need processing |
| `workqueue_queue_duration_seconds` | from the first add of a key until a worker gets it |
| `workqueue_work_duration_seconds` | from then until the key is done |
| `workqueue_unfinished_work_seconds` | how long the keys being processed have been so, summed |
| `workqueue_longest_running_processor_seconds` | how long the oldest of them has been so: shows a stuck worker |
| `workqueue_retries_total` | adds with a delay or a rate limit |

The ages of keys being processed are computed when they are read: there is no ticker to refresh or to stop.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, Literal, Protocol, TypeVar

from ostinato.metrics import EXPONENTIAL_BUCKETS, Family, Histogram, Sample
from ostinato.world import Clock

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

_MAX_PRIORITIES = 25  # with a label, and so a time series, of their own
_OTHER_PRIORITIES = "exceeded_cardinality_limit"


class QueueMetrics(Protocol[K_contra]):
    """Receives every step of a work queue, before it takes effect. Must be fast and must not raise."""

    def added(self, key: K_contra, priority: int, /) -> None:
        """The key needs processing, and did not before."""

    def priority_raised(self, key: K_contra, before: int, after: int, /) -> None:
        """A key that needs processing gets a higher priority."""

    def taken(self, key: K_contra, priority: int, /) -> None:
        """A worker gets the key."""

    def done(self, key: K_contra, /) -> None:
        """The worker has processed the key."""

    def retried(self) -> None:
        """A key is added with a delay."""


class QueueStatistics(Generic[K]):
    """The metrics of the work queue `name`, kept in memory."""

    def __init__(self, name: str, clock: Clock, bounds: Sequence[float] = EXPONENTIAL_BUCKETS) -> None:
        """`bounds`: of the duration buckets, in seconds. Defaults to client-go's, from 10 ns to 10 s."""
        self.adds = 0
        self.retries = 0
        self.queue_duration = Histogram(bounds)
        self.work_duration = Histogram(bounds)
        self.last_wait = 0.0  # seconds in the queue of the key that was handed out last
        self._name = {"name": name}
        self._clock = clock
        self._depth = {"0": 0}  # by label of the priority
        self._labels = {0: "0"}  # of priorities with a label of their own
        self._added_at: dict[K, float] = {}  # of keys that need processing
        self._taken_at: dict[K, float] = {}  # of keys that a worker holds

    def added(self, key: K, priority: int) -> None:
        self.adds += 1
        self._depth[self._labels.get(priority) or self._label(priority)] += 1
        self._added_at[key] = self._clock.monotonic()

    def priority_raised(self, key: K, before: int, after: int) -> None:  # noqa: ARG002 - of the protocol
        self._depth[self._label(before)] -= 1
        self._depth[self._label(after)] += 1

    def taken(self, key: K, priority: int) -> None:
        self._depth[self._labels.get(priority) or self._label(priority)] -= 1
        now = self._taken_at[key] = self._clock.monotonic()
        self.last_wait = now - self._added_at.pop(key)
        self.queue_duration.observe(self.last_wait)

    def done(self, key: K) -> None:
        self.work_duration.observe(self._clock.monotonic() - self._taken_at.pop(key))

    def retried(self) -> None:
        self.retries += 1

    @property
    def depth(self) -> int:
        return sum(self._depth.values())

    @property
    def oldest(self) -> tuple[K, float] | None:
        """The key that has needed processing for longest, and for how many seconds; None if there is none."""
        for key, added_at in self._added_at.items():  # in the order in which they were added
            return key, self._clock.monotonic() - added_at
        return None

    @property
    def unfinished_work(self) -> float:
        """Seconds since all keys being processed were handed out, summed."""
        now = self._clock.monotonic()
        return sum(now - taken_at for taken_at in self._taken_at.values())

    @property
    def longest_running(self) -> float:
        """Seconds since the oldest key being processed was handed out; 0 if there is none."""
        now = self._clock.monotonic()
        return max((now - taken_at for taken_at in self._taken_at.values()), default=0.0)

    def families(self) -> Iterator[Family]:
        """Yield all metrics with their current values."""
        name = "workqueue_depth"
        depths = [Sample(name, {**self._name, "priority": label}, depth) for label, depth in self._depth.items()]
        yield Family(name, "gauge", "Keys that need processing, by priority.", depths)
        yield self._single("workqueue_adds_total", "counter", "Adds of keys.", self.adds)
        yield self._histogram(
            "workqueue_queue_duration_seconds", "Time that keys wait for a worker.", self.queue_duration
        )
        yield self._histogram(
            "workqueue_work_duration_seconds", "Time that workers take to process a key.", self.work_duration
        )
        yield self._single(
            "workqueue_unfinished_work_seconds",
            "gauge",
            "Time for which the keys being processed have been so, summed.",
            self.unfinished_work,
        )
        yield self._single(
            "workqueue_longest_running_processor_seconds",
            "gauge",
            "Time for which the oldest key being processed has been so.",
            self.longest_running,
        )
        yield self._single("workqueue_retries_total", "counter", "Adds with a delay or a rate limit.", self.retries)

    def _single(self, name: str, kind: Literal["counter", "gauge"], description: str, value: float) -> Family:
        return Family(name, kind, description, [Sample(name, self._name, value)])

    def _histogram(self, name: str, description: str, histogram: Histogram) -> Family:
        return Family(name, "histogram", description, histogram.samples(name, self._name))

    def _label(self, priority: int) -> str:
        label = self._labels.get(priority)
        if label is None:
            if len(self._labels) == _MAX_PRIORITIES:
                label = _OTHER_PRIORITIES
            else:
                label = self._labels[priority] = str(priority)
            self._depth.setdefault(label, 0)
        return label
