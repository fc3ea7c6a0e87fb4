"""Metrics of a node in the Prometheus text format, with the names of kubelet and cAdvisor.

| path | contents |
|---|---|
| `/metrics` | the agent: Pods, containers by state, its process |
| `/metrics/cadvisor` | usage of containers, by the names of cAdvisor; sizes of the machine |
| `/metrics/probes` | results of probes |

`/metrics/resource` is in `stats`.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from ostinato import metrics
from ostinato.kinds.core_v1 import Pod
from ostinato.metrics import Family, gauge, process_families
from ostinato.plane.node.server.stats import UsageSample
from ostinato.server.publish.version import GIT_VERSION

AGENT: Final = "/metrics"
CADVISOR: Final = "/metrics/cadvisor"
PROBES: Final = "/metrics/probes"
_CPU: Final = "Cumulative cpu time consumed in seconds."
_MEMORY: Final = "Current memory usage in bytes, including all memory regardless of when it was accessed"
_WORKING_SET: Final = "Current working set in bytes."
_STARTED: Final = "Start time of the container since unix epoch in seconds."
_LIMIT: Final = "Memory limit for the container."


def agent_metrics(node: str, pods: Sequence[Pod]) -> str:
    states: Counter[str] = Counter()
    for pod in pods:
        for status in pod.status.container_statuses:
            state = status.state
            is_running = state is not None and state.running is not None
            has_ended = state is not None and state.terminated is not None
            states["running" if is_running else "exited" if has_ended else "created"] += 1
    running = sum(1 for pod in pods if pod.status.phase == "Running")
    count = "kubelet_running_containers"
    samples = [metrics.Sample(count, {"container_state": state}, number) for state, number in sorted(states.items())]
    return metrics.text(
        [
            gauge("kubelet_node_name", "[ALPHA] The node's name. The count is always 1.", 1, {"node": node}),
            gauge("kubelet_running_pods", "[ALPHA] Number of pods that have a running pod sandbox", running),
            Family(count, "gauge", "[ALPHA] Number of containers currently running", samples),
            gauge("kubernetes_build_info", "[ALPHA] Version of the agent.", 1, {"git_version": GIT_VERSION}),
            *process_families(),
        ]
    )


def cadvisor_metrics(sample: UsageSample) -> str:
    return metrics.text(_cadvisor(sample))


def _cadvisor(sample: UsageSample) -> Iterator[Family]:
    at = int(sample.time.timestamp() * 1000)
    names = {
        "container_cpu_usage_seconds_total": ("counter", _CPU),
        "container_memory_usage_bytes": ("gauge", _MEMORY),
        "container_memory_working_set_bytes": ("gauge", _WORKING_SET),
        "container_start_time_seconds": ("gauge", _STARTED),
        "container_spec_memory_limit_bytes": ("gauge", _LIMIT),
    }
    samples: dict[str, list[metrics.Sample]] = {name: [] for name in names}
    for pod, usage in sample.pods:
        statuses = {each.name: each for each in pod.status.container_statuses}
        specs = {each.name: each for each in pod.spec.containers}
        for name, used in usage.items():
            status, spec = statuses.get(name), specs.get(name)
            identifier = "" if status is None else (status.container_id or "").partition("://")[2]
            labels = {
                "container": name,
                "id": f"/kubepods/pod{pod.metadata.uid}/{identifier}",
                "image": "" if status is None else status.image or "",
                "name": identifier,
                "namespace": pod.metadata.namespace,
                "pod": pod.metadata.name,
            }
            values: dict[str, float] = {
                "container_memory_usage_bytes": used.memory,
                "container_memory_working_set_bytes": used.memory,
            }
            running = None if status is None or status.state is None else status.state.running
            if running is not None and running.started_at is not None:
                values["container_start_time_seconds"] = running.started_at.timestamp()
            limit = None if spec is None or spec.resources is None else spec.resources.limits.get("memory")
            values["container_spec_memory_limit_bytes"] = 0 if limit is None else float(limit)
            samples["container_cpu_usage_seconds_total"].append(
                metrics.Sample("container_cpu_usage_seconds_total", {**labels, "cpu": "total"}, used.cpu, at)
            )
            for each, value in values.items():
                samples[each].append(metrics.Sample(each, labels, value, at))
    for name, (kind, text) in names.items():
        yield Family(name, kind, text, samples[name])  # type: ignore[arg-type]  # one of the literals above
    yield gauge("machine_cpu_cores", "Number of logical CPU cores.", os.cpu_count() or 1)
    yield gauge("machine_memory_bytes", "Amount of memory installed on the machine.", _memory())
    yield gauge("container_scrape_error", "1 if there was an error while getting container metrics, 0 otherwise", 0)


def _memory() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
