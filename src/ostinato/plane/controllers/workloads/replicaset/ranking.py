"""Deletion order of Pods when a ReplicaSet is scaled down.

Of two Pods the one is deleted first that, in this order,

1. is not scheduled,
2. is Pending, before Unknown, before Running,
3. is not ready,
4. has the lower `controller.kubernetes.io/pod-deletion-cost`,
5. shares its node with more Pods of related ReplicaSets,
6. became ready more recently, compared on a logarithmic scale so that Pods of similar age are chosen by uid,
7. has more container restarts, then sidecar restarts,
8. is younger, on the same scale.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cmp_to_key
from math import log2
from typing import Final

import msgspec

from ostinato.api.struct import BuiltinStruct
from ostinato.plane.objects.pod_state import (
    ContainerState,
    PodState,
    PodStateSpec,
    PodStateStatus,
    is_ready,
    ready_since,
)

COST: Final = "controller.kubernetes.io/pod-deletion-cost"
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}
_COST_FORM: Final = re.compile(r"0|[1-9][0-9]{0,9}|-[0-9]{1,20}")


class _InitContainer(BuiltinStruct):
    name: str = ""
    restart_policy: str | None = None


class _CandidateSpec(PodStateSpec):
    init_containers: list[_InitContainer] = []


class _CandidateStatus(PodStateStatus):
    init_container_statuses: list[ContainerState] = []


class Candidate(PodState, version="v1", kind="Pod", plural="pods"):
    """A Pod with the fields that decide its rank."""

    spec: _CandidateSpec = msgspec.field(default_factory=_CandidateSpec)
    status: _CandidateStatus = msgspec.field(default_factory=_CandidateStatus)


def ranked(pods: Sequence[Candidate], related_pods: Mapping[str, int], now: datetime) -> list[Candidate]:
    """Sort Pods, first to be deleted first. `related_pods`: number of related Pods per node."""

    def compare(left: Candidate, right: Candidate) -> int:
        return _compare(left, right, related_pods, now)

    return sorted(pods, key=cmp_to_key(compare))


def deletion_cost(pod: PodState) -> int:
    """Return the deletion cost; 0 if it is missing or not a valid 32-bit integer."""
    text = pod.metadata.annotations.get(COST, "")
    if not _COST_FORM.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def _compare(left: Candidate, right: Candidate, related_pods: Mapping[str, int], now: datetime) -> int:
    """Return less than 0 if the left Pod is deleted first."""
    order = (
        _first(not left.spec.node_name, not right.spec.node_name)
        or _PHASES.get(left.status.phase, 0) - _PHASES.get(right.status.phase, 0)
        or _first(not is_ready(left), not is_ready(right))
        or deletion_cost(left) - deletion_cost(right)
        or related_pods.get(right.spec.node_name, 0) - related_pods.get(left.spec.node_name, 0)
    )
    if order:
        return order
    since, other_since = ready_since(left), ready_since(right)
    if is_ready(left) and since != other_since:
        return _compare_ages(left, right, (since, other_since), now)
    restarts, other_restarts = _restarts(left), _restarts(right)
    if restarts != other_restarts:
        return _first(restarts > other_restarts, restarts < other_restarts)
    born, other_born = left.metadata.creation_timestamp, right.metadata.creation_timestamp
    return 0 if born == other_born else _compare_ages(left, right, (born, other_born), now)


def _compare_ages(
    left: Candidate, right: Candidate, since: tuple[datetime | None, datetime | None], now: datetime
) -> int:
    if since[0] is None or since[1] is None:
        return _first(since[0] is None, since[1] is None)
    difference = _magnitude(since[0], now) - _magnitude(since[1], now)
    if difference:
        return difference
    return -1 if left.metadata.uid < right.metadata.uid else 1


def _magnitude(since: datetime, now: datetime) -> int:
    """Return the logarithm to base 2 of an age in nanoseconds."""
    age = (now - since).total_seconds() * 1e9
    return int(log2(age)) if age > 0 else -1


def _restarts(pod: Candidate) -> tuple[int, int]:
    """Return the maximum restarts of containers, and of sidecars."""
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    return (
        max((each.restart_count for each in pod.status.container_statuses), default=0),
        max((each.restart_count for each in pod.status.init_container_statuses if each.name in sidecars), default=0),
    )


def _first(left: bool, right: bool) -> int:
    """Compare: True is deleted first."""
    return int(right) - int(left)
