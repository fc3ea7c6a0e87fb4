"""Pod counts of a Job, from its status and its uncounted Pods.

Pods are counted in two steps, so that a crash of the controller loses none and counts none twice: the uid is added to
`status.uncountedTerminatedPods`; then the finalizer is removed, and the next status write turns the uid into a count. A
Pod is not deleted while it has the finalizer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ostinato.kinds.batch_v1 import Job, JobStatus, UncountedTerminatedPods
from ostinato.plane.controllers.workloads.job.indexes import Indexes
from ostinato.plane.controllers.workloads.job.pods import (
    JobPod,
    failure_count,
    finished_at,
    has_failed,
    ignored_failure_count,
    index_of,
    is_indexed,
    is_terminating,
    is_tracked,
    valid_index,
)
from ostinato.plane.controllers.workloads.job.policies import match_failure_policy
from ostinato.plane.objects.pod_state import is_active, is_ready


class PodCounts:
    """Pods of a Job by state, and their totals."""

    def __init__(self, job: Job, pods: Sequence[JobPod]) -> None:
        self.job = job
        self.pods = list(pods)
        self.active = [pod for pod in pods if is_active(pod)]
        self.ready = sum(map(is_ready, self.active))
        self.terminating = sum(map(is_terminating, pods))
        uncounted = uncounted_pods(job.status)
        self.uncounted_succeeded, self.uncounted_failed = frozenset(uncounted.succeeded), frozenset(uncounted.failed)
        self.new_succeeded = self._new(self.uncounted_succeeded, lambda pod: pod.status.phase == "Succeeded")
        self.new_failed = self._new(self.uncounted_failed, lambda pod: has_failed(pod, job))
        counted = sum(match_failure_policy(job, pod).counts for pod in self.new_failed)
        self.failed = (job.status.failed or 0) + counted + len(uncounted.failed)
        self.succeeded = (job.status.succeeded or 0) + len(self.new_succeeded) + len(uncounted.succeeded)
        self.succeeded_before = self.succeeded_indexes = Indexes()
        self.failed_indexes: Indexes | None = None  # None without backoffLimitPerIndex
        self.to_replace: dict[
            int, JobPod
        ] = {}  # failed Pods, kept until their replacement carries on their failure count
        if is_indexed(job):
            self._count_indexes()

    def _new(self, known: Collection[str], wanted: Callable[[JobPod], bool]) -> list[JobPod]:
        indexed = is_indexed(self.job)
        return [
            pod
            for pod in self.pods
            if is_tracked(pod)
            and pod.metadata.uid not in known
            and (not indexed or valid_index(pod, self.job) is not None)
            and wanted(pod)
        ]

    def _count_indexes(self) -> None:
        job, completions = self.job, self.job.spec.completions or 0
        self.succeeded_before = Indexes.parse(job.status.completed_indexes or "", completions)
        tracked = [(index, pod) for pod in self.pods if is_tracked(pod) if (index := valid_index(pod, job)) is not None]
        now = Indexes.of(index for index, pod in tracked if pod.status.phase == "Succeeded")
        self.succeeded_indexes = self.succeeded_before | now
        self.succeeded = len(self.succeeded_indexes)
        if job.spec.backoff_limit_per_index is not None:
            before = Indexes.parse(job.status.failed_indexes or "", completions)
            self.failed_indexes = before | Indexes.of(index for index, pod in tracked if self._fails_index(pod))
            self._find_replaced(tracked, self.failed_indexes)

    def _fails_index(self, pod: JobPod) -> bool:
        if not has_failed(pod, self.job):
            return False
        match = match_failure_policy(self.job, pod)
        limit = self.job.spec.backoff_limit_per_index or 0
        return match.action == "FailIndex" or (match.counts and failure_count(pod) >= limit)

    def _find_replaced(self, tracked: Sequence[tuple[int, JobPod]], failed: Indexes) -> None:
        done = self.succeeded_indexes | failed | self.active_indexes
        for index, pod in tracked:
            if index not in done and has_failed(pod, self.job):
                known = self.to_replace.get(index)
                if known is None or (_attempts(known) <= _attempts(pod) and finished_at(known) <= finished_at(pod)):
                    self.to_replace[index] = pod

    @property
    def active_indexes(self) -> Indexes:
        return Indexes.of(index for pod in self.active if (index := index_of(pod)) is not None)

    @property
    def terminating_indexes(self) -> Indexes:
        return Indexes.of(index for pod in self.pods if is_terminating(pod) if (index := index_of(pod)) is not None)


def _attempts(pod: JobPod) -> int:
    return failure_count(pod) + ignored_failure_count(pod)


def uncounted_pods(status: JobStatus) -> UncountedTerminatedPods:
    """Return uncountedTerminatedPods of the status; created if missing."""
    if status.uncounted_terminated_pods is None:
        status.uncounted_terminated_pods = UncountedTerminatedPods()
    return status.uncounted_terminated_pods


def count_untracked(status: JobStatus, tracked: Collection[str]) -> None:
    """Add Pods without finalizer to the totals and remove their uids."""
    uncounted = uncounted_pods(status)
    succeeded = [uid for uid in uncounted.succeeded if uid in tracked]
    failed = [uid for uid in uncounted.failed if uid in tracked]
    status.succeeded = ((status.succeeded or 0) + len(uncounted.succeeded) - len(succeeded)) or None
    status.failed = ((status.failed or 0) + len(uncounted.failed) - len(failed)) or None
    uncounted.succeeded, uncounted.failed = succeeded, failed
