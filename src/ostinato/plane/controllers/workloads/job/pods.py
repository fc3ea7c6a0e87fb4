"""Pods of Jobs: relevant fields, completion index, finish time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ostinato.api.struct import BuiltinStruct
from ostinato.api.time import Time
from ostinato.kinds.batch_v1 import Job
from ostinato.plane.objects.pod_state import (
    ContainerState,
    PodState,
    PodStateSpec,
    PodStateStatus,
    condition,
    is_ready,
    ready_since,
)

TRACKING: Final = "batch.kubernetes.io/job-tracking"  # finalizer of uncounted Pods
INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_LARGEST: Final = 2**31 - 1
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


class Terminated(BuiltinStruct):
    exit_code: int = 0
    finished_at: Time | None = None


class _State(BuiltinStruct):
    terminated: Terminated | None = None


class ContainerStatus(ContainerState):
    state: _State = msgspec.field(default_factory=_State)


class _InitContainer(BuiltinStruct):
    name: str = ""
    restart_policy: str = ""


class JobPodSpec(PodStateSpec):
    init_containers: list[_InitContainer] = []


class JobPodStatus(PodStateStatus):
    container_statuses: list[ContainerStatus] = []  # type: ignore[assignment]  # extends ContainerState
    init_container_statuses: list[ContainerStatus] = []


class JobPod(PodState, version="v1", kind="Pod", plural="pods"):
    spec: JobPodSpec = msgspec.field(default_factory=JobPodSpec)
    status: JobPodStatus = msgspec.field(default_factory=JobPodStatus)


def is_tracked(pod: JobPod) -> bool:
    """Return whether the Pod has the tracking finalizer."""
    return TRACKING in pod.metadata.finalizers


def is_terminating(pod: JobPod) -> bool:
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in ("Succeeded", "Failed")


def only_replaces_failed_pods(job: Job) -> bool:
    """Return whether podReplacementPolicy is Failed: terminating Pods are replaced after they have finished."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(pod: JobPod, job: Job) -> bool:
    """Return whether the Pod has failed. A terminating Pod counts as failed, unless podReplacementPolicy is Failed."""
    return pod.status.phase == "Failed" or (is_terminating(pod) and not only_replaces_failed_pods(job))


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def index_of(pod: JobPod) -> int | None:
    return _number(pod.metadata.annotations.get(INDEX, ""))


def valid_index(pod: JobPod, job: Job) -> int | None:
    """Return the completion index if it is below completions."""
    index = index_of(pod)
    return index if index is not None and index < (job.spec.completions or 0) else None


def failure_count(pod: JobPod) -> int:
    """Return the number of earlier failures of its index, from the annotation."""
    return _number(pod.metadata.annotations.get(FAILURES, "")) or 0


def ignored_failure_count(pod: JobPod) -> int:
    return _number(pod.metadata.annotations.get(IGNORED_FAILURES, "")) or 0


def finished_at(pod: JobPod) -> datetime:
    """Return when the Pod finished: by its containers, else when it became unready, was deleted, or was created."""
    metadata = pod.metadata
    by_containers = _last_container(pod)
    if by_containers is not None:
        return by_containers
    ready = condition(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None, "set by the server"
    return metadata.creation_timestamp


def _last_container(pod: JobPod) -> datetime | None:
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    statuses = [*pod.status.container_statuses, *(e for e in pod.status.init_container_statuses if e.name in sidecars)]
    ends = [None if each.state.terminated is None else each.state.terminated.finished_at for each in statuses]
    known = [each for each in ends if each is not None]
    return max(known) if known and len(known) == len(ends) else None


def restarts(pods: Iterable[JobPod]) -> int:
    """Return the container restarts of unfinished Pods."""
    return sum(
        each.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)
    )


def deletion_order(pods: Iterable[JobPod]) -> list[JobPod]:
    """Sort Pods for deletion: those with the least progress first."""
    return sorted(pods, key=_deletion_rank)


def _deletion_rank(pod: JobPod) -> tuple[float, ...]:
    since, made = ready_since(pod), pod.metadata.creation_timestamp
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 2),
        is_ready(pod),
        -since.timestamp() if since is not None else 0.0,
        -max((each.restart_count for each in pod.status.container_statuses), default=0),
        -made.timestamp() if made is not None else 0.0,
    )


def split_by_index(pods: Iterable[JobPod], job: Job) -> tuple[list[JobPod], list[JobPod]]:
    """Split active Pods of an Indexed Job into surplus ones (invalid or duplicate index) and the others."""
    extra: list[JobPod] = []
    by_index: dict[int, list[JobPod]] = {}
    for pod in pods:
        index = valid_index(pod, job)
        if index is None:
            extra.append(pod)
        else:
            by_index.setdefault(index, []).append(pod)
    left: list[JobPod] = []
    for _, same in sorted(by_index.items()):
        *rest, best = deletion_order(same)
        extra += rest
        left.append(best)
    return extra, left


def _number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        return None
    number = int(text)
    return number if number <= _LARGEST else None
