"""The Pods of Jobs: what a Job goes by in them, which index each is for, and when each ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ostinato.api.struct import Struct
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

TRACKING: Final = "batch.kubernetes.io/job-tracking"  # the finalizer of Pods that are not counted yet
INDEX: Final = "batch.kubernetes.io/job-completion-index"
FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"
IGNORED_FAILURES: Final = "batch.kubernetes.io/job-index-ignored-failure-count"
_LARGEST: Final = 2**31 - 1
_PHASES: Final = {"Pending": 0, "Unknown": 1, "Running": 2}


class Terminated(Struct):
    exit_code: int = 0
    finished_at: Time | None = None


class _State(Struct):
    terminated: Terminated | None = None


class ContainerStatus(ContainerState):
    state: _State = msgspec.field(default_factory=_State)


class _InitContainer(Struct):
    name: str = ""
    restart_policy: str = ""


class JobPodSpec(PodStateSpec):
    init_containers: list[_InitContainer] = []


class JobPodStatus(PodStateStatus):
    container_statuses: list[ContainerStatus] = []  # type: ignore[assignment]  # the same, and more of each
    init_container_statuses: list[ContainerStatus] = []


class JobPod(PodState, version="v1", kind="Pod", plural="pods"):
    spec: JobPodSpec = msgspec.field(default_factory=JobPodSpec)
    status: JobPodStatus = msgspec.field(default_factory=JobPodStatus)


def is_tracked(pod: JobPod) -> bool:
    """Whether it is still to be counted."""
    return TRACKING in pod.metadata.finalizers


def is_terminating(pod: JobPod) -> bool:
    return pod.metadata.deletion_timestamp is not None and pod.status.phase not in ("Succeeded", "Failed")


def only_replaces_failed_pods(job: Job) -> bool:
    """Whether a Pod that is being deleted is replaced only when it has ended."""
    return job.spec.pod_replacement_policy == "Failed" or job.spec.pod_failure_policy is not None


def has_failed(pod: JobPod, job: Job) -> bool:
    """A Pod that somebody deletes counts as failed, unless it is waited for: it may never get to say so itself."""
    return pod.status.phase == "Failed" or (is_terminating(pod) and not only_replaces_failed_pods(job))


def is_indexed(job: Job) -> bool:
    return job.spec.completion_mode == "Indexed"


def index_of(pod: JobPod) -> int | None:
    return _number(pod.metadata.annotations.get(INDEX, ""))


def valid_index(pod: JobPod, job: Job) -> int | None:
    """The index, if the Job has one of that number."""
    index = index_of(pod)
    return index if index is not None and index < (job.spec.completions or 0) else None


def failure_count(pod: JobPod) -> int:
    """How many Pods of its index failed before it, by its annotation."""
    return _number(pod.metadata.annotations.get(FAILURES, "")) or 0


def ignored_failure_count(pod: JobPod) -> int:
    return _number(pod.metadata.annotations.get(IGNORED_FAILURES, "")) or 0


def finished_at(pod: JobPod) -> datetime:
    """When it ended: when its last container did, or when it ceased to be ready, was deleted, or was made."""
    metadata = pod.metadata
    by_containers = _last_container(pod)
    if by_containers is not None:
        return by_containers
    ready = condition(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None, "the server has stored it"
    return metadata.creation_timestamp


def _last_container(pod: JobPod) -> datetime | None:
    sidecars = {each.name for each in pod.spec.init_containers if each.restart_policy == "Always"}
    statuses = [*pod.status.container_statuses, *(e for e in pod.status.init_container_statuses if e.name in sidecars)]
    ends = [None if each.state.terminated is None else each.state.terminated.finished_at for each in statuses]
    known = [each for each in ends if each is not None]
    return max(known) if known and len(known) == len(ends) else None


def restarts(pods: Iterable[JobPod]) -> int:
    """Of all containers of Pods that have not ended."""
    return sum(
        each.restart_count
        for pod in pods
        if pod.status.phase in ("Running", "Pending")
        for each in (*pod.status.container_statuses, *pod.status.init_container_statuses)
    )


def deletion_order(pods: Iterable[JobPod]) -> list[JobPod]:
    """Pods in the order in which they are to go: those that have done least come first."""
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
    """Active Pods of an indexed Job that are too many (without a valid index, or a second of one), and the others."""
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
