"""Resource usage of a node and its Pods: `/stats/summary` with rates, `/metrics/resource` with counters.

Usage is measured on request only. Rates compare with the previous request; if that is too long ago, two measurements
are taken a second apart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ostinato import metrics
from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Pod
from ostinato.metrics import Family
from ostinato.plane.node.runtimes import Runtime, Usage
from ostinato.world import Clock

SUMMARY: Final = "/stats/summary"
COUNTERS: Final = "/metrics/resource"
PodsOf = Callable[[str], Awaitable[Sequence[Pod]]]
"""`pods_of(node)` returns the Pods that are bound to a node."""

MachineUsage = Callable[[], Usage]
_MINIMUM_INTERVAL: Final = 1.0  # seconds between two measurements
_MAXIMUM_INTERVAL: Final = 60.0  # seconds after which a measurement is not compared with


class UsageSample(msgspec.Struct, frozen=True):
    """One measurement of a node."""

    at: float  # on the monotonic clock
    time: Time
    machine: Usage
    pods: Sequence[tuple[Pod, Mapping[str, Usage]]]

    def cpu(self) -> dict[tuple[str, str], float]:
        """Return CPU seconds by Pod uid and container name."""
        return {(pod.metadata.uid, name): used.cpu for pod, usage in self.pods for name, used in usage.items()}


class NodeStats:
    def __init__(
        self, clock: Clock, runtimes: Mapping[str, Runtime], pods_of: PodsOf, machine: MachineUsage | None = None
    ) -> None:
        """`runtimes`: by node name."""
        self._clock = clock
        self._runtimes = runtimes
        self._pods_of = pods_of
        self._machine = machine_usage if machine is None else machine
        self._samples: dict[str, UsageSample] = {}  # latest, by node
        self._summaries: dict[str, dict[str, Any]] = {}  # latest, by node
        self._lock = asyncio.Lock()

    async def summary(self, node: str) -> bytes:
        async with self._lock:  # concurrent requests share a measurement
            before = self._samples.get(node)
            now = self._clock.monotonic()
            if before is None or now - before.at > _MAXIMUM_INTERVAL:
                before = await self.measure(node)
                await self._clock.sleep(_MINIMUM_INTERVAL)
            elif now - before.at < _MINIMUM_INTERVAL and node in self._summaries:
                return msgspec.json.encode(self._summaries[node])
            after = self._samples[node] = await self.measure(node)
            stats = self._summaries[node] = _summary(node, before, after)
            return msgspec.json.encode(stats)

    async def counters(self, node: str) -> bytes:
        """Return the counters in the Prometheus text format."""
        return _counters(await self.measure(node)).encode()

    async def pods(self, node: str) -> Sequence[Pod]:
        """Return the Pods of a node."""
        return await self._pods_of(node)

    async def measure(self, node: str) -> UsageSample:
        runtime = self._runtimes[node]
        pods = [(pod, await runtime.usage(pod)) for pod in await self._pods_of(node)]
        return UsageSample(self._clock.monotonic(), Time.of(self._clock.now()), self._machine(), pods)


def _summary(node: str, before: UsageSample, after: UsageSample) -> dict[str, Any]:
    seconds = max(after.at - before.at, _MINIMUM_INTERVAL)
    cpu_before = before.cpu()
    time = str(after.time)

    def since(pod: Pod, name: str) -> dict[str, Any]:
        running = next(
            (each.state.running for each in pod.status.container_statuses if each.name == name and each.state), None
        )
        return {} if running is None or running.started_at is None else {"startTime": str(running.started_at)}

    def stats(cpu: float, usage: Usage) -> dict[str, Any]:
        cores = max(usage.cpu - cpu, 0.0) / seconds
        return {
            "cpu": {"time": time, "usageNanoCores": int(cores * 1e9), "usageCoreNanoSeconds": int(usage.cpu * 1e9)},
            "memory": {"time": time, "usageBytes": usage.memory, "workingSetBytes": usage.memory},
        }

    pods = []
    for pod, usage in after.pods:
        uid = pod.metadata.uid
        # A container started since then has no earlier usage.
        containers = [
            {"name": name} | since(pod, name) | stats(cpu_before.get((uid, name), 0.0), used)
            for name, used in usage.items()
        ]
        if containers:
            known, started = pod.metadata, pod.status.start_time
            about: dict[str, Any] = {"podRef": {"name": known.name, "namespace": known.namespace, "uid": uid}}
            about |= {} if started is None else {"startTime": str(started)}
            cpu = sum(cpu_before.get((uid, name), 0.0) for name in usage)
            whole = Usage(sum(used.cpu for used in usage.values()), sum(used.memory for used in usage.values()))
            pods.append(about | {"containers": containers} | stats(cpu, whole))
    return {"node": {"nodeName": node} | stats(before.machine.cpu, after.machine), "pods": pods}


_HELP: Final = {  # kubelet's help texts
    "node_cpu_usage_seconds_total": "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
    "node_memory_working_set_bytes": "[STABLE] Current working set of the node in bytes",
    "container_cpu_usage_seconds_total": "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
    "container_memory_working_set_bytes": "[STABLE] Current working set of the container in bytes",
    "container_start_time_seconds": "[STABLE] Start time of the container since unix epoch in seconds",
    "pod_cpu_usage_seconds_total": "[STABLE] Cumulative cpu time consumed by the pod in core-seconds",
    "pod_memory_working_set_bytes": "[STABLE] Current working set of the pod in bytes",
    "resource_scrape_error": "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise",
}


def _counters(sample: UsageSample) -> str:
    at = int(sample.time.timestamp() * 1000)
    families: dict[str, Family] = {}

    def add(name: str, labels: dict[str, str], value: float, timestamp: int | None = at) -> None:
        kind: Literal["counter", "gauge"] = "counter" if name.endswith("_total") else "gauge"
        family = families.setdefault(name, Family(name, kind, _HELP[name], []))
        family.samples.append(metrics.Sample(name, labels, value, timestamp))

    add("node_cpu_usage_seconds_total", {}, sample.machine.cpu)
    add("node_memory_working_set_bytes", {}, sample.machine.memory)
    for pod, usage in sample.pods:
        whose = {"namespace": pod.metadata.namespace, "pod": pod.metadata.name}
        started = {each.name: each.state.running for each in pod.status.container_statuses if each.state is not None}
        for name, used in usage.items():
            labels = {"container": name, **whose}
            add("container_cpu_usage_seconds_total", labels, used.cpu)
            add("container_memory_working_set_bytes", labels, used.memory)
            running = started.get(name)
            if running is not None and running.started_at is not None:
                add("container_start_time_seconds", labels, running.started_at.timestamp())
        if usage:
            add("pod_cpu_usage_seconds_total", whose, sum(used.cpu for used in usage.values()))
            add("pod_memory_working_set_bytes", whose, sum(used.memory for used in usage.values()))
    add("resource_scrape_error", {}, 0, timestamp=None)
    return metrics.text(families.values())


def machine_usage() -> Usage:
    """Return the usage of this machine: non-idle CPU time, and memory that is not available."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    busy = sum(map(int, fields[:3])) + sum(map(int, fields[5:8]))
    sizes = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, size = line.partition(":")
        sizes[name] = size.split()[0]
    return Usage(busy / 100, (int(sizes["MemTotal"]) - int(sizes["MemAvailable"])) * 1024)
