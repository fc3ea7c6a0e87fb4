"""Metrics of a work queue, under the names that client-go gives them.

`QueueMetrics` is what a queue tells; `QueueStatistics` keeps it, and `families()` is what an exporter reads:

| metric | is |
|---|---|
| `workqueue_depth` | keys that need processing, by priority |
| `workqueue_adds_total` | adds; one of a key that needs processing already is none |
| `workqueue_queue_duration_seconds` | from the first add of a key until a worker gets it |
| `workqueue_work_duration_seconds` | from then until it is done |
| `workqueue_unfinished_work_seconds` | how long the keys under way have been so, together |
| `workqueue_longest_running_processor_seconds` | and the longest of them: a stuck worker shows here |
| `workqueue_retries_total` | adds with a delay or a rate limit |

The ages of what is under way are computed when they are read. There is no ticker to refresh them, so they are never
stale and nothing has to be stopped.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, Literal, Protocol, TypeVar

from ostinato.metrics import EXPONENTIAL_BUCKETS, Family, Histogram, Sample
from ostinato.world import Clock

K = TypeVar("K", bound=Hashable)
K_contra = TypeVar("K_contra", bound=Hashable, contravariant=True)

_MAX_PRIORITIES = 25  # that are told apart: each is a series of its own wherever metrics are kept
_OTHER_PRIORITIES = "exceeded_cardinality_limit"


class QueueMetrics(Protocol[K_contra]):
    """What a work queue tells of itself. Called on every step, before it is taken: be quick, and never raise."""

    def added(self, key: K_contra, priority: int, /) -> None:
        """The key needs processing now."""

    def priority_raised(self, key: K_contra, before: int, after: int, /) -> None:
        """The key, not handed out yet, has a higher priority now."""

    def taken(self, key: K_contra, priority: int, /) -> None:
        """A worker has the key now."""

    def done(self, key: K_contra, /) -> None:
        """The worker is done with it."""

    def retried(self) -> None:
        """A key is added after a delay."""


class QueueStatistics(Generic[K]):
    """The metrics of the work queue `name`, kept in memory."""

    def __init__(self, name: str, clock: Clock, bounds: Sequence[float] = EXPONENTIAL_BUCKETS) -> None:
        """`bounds` of the durations, in seconds. They default to those of client-go, from 10 ns to 10 s."""
        self.adds = 0
        self.retries = 0
        self.queue_duration = Histogram(bounds)
        self.work_duration = Histogram(bounds)
        self.last_wait = 0.0  # in seconds, of the key that was taken last
        self._name = {"name": name}
        self._clock = clock
        self._depth = {"0": 0}  # by label
        self._labels = {0: "0"}  # of each priority that is told apart
        self._added_at: dict[K, float] = {}  # of keys that need processing
        self._taken_at: dict[K, float] = {}  # of keys that a worker holds

    def added(self, key: K, priority: int) -> None:
        self.adds += 1
        self._depth[self._labels.get(priority) or self._label(priority)] += 1
        self._added_at[key] = self._clock.monotonic()

    def priority_raised(self, key: K, before: int, after: int) -> None:  # noqa: ARG002 - the key stays what it is
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
    def unfinished_work(self) -> float:
        """Seconds, of all keys under way together."""
        now = self._clock.monotonic()
        return sum(now - taken_at for taken_at in self._taken_at.values())

    @property
    def longest_running(self) -> float:
        """Seconds, of the key that has been under way for longest; 0 if none is."""
        now = self._clock.monotonic()
        return max((now - taken_at for taken_at in self._taken_at.values()), default=0.0)

    def families(self) -> Iterator[Family]:
        """All metrics, as they are now."""
        name = "workqueue_depth"
        depths = [Sample(name, {**self._name, "priority": label}, depth) for label, depth in self._depth.items()]
        yield Family(name, "gauge", "Keys that need processing, by priority.", depths)
        yield self._single("workqueue_adds_total", "counter", "Adds of keys.", self.adds)
        yield self._histogram(
            "workqueue_queue_duration_seconds", "How long a key waits for a worker.", self.queue_duration
        )
        yield self._histogram(
            "workqueue_work_duration_seconds", "How long a worker takes for a key.", self.work_duration
        )
        yield self._single(
            "workqueue_unfinished_work_seconds",
            "gauge",
            "How long the keys under way have been so, together.",
            self.unfinished_work,
        )
        yield self._single(
            "workqueue_longest_running_processor_seconds",
            "gauge",
            "How long the key that is under way for longest has been so.",
            self.longest_running,
        )
        yield self._single("workqueue_retries_total", "counter", "Adds after a delay.", self.retries)

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
