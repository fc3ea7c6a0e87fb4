"""Job controller: runs Pods until enough of them have succeeded.

- Failed Pods are replaced with exponential backoff until backoffLimit; podFailurePolicy overrides this. An Indexed Job
  has one Pod per completion index, optionally with a backoff limit per index.
- A suspended Job has no Pods; activeDeadlineSeconds terminates it.
- Each Pod has a finalizer until it is counted, so that none is missed or counted twice.
- Pod events cause at most one sync per second; a changed spec is synced immediately.
- A Job with another `spec.managedBy` is ignored.

`tracking` counts Pods, `completion` decides whether the Job is finished, `sync` performs one sync.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import msgspec

from ostinato.api.errors import NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.owners import controller_of
from ostinato.cache import Deleted, Entry, Event, by
from ostinato.controllers import Context, Request, Result
from ostinato.controllers.sources.handlers import Keys
from ostinato.kinds.batch_v1 import Job
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.workloads.job.backoff import Failures
from ostinato.plane.controllers.workloads.job.completion import is_finished
from ostinato.plane.controllers.workloads.job.pods import TRACKING, JobPod
from ostinato.plane.controllers.workloads.job.sync import MIN_SYNC_INTERVAL, REMOVE_TRACKING_FINALIZER, JobSync
from ostinato.plane.controllers.workloads.slow_start import slow_start
from ostinato.plane.ownership.controller_refs import ControllerRefManager, add_controller_index
from ostinato.plane.ownership.event_handler import ForControllerRef, selector_of
from ostinato.queue import ExponentialBackoff

NAME: Final = "job-controller"
_MANAGED_HERE: Final = (None, "kubernetes.io/job-controller")
_WORKERS: Final = 5


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    add_controller_index(manager, JobPod)
    with suppress(ValueError):  # the index exists
        manager.informers.of(JobPod).add_index(BY_TRACKED_JOB)
    (
        manager.build(NAME)
        .watch_for(Job)
        .watches(JobPod, handler=_ForJobs())
        .with_options(max_concurrent=_WORKERS, limiter=lambda: ExponentialBackoff(1.0, 60.0))
        .complete(JobReconciler())
    )


def _tracked_for(entry: Entry) -> str | None:
    """Return the key of the Job of a Pod with the tracking finalizer; without a name if the Pod is an orphan."""
    if entry.owner_uids and b'"Job"' not in entry.owners_json:
        return None
    header = entry.header
    if TRACKING not in (header.finalizers or ()):
        return None
    manager = header.controller
    if manager is None:
        return str(NamespacedName(entry.key.namespace, ""))
    return str(NamespacedName(entry.key.namespace, manager.name)) if manager.kind == "Job" else None


BY_TRACKED_JOB: Final = by("job tracking", _tracked_for)
"""Index: Pods with the tracking finalizer, by the key of their Job."""


class _ForJobs(ForControllerRef[Job]):
    """Enqueues the Job of a Pod, and for an orphan with the tracking finalizer a key without a name."""

    def __init__(self) -> None:
        super().__init__(Job)

    def keys(self, event: Event) -> Keys:
        keys = super().keys(event)
        entry = event.object
        if not entry.owner_uids and not isinstance(event, Deleted) and _tracked_for(entry) is not None:
            return [*keys, NamespacedName(entry.key.namespace, "")]
        return keys


class _JobState(msgspec.Struct):
    """State of a Job between two syncs."""

    uid: str
    generation: int
    last_sync: float
    failures: Failures = Failures()


class JobReconciler:
    def __init__(self) -> None:
        self._states: dict[Request, _JobState] = {}

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        job = await ctx.client.get(Job, request, missing=None) if request.name else None
        if job is not None and not is_finished(job) and job.spec.managed_by in _MANAGED_HERE:
            if wait := self._sync_delay(request, job, ctx):
                return Result(requeue_after=wait)
            await self._release(request, job, ctx)
            requeue_after = await self._sync(request, job, ctx)
            return None if requeue_after is None else Result(requeue_after=requeue_after)
        self._states.pop(request, None)
        await self._release(request, job, ctx)
        return None

    def _sync_delay(self, request: Request, job: Job, ctx: Context) -> float:
        """Return the seconds until the next sync is allowed; a changed spec is not delayed."""
        state, now = self._states.get(request), ctx.world.clock.monotonic()
        if state is None or state.uid != job.metadata.uid:
            self._states[request] = _JobState(job.metadata.uid, job.metadata.generation, now)
            return 0.0
        if state.generation == job.metadata.generation and now < state.last_sync + MIN_SYNC_INTERVAL:
            return state.last_sync + MIN_SYNC_INTERVAL - now
        state.generation, state.last_sync = job.metadata.generation, now
        return 0.0

    async def _sync(self, request: Request, job: Job, ctx: Context) -> float | None:
        claims = ControllerRefManager(ctx.client, job, selector_of(job.spec.selector), JobPod, finalizers=(TRACKING,))
        state = self._states[request]
        sync = JobSync(job, await claims.claim(), state.failures, ctx)
        try:
            return await sync.run()
        finally:
            state.failures = sync.failures

    async def _release(self, request: Request, job: Job | None, ctx: Context) -> None:
        """Remove the tracking finalizer from Pods whose Job is finished, deleted or recreated."""
        found = await ctx.client.list(JobPod, index=(BY_TRACKED_JOB.name, str(request)))
        if job is not None:
            is_live = not is_finished(job) or job.spec.managed_by not in _MANAGED_HERE
            found[:] = [each for each in found if not (is_live and _is_controlled_by(each, job))]

        async def release(pod: JobPod) -> None:
            with suppress(NotFound):
                await ctx.client.patch(JobPod, pod.metadata, REMOVE_TRACKING_FINALIZER)

        await slow_start(found, release)


def _is_controlled_by(pod: JobPod, job: Job) -> bool:
    manager = controller_of(pod)
    return manager is not None and manager.uid == job.metadata.uid
