"""One sync of a Job.

1. Count Pods and decide whether the Job is finished.
2. Delete or create Pods; never both in one sync.
3. Write the status with the uids of finished Pods, remove their finalizers, then write the totals.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Final

from ostinato.api.errors import NAMESPACE_TERMINATING, APIError, NotFound
from ostinato.client.patching import StrategicMergePatch
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Context
from ostinato.kinds.batch_v1 import Job, JobCondition
from ostinato.plane.controllers.workloads.job.backoff import Failures, of_index
from ostinato.plane.controllers.workloads.job.completion import COMPLETED, Finish, finish_of, set_condition, time_left
from ostinato.plane.controllers.workloads.job.new_pod import new_pod
from ostinato.plane.controllers.workloads.job.pods import (
    TRACKING,
    JobPod,
    deletion_order,
    has_failed,
    is_indexed,
    is_tracked,
    only_replaces_failed_pods,
    split_by_index,
    valid_index,
)
from ostinato.plane.controllers.workloads.job.policies import match_failure_policy
from ostinato.plane.controllers.workloads.job.tracking import PodCounts, count_untracked, uncounted_pods
from ostinato.plane.controllers.workloads.pod_control import create_pod, encoded
from ostinato.plane.controllers.workloads.slow_start import slow_start
from ostinato.plane.objects.pod_state import is_ready

MAX_PODS_PER_SYNC: Final = 500  # Pods created, deleted or counted per sync
MIN_SYNC_INTERVAL: Final = 1.0  # seconds between two syncs caused by Pod events

REMOVE_TRACKING_FINALIZER: Final = StrategicMergePatch(
    {"metadata": {"$deleteFromPrimitiveList/finalizers": [TRACKING]}}
)


class JobSync:
    def __init__(self, job: Job, pods: list[JobPod], failures: Failures, ctx: Context) -> None:
        self.failures = failures  # after the status is written
        self._job = job
        self._written = copy.deepcopy(job.status)
        self._ctx = ctx
        self._client = ctx.client
        self._now = ctx.world.clock.now()
        self._count = PodCounts(job, pods)
        self._active = len(self._count.active)
        self._ready = self._count.ready
        self._terminating = self._count.terminating
        self._requeue_after: list[float] = []  # candidates, in seconds
        self._events: list[tuple[str, str]] = []  # recorded after the status is written

    async def run(self) -> float | None:
        """Sync; return the seconds until the next sync, None if it is not known."""
        job, error = self._job, None  # an error here must not prevent finished Pods from being counted
        if job.status.start_time is None and not job.spec.suspend:
            job.status.start_time = self._ctx.now()
        finish = finish_of(self._count, self._now)
        try:
            if finish is not None:
                await self._delete(self._count.active, counted=True)
            elif job.metadata.deletion_timestamp is None:
                await self._manage()
        except (APIError, TransportError) as api_error:
            error, finish = api_error, None
        if finish is None and error is None:
            finish = self._completed()
            if finish is None and job.metadata.deletion_timestamp is None:
                self._update_suspended()
        left = time_left(job, self._now)
        if left is not None and finish is None:
            self._requeue_after.append(left)
        await self._track_status(finish)
        if error is not None:
            raise error
        return min(self._requeue_after, default=None)

    def _completed(self) -> Finish | None:
        wanted, succeeded = self._job.spec.completions, self._count.succeeded
        enough = succeeded > 0 if wanted is None else succeeded >= wanted
        return COMPLETED if enough and self._active == 0 else None

    def _update_suspended(self) -> None:
        job, now = self._job, self._ctx.now()
        if job.spec.suspend:
            suspended = JobCondition(type="Suspended", status="True", reason="JobSuspended", message="Job suspended")
            if set_condition(job, suspended, now):
                self._events.append(("Suspended", "Job suspended"))
                job.status.start_time = None
        else:
            resumed = JobCondition(type="Suspended", status="False", reason="JobResumed", message="Job resumed")
            if set_condition(job, resumed, now):
                self._events.append(("Resumed", "Job resumed"))
                job.status.start_time = now  # activeDeadlineSeconds counts from here

    # Creation and deletion of Pods

    async def _manage(self) -> None:
        job, count = self._job, self._count
        if job.spec.suspend:
            await self._delete(count.active, counted=False)
            return
        parallelism = 1 if job.spec.parallelism is None else job.spec.parallelism
        if job.spec.completions is not None:
            wanted = max(0, min(job.spec.completions - count.succeeded, parallelism))
        else:
            wanted = self._active if count.succeeded else parallelism
        extra = self._extra(max(0, self._active - wanted))
        if extra:
            await self._delete(extra[:MAX_PODS_PER_SYNC], counted=False)
            return
        terminating = self._terminating if only_replaces_failed_pods(job) else 0
        missing = min(wanted - terminating - self._active, MAX_PODS_PER_SYNC)
        if missing > 0:
            await self._create(missing)

    def _extra(self, at_least: int) -> list[JobPod]:
        extra, left = (
            split_by_index(self._count.active, self._job) if is_indexed(self._job) else ([], self._count.active)
        )
        return extra + deletion_order(left)[: max(0, at_least - len(extra))]

    async def _create(self, missing: int) -> None:
        if not is_indexed(self._job):
            if self._backoff_expired(self._next_failures()):
                await slow_start([None] * missing, self._create_one)
            return
        per_index_backoff = self._count.failed_indexes is not None
        if not per_index_backoff and not self._backoff_expired(self._next_failures()):
            return
        pending = self._pending_indexes(missing)
        if per_index_backoff:
            waits = {index: of_index(self._count.to_replace.get(index)).wait(self._now) for index in pending}
            ready = [index for index in pending if not waits[index]]
            if not ready and waits:
                self._requeue_after.append(max(min(waits.values()), MIN_SYNC_INTERVAL))
            pending = ready
        await slow_start(pending, self._create_one)

    def _next_failures(self) -> Failures:
        return self.failures.after(self._count.new_succeeded, self._count.new_failed)

    def _backoff_expired(self, failures: Failures) -> bool:
        wait = failures.wait(self._now)
        if wait > 0:
            self._requeue_after.append(max(wait, MIN_SYNC_INTERVAL))
        return wait <= 0

    def _pending_indexes(self, most: int) -> list[int]:
        count = self._count
        taken = count.succeeded_indexes | count.active_indexes
        if only_replaces_failed_pods(self._job):
            taken |= count.terminating_indexes
        if count.failed_indexes is not None:
            taken |= count.failed_indexes
        missing = taken.missing(self._job.spec.completions or 0)
        return [index for index, _ in zip(missing, range(most), strict=False)]

    async def _create_one(self, index: int | None) -> None:
        replaced = None if index is None else self._count.to_replace.get(index)
        try:
            await create_pod(self._ctx, self._job, encoded(new_pod(self._job, index, replaced)))
        except APIError as error:
            if not error.has_cause(NAMESPACE_TERMINATING):
                raise
            return
        self._active += 1

    async def _delete(self, pods: list[JobPod], *, counted: bool) -> None:
        """Delete Pods. `counted`: they count as failed; otherwise their finalizer is removed first."""

        async def delete(pod: JobPod) -> None:
            try:
                if not counted and is_tracked(pod):
                    await self._client.patch(JobPod, pod.metadata, REMOVE_TRACKING_FINALIZER)
                    pod.metadata.finalizers = [each for each in pod.metadata.finalizers if each != TRACKING]
                await self._client.delete(pod)
            except NotFound:
                pass
            except (APIError, TransportError) as error:
                self._ctx.event(self._job, "FailedDelete", f"Error deleting: {error}", kind="Warning")
                raise
            else:
                self._ctx.event(self._job, "SuccessfulDelete", f"Deleted pod: {pod.metadata.name}")
            self._active -= 1
            self._terminating += 1
            self._ready -= is_ready(pod)

        await slow_start(pods, delete)

    # Status

    async def _track_status(self, finish: Finish | None) -> None:
        job, count = self._job, self._count
        status = job.status
        status.active, status.ready, status.terminating = self._active or None, self._ready, self._terminating
        tracked = {pod.metadata.uid for pod in count.pods if is_tracked(pod)}
        count_untracked(status, tracked)
        finished_pods = self._record_uncounted(finish)
        if is_indexed(job):
            status.succeeded = len(count.succeeded_indexes) or None
            status.completed_indexes = str(count.succeeded_indexes) or None
            status.failed_indexes = None if count.failed_indexes is None else str(count.failed_indexes)
        if finish is not None:
            self._set_condition(finish.criteria_condition, finish)
        await self._write_status()
        self.failures = self._next_failures()
        try:
            await slow_start(finished_pods, lambda pod: self._remove_finalizer(pod, tracked))
        finally:
            count_untracked(self._job.status, tracked)
            finished = finish is not None and len(finished_pods) < MAX_PODS_PER_SYNC and self._is_fully_counted()
            if finish is not None and finished:
                self._set_condition(finish.condition, finish)
            await self._write_status()
        if finish is not None and finished:
            self._record_finished(finish)

    def _record_uncounted(self, finish: Finish | None) -> list[JobPod]:
        """Add finished Pods to uncountedTerminatedPods; return the Pods whose finalizer can be removed."""
        job, count = self._job, self._count
        indexed, uncounted = is_indexed(job), uncounted_pods(job.status)
        finished_pods: list[JobPod] = []
        for pod in count.pods:
            if not is_tracked(pod) or not self._can_remove_finalizer(pod, finish):
                continue
            finished_pods.append(pod)
            uid = pod.metadata.uid
            if pod.status.phase == "Succeeded" and uid not in count.uncounted_failed:
                if not indexed and uid not in count.uncounted_succeeded:
                    uncounted.succeeded.append(uid)
            elif has_failed(pod, job) or (finish is not None and not finish.succeeds):
                counts = not indexed or valid_index(pod, job) is not None
                if counts and uid not in count.uncounted_failed and match_failure_policy(job, pod).counts:
                    uncounted.failed.append(uid)
            if len(finished_pods) >= MAX_PODS_PER_SYNC:
                break
        return finished_pods

    def _can_remove_finalizer(self, pod: JobPod, finish: Finish | None) -> bool:
        job = self._job
        if job.metadata.deletion_timestamp is not None or finish is not None or pod.status.phase == "Succeeded":
            return True
        return has_failed(pod, job) and pod not in self._count.to_replace.values()

    async def _remove_finalizer(self, pod: JobPod, tracked: set[str]) -> None:
        with suppress(NotFound):
            await self._client.patch(JobPod, pod.metadata, REMOVE_TRACKING_FINALIZER)
        tracked.discard(pod.metadata.uid)

    def _is_fully_counted(self) -> bool:
        uncounted = uncounted_pods(self._job.status)
        return not uncounted.succeeded and not uncounted.failed and self._terminating == 0

    def _set_condition(self, kind: str, finish: Finish) -> None:
        now = self._ctx.now()
        condition = JobCondition(type=kind, status="True", reason=finish.reason, message=finish.message)
        set_condition(self._job, condition, now)
        if kind == "Complete":  # validation rejects one before startTime, which a clock that was set back would give
            self._job.status.completion_time = max(now, self._job.status.start_time or now)

    def _record_finished(self, finish: Finish) -> None:
        job = self._job
        if not finish.succeeds:
            self._ctx.event(job, finish.reason, finish.message, kind="Warning")
            return
        if job.spec.completions is not None and (job.status.succeeded or 0) > job.spec.completions:
            message = "Too many succeeded pods running after completion count reached"
            self._ctx.event(job, "TooManySucceededPods", message, kind="Warning")
        self._ctx.event(job, "Completed", "Job completed")

    async def _write_status(self) -> None:
        """Write the status if it changed, then record pending events."""
        if self._job.status != self._written:
            self._job = await self._client.update(self._job, subresource="status")
            uncounted_pods(self._job.status)
            self._written = copy.deepcopy(self._job.status)
        while self._events:
            self._ctx.event(self._job, *self._events.pop(0))
