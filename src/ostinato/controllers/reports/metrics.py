"""Metrics of a controller, with the names, labels and buckets of controller-runtime.

Metrics without a counterpart there begin with `ostinato_`. Every series exists from the start with the value 0, so that
rates can be computed from the first error on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
_MAX_REASONS: Final = 100  # bounds the cardinality: sources choose the reasons
_OTHER_REASONS: Final = "exceeded_cardinality_limit"
_QUEUE_BOUNDS: Final = (*EXPONENTIAL_BUCKETS, 100.0, 1000.0)  # two more than client-go


class ControllerStatistics:
    """The metrics of one controller and its work queue."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        workers: int,
        executor: Executor | None = None,
        daemons: Callable[[], int] | None = None,
    ) -> None:
        """
        - `executor`: threads for a reconciler that is a plain function. Defaults to None.
        - `daemons`: returns the number of running daemons. Defaults to None.
        """
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
        self.workers = workers
        self._executor = executor
        self._daemons = daemons

    def ran(self, outcome: Outcome, seconds: float, reasons: tuple[str, ...]) -> None:
        self.outcomes[outcome] += 1
        self.time.observe(seconds)
        for reason in reasons:
            known = self.reasons.get(reason)
            if known is None and len(self.reasons) >= _MAX_REASONS:
                reason = _OTHER_REASONS  # noqa: PLW2901
                known = self.reasons.get(reason)
            self.reasons[reason] = (known or 0) + 1

    def families(self) -> Iterator[Family]:
        """Return the current metrics."""
        prefix = "controller_runtime_reconcile"
        yield self._by(
            f"{prefix}_total", "Total number of reconciliations per controller and result.", "result", self.outcomes
        )
        yield self._counter(f"{prefix}_errors_total", "Total number of reconciliation errors.", self.errors)
        yield self._counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Total number of terminal reconciliation errors.",
            self.terminal_errors,
        )
        yield self._counter(f"{prefix}_panics_total", "Total number of programming errors in reconcilers.", self.panics)
        yield self._counter(f"{prefix}_timeouts_total", "Total number of reconciliation timeouts.", self.timeouts)
        name = f"{prefix}_time_seconds"
        yield Family(name, "histogram", "Length of time per reconciliation.", self.time.samples(name, self._labels))
        yield self._gauge(
            "controller_runtime_max_concurrent_reconciles", "Maximum number of concurrent reconciles.", self.workers
        )
        yield self._gauge("controller_runtime_active_workers", "Number of currently used workers.", self.active_workers)
        yield self._counter(
            "ostinato_reconcile_conflicts_total",
            "Total number of reconciliations that ended with a conflict.",
            self.conflicts,
        )
        yield self._counter(
            "ostinato_reconcile_delayed_total",
            "Total number of reconciliations delayed until the cache had seen their own writes.",
            self.stale,
        )
        yield self._counter("ostinato_reconcile_hot_loops_total", "Total number of detected hot loops.", self.hot_loops)
        yield self._by(
            "ostinato_reconcile_reasons_total", "Total number of reconciliations by reason.", "reason", self.reasons
        )
        if self._daemons is not None:
            yield self._gauge("ostinato_daemons", "Number of running daemons.", self._daemons())
        yield from self._threads()
        for family in self.queue.families():
            samples = [Sample(each.name, {**each.labels, **self._labels}, each.value) for each in family.samples]
            yield Family(family.name, family.kind, family.help, samples)

    def _threads(self) -> Iterator[Family]:
        if self._executor is None:
            return
        load = self._executor.load()
        yield self._gauge("ostinato_threads", "Number of threads for blocking reconcilers.", load.workers)
        yield self._gauge("ostinato_threads_busy", "Number of busy threads.", load.busy)
        yield self._gauge("ostinato_threads_waiting", "Number of calls that wait for a thread.", load.queued)
        yield self._gauge(
            "ostinato_threads_longest_wait_seconds",
            "Longest time that a call has been waiting for a thread.",
            load.longest_wait,
        )

    def _counter(self, name: str, text: str, value: float) -> Family:
        return counter(name, text, value, self._labels)

    def _gauge(self, name: str, text: str, value: float) -> Family:
        return gauge(name, text, value, self._labels)

    def _by(self, name: str, text: str, label: str, values: dict[Outcome, int] | dict[str, int]) -> Family:
        samples = [Sample(name, self._labels | {label: str(each)}, count) for each, count in values.items()]
        return Family(name, "counter", text, samples)
