"""Ranking: which of several Pods can best be done without.

Of two Pods the first goes that, in this order,

1. has no node, while the other has,
2. is Pending, before Unknown, before Running,
3. is not ready,
4. has the lower `controller.kubernetes.io/pod-deletion-cost`,
5. shares its node with more Pods of the same family,
6. got ready more recently: not to the second, but by powers of two, so that Pods of about the same age are chosen by
   their uids, which is by chance, and a scale-down does not take all that one node or one zone was given last,
7. was restarted more often; then the restarts of its sidecars count,
8. is younger, by powers of two as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cmp_to_key
from math import log2
from typing import Final

import msgspec

from ostinato.api.struct import Struct
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


class _InitContainer(Struct):
    name: str = ""
    restart_policy: str | None = None


class _CandidateSpec(PodStateSpec):
    init_containers: list[_InitContainer] = []


class _CandidateStatus(PodStateStatus):
    init_container_statuses: list[ContainerState] = []


class Candidate(PodState, version="v1", kind="Pod", plural="pods"):
    """A Pod with all that decides about its place."""

    spec: _CandidateSpec = msgspec.field(default_factory=_CandidateSpec)
    status: _CandidateStatus = msgspec.field(default_factory=_CandidateStatus)


def ranked(pods: Sequence[Candidate], related_pods: Mapping[str, int], now: datetime) -> list[Candidate]:
    """The Pods, the most dispensable first. `neighbours` are the Pods of the family on each node."""

    def compare(left: Candidate, right: Candidate) -> int:
        return _compare(left, right, related_pods, now)

    return sorted(pods, key=cmp_to_key(compare))


def deletion_cost(pod: PodState) -> int:
    """What the annotation says; 0 where it is none, or is no 32-bit number in its plain form."""
    text = pod.metadata.annotations.get(COST, "")
    if not _COST_FORM.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def _compare(left: Candidate, right: Candidate, related_pods: Mapping[str, int], now: datetime) -> int:
    """Less than 0 if the left one goes first."""
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
    """The power of two in an age, in nanoseconds."""
    age = (now - since).total_seconds() * 1e9
    return int(log2(age)) if age > 0 else -1


def _restarts(pod: Candidate) -> tuple[int, int]:
    """The most restarts of any container, and of any sidecar."""
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    return (
        max((each.restart_count for each in pod.status.container_statuses), default=0),
        max((each.restart_count for each in pod.status.init_container_statuses if each.name in sidecars), default=0),
    )


def _first(left: bool, right: bool) -> int:
    """Who goes first of those that it is true of."""
    return int(right) - int(left)
