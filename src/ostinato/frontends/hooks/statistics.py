"""Statistics: metrics of the runs of hooks, with the labels hook, binding and queue."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ostinato.frontends.kernel.transport.process import Usage
from ostinato.metrics import Family, Sample
from ostinato.metrics.labelled import Description, LabelledMetrics

_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_PREFIX: Final = "ostinato_hooks_"
_DESCRIPTIONS: Final = {
    f"{_PREFIX}run_seconds": Description("Duration of runs", _SECONDS),
    f"{_PREFIX}run_user_cpu_seconds": Description("CPU time of runs in user mode", _SECONDS),
    f"{_PREFIX}run_sys_cpu_seconds": Description("CPU time of runs in the kernel", _SECONDS),
    f"{_PREFIX}run_errors_total": Description("Failed runs, which are repeated"),
    f"{_PREFIX}run_allowed_errors_total": Description("Failed runs, which are not repeated"),
    f"{_PREFIX}run_success_total": Description("Successful runs"),
    f"{_PREFIX}enable_kubernetes_bindings_errors_total": Description("Failed starts of kubernetes bindings"),
    f"{_PREFIX}task_wait_in_queue_seconds": Description("Time of tasks in their queue", _SECONDS),
}


class Statistics:
    def __init__(self) -> None:
        self._metrics = LabelledMetrics(_DESCRIPTIONS)
        self._memory: dict[tuple[tuple[str, str], ...], float] = {}
        self.queues: dict[str, int] = {}  # length by name
        self.snapshots: dict[tuple[str, str], int] = {}  # objects by hook and binding

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        self._metrics.count(f"{_PREFIX}{name}_total", labels)

    def observe(self, name: str, seconds: float, labels: Mapping[str, str]) -> None:
        self._metrics.observe(f"{_PREFIX}{name}_seconds", seconds, labels)

    def used(self, usage: Usage, labels: Mapping[str, str]) -> None:
        """Record what a process has used."""
        self.observe("run_user_cpu", usage.user_seconds, labels)
        self.observe("run_sys_cpu", usage.system_seconds, labels)
        self._memory[tuple(labels.items())] = usage.max_rss_bytes

    def families(self) -> Iterator[Family]:
        yield from self._metrics.families()
        name = f"{_PREFIX}run_max_rss_bytes"
        memory = [Sample(name, dict(labels), value) for labels, value in self._memory.items()]
        yield Family(name, "gauge", "Largest resident set of the last run", memory)
        name = f"{_PREFIX}tasks_queue_length"
        yield Family(name, "gauge", "Tasks in a queue", [Sample(name, {"queue": q}, n) for q, n in self.queues.items()])
        name = f"{_PREFIX}kube_snapshot_objects"
        sizes = [Sample(name, {"hook": h, "binding": b}, n) for (h, b), n in self.snapshots.items()]
        yield Family(name, "gauge", "Objects in a snapshot", sizes)
