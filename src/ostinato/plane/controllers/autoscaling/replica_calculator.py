"""Replica calculator: from usage and target to a replica count.

- The count brings the average usage to the target; within the tolerance it does not change.
- Terminating and failed Pods are ignored. Unready Pods count as idle when scaling up.
- Pods without metrics count as idle when scaling up, and as using their full target when scaling down.
- These assumptions never reverse the scaling direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from math import ceil
from typing import Final

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.api.struct import BuiltinStruct
from ostinato.plane.controllers.autoscaling.metrics_client import MetricsError, Sample, Samples
from ostinato.plane.objects.pod_state import PodState, PodStateSpec, condition, is_ready

CPU: Final = "cpu"
_CPU_INITIALIZATION_PERIOD: Final = timedelta(minutes=5)  # of a Pod
_INITIAL_READINESS_DELAY: Final = timedelta(seconds=30)  # of a Pod
_MOST: Final = 2**31 - 1


class Requests(BuiltinStruct):
    requests: dict[str, Quantity] = {}


class MeasuredContainer(BuiltinStruct):
    name: str = ""
    restart_policy: str = ""
    resources: Requests = msgspec.field(default_factory=Requests)


class MeasuredSpec(PodStateSpec):
    containers: list[MeasuredContainer] = []
    init_containers: list[MeasuredContainer] = []
    resources: Requests | None = None


class MeasuredPod(PodState, version="v1", kind="Pod", plural="pods"):
    """A Pod with its resource requests."""

    spec: MeasuredSpec = msgspec.field(default_factory=MeasuredSpec)


class Tolerance(msgspec.Struct, frozen=True):
    """Deviation of the usage ratio from 1.0, up and down, that is ignored."""

    down: float = 0.1
    up: float = 0.1

    def covers(self, ratio: float) -> bool:
        return 1.0 - self.down <= ratio <= 1.0 + self.up


class Groups(msgspec.Struct, frozen=True):
    """Names of Pods by how their metrics are treated."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]  # without metrics
    ignored: frozenset[str]


class Proposal(msgspec.Struct, frozen=True):
    replicas: int
    average: int  # measured average, in thousandths
    utilization: int | None = None  # percentage of the request


def grouped(pods: Iterable[MeasuredPod], samples: Mapping[str, Sample], resource: str, now: datetime) -> Groups:
    ready = 0
    unready, missing, ignored = set(), set(), set()
    for pod in pods:
        name = pod.metadata.name
        if pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed":
            ignored.add(name)
        elif pod.status.phase == "Pending":
            unready.add(name)
        elif name not in samples:
            missing.add(name)
        elif resource == CPU and _is_unready(pod, samples[name], now):
            unready.add(name)
        else:
            ready += 1
    return Groups(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def _is_unready(pod: MeasuredPod, sample: Sample, now: datetime) -> bool:
    found, start = condition(pod, "Ready"), pod.status.start_time
    if found is None or start is None:
        return True
    since = found.last_transition_time
    is_false = found.status == "False"
    if start + _CPU_INITIALIZATION_PERIOD > now:  # the sample's window must begin after it became ready
        measured = sample.timestamp
        return is_false or (measured is not None and since is not None and measured < since + sample.window)
    return is_false and since is not None and start + _INITIAL_READINESS_DELAY > since


def requests(pods: Sequence[MeasuredPod], resource: str, container: str) -> dict[str, int]:
    """Return the request of each Pod, or of one container per Pod. Raises `MetricsError` if one is missing."""
    return {pod.metadata.name: _request(pod, resource, container) for pod in pods}


def _request(pod: MeasuredPod, resource: str, container: str) -> int:
    whole = pod.spec.resources.requests if pod.spec.resources is not None else {}
    if whole and not container and resource in whole:
        return whole[resource].milli_value()
    sidecars = [each for each in pod.spec.init_containers if each.restart_policy == "Always"]
    chosen = [each for each in (*pod.spec.containers, *sidecars) if not container or each.name == container]
    if container and not chosen:
        raise MetricsError(f"container {container} not found in Pod {pod.metadata.name}")
    found = 0
    for each in chosen:
        request = each.resources.requests.get(resource)
        if request is None:
            where = f"container {each.name} of Pod {pod.metadata.name}"
            raise MetricsError(f"missing request for {resource} in {where}")
        found += request.milli_value()
    return found


def by_utilization(
    current: int, target: int, samples: Samples, requested: Mapping[str, int], groups: Groups, tolerance: Tolerance
) -> Proposal:
    """Return the replicas that bring utilization to a percentage of the request."""
    counted = _counted(samples, groups)
    utilization, average = _utilization(counted, requested)
    replicas = _replicas(
        current,
        counted,
        groups,
        tolerance,
        ratio=lambda known: _utilization(known, requested)[0] / target,
        guess=lambda name: requested.get(name, 0) * max(100, target) // 100,
    )
    return Proposal(replicas, average, utilization)


def by_value(current: int, target: int, samples: Samples, groups: Groups, tolerance: Tolerance) -> Proposal:
    """Return the replicas that bring average usage to an amount, in thousandths."""
    counted = _counted(samples, groups)
    replicas = _replicas(
        current,
        counted,
        groups,
        tolerance,
        ratio=lambda known: _average(known) / target,
        guess=lambda _: target,
    )
    return Proposal(replicas, _average(counted))


def by_ratio(current: int, ratio: float, ready: int, tolerance: Tolerance) -> int:
    """Return the replicas that bring a total to its target, of which it is `ratio` now."""
    if current == 0:
        return min(ceil(ratio), _MOST)
    return current if tolerance.covers(ratio) else min(ceil(ratio * ready), _MOST)


def by_share(current: int, value: int, target: int, tolerance: Tolerance) -> Proposal:
    """Return the replicas of which each has at most its share of a total."""
    covered = current > 0 and tolerance.covers(value / (target * current))
    replicas = current if covered else min(ceil(value / target), _MOST)
    return Proposal(replicas, ceil(value / current) if current else value)


def count_ready(pods: Iterable[PodState]) -> int:
    return sum(pod.status.phase == "Running" and is_ready(pod) for pod in pods)


def _counted(samples: Samples, groups: Groups) -> Samples:
    counted = {
        name: sample for name, sample in samples.items() if name not in groups.ignored and name not in groups.unready
    }
    if not counted:
        raise MetricsError("did not receive metrics for targeted pods (pods might be unready)")
    return counted


def _replicas(
    current: int,
    counted: Samples,
    groups: Groups,
    tolerance: Tolerance,
    *,
    ratio: Callable[[Samples], float],
    guess: Callable[[str], int],
) -> int:
    usage = ratio(counted)
    with_unready = bool(groups.unready) and usage > 1.0
    if not with_unready and not groups.missing:
        return current if tolerance.covers(usage) else min(ceil(usage * groups.ready), _MOST)
    guessed = dict(counted)
    if usage != 1.0:
        guessed |= {name: Sample(guess(name) if usage < 1.0 else 0) for name in groups.missing}
    if with_unready:
        guessed |= {name: Sample(0) for name in groups.unready}
    again = ratio(guessed)
    if tolerance.covers(again) or (usage < 1.0 < again) or (again < 1.0 < usage):
        return current
    replicas = min(ceil(again * len(guessed)), _MOST)
    turns = (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current)
    return current if turns else replicas


def _utilization(samples: Samples, requested: Mapping[str, int]) -> tuple[int, int]:
    """Return utilization in percent of the request, and average usage."""
    known = [(sample.value, requested[name]) for name, sample in samples.items() if name in requested]
    wanted = sum(request for _, request in known)
    if not wanted:
        raise MetricsError("no metrics returned matched known pods")
    used = sum(value for value, _ in known)
    return used * 100 // wanted, used // len(known)


def _average(samples: Samples) -> int:
    return sum(sample.value for sample in samples.values()) // len(samples)
