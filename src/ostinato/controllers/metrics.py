"""Metrics of a controller, under the names, labels and buckets that controller-runtime gives them.

What has no counterpart there begins with `ostinato_`. Every series is there from the beginning, at zero: a rate can be
taken of it before the first error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from ostinato.metrics import EXPONENTIAL_BUCKETS, Family, Histogram, Sample, counter, gauge
from ostinato.queue import QueueStatistics
from ostinato.world import Clock, Executor

Outcome = Literal["success", "error", "requeue", "requeue_after"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("success", "error", "requeue", "requeue_after")

# fmt: off
_BOUNDS: Final = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0,
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0,
    60.0,
)
# fmt: on
_MOST_REASONS: Final = 100  # that are told apart: each is a series, and a source may say whatever it likes
_OTHER_REASONS: Final = "exceeded_cardinality_limit"
_QUEUE_BOUNDS: Final = (*EXPONENTIAL_BUCKETS, 100.0, 1000.0)  # two more than client-go has


class ControllerStatistics:
    """The metrics of one controller and its queue, kept in memory."""

    def __init__(self, name: str, clock: Clock, workers: int, executor: Executor | None = None) -> None:
        """`executor`: where its reconcilers run, if they are plain functions."""
        self.queue: QueueStatistics[object] = QueueStatistics(name, clock, _QUEUE_BOUNDS)
        self.outcomes: dict[Outcome, int] = dict.fromkeys(OUTCOMES, 0)
        self.errors = 0
        self.terminal_errors = 0
        self.panics = 0
        self.timeouts = 0
        self.conflicts = 0
        self.stale = 0
        self.hot_loops = 0
        self.active_workers = 0
        self.time = Histogram(_BOUNDS)
        self.reasons: dict[str, int] = {}
        self._labels = {"controller": name}
        self._workers = workers
        self._executor = executor

    def ran(self, outcome: Outcome, seconds: float, reasons: tuple[str, ...]) -> None:
        self.outcomes[outcome] += 1
        self.time.observe(seconds)
        for reason in reasons:
            known = self.reasons.get(reason)
            if known is None and len(self.reasons) >= _MOST_REASONS:
                reason = _OTHER_REASONS  # noqa: PLW2901 - it counts among the others
                known = self.reasons.get(reason)
            self.reasons[reason] = (known or 0) + 1

    def families(self) -> Iterator[Family]:
        """All metrics, as they are now."""
        prefix = "controller_runtime_reconcile"
        yield self._by(f"{prefix}_total", "Reconciles, by what came of them.", "result", self.outcomes)
        yield self._counter(f"{prefix}_errors_total", "Reconciles that failed.", self.errors)
        yield self._counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Reconciles that failed for good.",
            self.terminal_errors,
        )
        yield self._counter(f"{prefix}_panics_total", "Reconciles that failed by a programming error.", self.panics)
        yield self._counter(f"{prefix}_timeouts_total", "Reconciles that took too long.", self.timeouts)
        name = f"{prefix}_time_seconds"
        yield Family(name, "histogram", "How long reconciles take.", self.time.samples(name, self._labels))
        yield self._gauge(
            "controller_runtime_max_concurrent_reconciles", "How many reconciles may run at once.", self._workers
        )
        yield self._gauge("controller_runtime_active_workers", "How many reconciles run.", self.active_workers)
        yield self._counter(
            "ostinato_reconcile_conflicts_total", "Reconciles that another writer overtook.", self.conflicts
        )
        yield self._counter(
            "ostinato_reconcile_delayed_total",
            "Reconciles that waited for the cache to see their own writes.",
            self.stale,
        )
        yield self._counter(
            "ostinato_reconcile_hot_loops_total", "Reconciles held back since they keep writing.", self.hot_loops
        )
        yield self._by("ostinato_reconcile_reasons_total", "Why reconciles ran.", "reason", self.reasons)
        yield from self._threads()
        for family in self.queue.families():
            samples = [Sample(each.name, {**each.labels, **self._labels}, each.value) for each in family.samples]
            yield Family(family.name, family.kind, family.help, samples)

    def _threads(self) -> Iterator[Family]:
        if self._executor is None:
            return
        load = self._executor.load()
        yield self._gauge("ostinato_threads", "Threads for reconcilers that block.", load.workers)
        yield self._gauge("ostinato_threads_busy", "Threads that are at work.", load.busy)
        yield self._gauge("ostinato_threads_waiting", "Calls that wait for a thread.", load.queued)
        yield self._gauge(
            "ostinato_threads_longest_wait_seconds", "How long the first of them has waited.", load.longest_wait
        )

    def _counter(self, name: str, text: str, value: float) -> Family:
        return counter(name, text, value, self._labels)

    def _gauge(self, name: str, text: str, value: float) -> Family:
        return gauge(name, text, value, self._labels)

    def _by(self, name: str, text: str, label: str, values: dict[Outcome, int] | dict[str, int]) -> Family:
        samples = [Sample(name, self._labels | {label: str(each)}, count) for each, count in values.items()]
        return Family(name, "counter", text, samples)
