"""CronJob controller: creates Jobs on a schedule.

- A Job's name contains its scheduled time, so no run is started twice. Of several missed runs only the latest is
  started, within its starting deadline.
- concurrencyPolicy: a run that is due while another is active is started (`Allow`), skipped (`Forbid`), or replaces it
  (`Replace`).
- Finished Jobs are kept up to the history limits.
- A changed schedule starts with its next time; missed times are not made up for.
- An invalid schedule or time zone is reported by an event and not retried until it changes.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

from ostinato.api.errors import NAMESPACE_TERMINATING, AlreadyExists, APIError
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import kind_of
from ostinato.api.owners import controller_reference_to, is_controlled_by
from ostinato.api.text.cron import Schedule, ScheduleError, parse_schedule
from ostinato.api.text.go_format import quote
from ostinato.api.time import Time
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.batch_v1 import CronJob, Job
from ostinato.kinds.core_v1 import ObjectReference
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.workloads.cronjob.schedule import MANY_MISSED, missed_schedules, seconds_until_next
from ostinato.plane.ownership.controller_refs import BY_CONTROLLER, add_controller_index

NAME: Final = "cronjob-controller"
_SCHEDULED: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_WORKERS: Final = 5
_DOCUMENTATION: Final = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/"


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    add_controller_index(manager, Job)
    (
        manager.build(NAME)
        .watch_for(CronJob)
        .owns(Job)
        .with_options(max_concurrent=_WORKERS)
        .complete(CronJobReconciler())
    )


class CronJobReconciler:
    def __init__(self) -> None:
        self._schedules: dict[Request, tuple[str, str, str]] = {}  # (uid, schedule, time zone) of the last sync

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        cron = await ctx.client.get(CronJob, request, missing=None)
        if cron is None:
            self._schedules.pop(request, None)
            return None
        jobs = await ctx.client.list(Job, index=(BY_CONTROLLER.name, cron.metadata.uid))
        sync = _Sync(cron, jobs, ctx)
        seconds = await sync.run(rescheduled=self._is_rescheduled(request, cron))
        return None if seconds is None else Result(requeue_after=seconds)

    def _is_rescheduled(self, request: Request, cron: CronJob) -> bool:
        before = self._schedules.get(request)
        now = (cron.metadata.uid, cron.spec.schedule, cron.spec.time_zone or "")
        self._schedules[request] = now
        return before is not None and before != now and before[0] == now[0]


class _Sync:
    """One sync of one CronJob."""

    def __init__(self, cron: CronJob, jobs: Iterable[Job], ctx: Context) -> None:
        self._cron = cron
        self._jobs = list(jobs)
        self._ctx = ctx
        self._client = ctx.client
        self._now = ctx.world.clock.now()

    async def run(self, *, rescheduled: bool) -> float | None:
        """Sync; return the seconds until the next sync, None if only a change triggers one."""
        before = copy.deepcopy(self._cron.status)
        error: APIError | None = None
        seconds = None
        try:
            await self._clean_up()
            await self._sync_active()
            seconds = await self._start_due_job(rescheduled=rescheduled)
        except APIError as failed:
            error = failed
        if self._cron.status != before:
            self._cron = await self._client.update(self._cron, subresource="status")
        if error is not None and not error.has_cause(NAMESPACE_TERMINATING):
            raise error
        return seconds

    # Existing Jobs

    async def _clean_up(self) -> None:
        spec = self._cron.spec
        for kind, limit in (
            ("Complete", spec.successful_jobs_history_limit),
            ("Failed", spec.failed_jobs_history_limit),
        ):
            if limit is not None:
                ended = sorted((each for each in self._jobs if _finished_condition(each) == kind), key=_age)
                for job in ended[: max(0, len(ended) - limit)]:
                    with suppress(APIError):  # reported by an event, retried with the next sync
                        await self._delete(job)

    async def _sync_active(self) -> None:
        """Update status.active."""
        for job in self._jobs:
            active, end = self._is_active(job.metadata.uid), _finished_condition(job)
            if end:
                if active:
                    self._remove_active(job.metadata.uid)
                    self._event("SawCompletedJob", f"Saw completed job: {job.metadata.name}, condition: {end}")
                if end == "Complete" and job.status.completion_time is not None:
                    last = self._cron.status.last_successful_time
                    if last is None or job.status.completion_time > last:
                        self._cron.status.last_successful_time = job.status.completion_time
            elif not active:
                message = f"Saw a job that the controller did not create or forgot: {job.metadata.name}"
                self._event("UnexpectedJob", message, "Warning")
        present = {each.metadata.uid for each in self._jobs}
        for reference in list(self._cron.status.active):
            if reference.uid in present:
                continue
            name, namespace = reference.name or "", reference.namespace or self._cron.metadata.namespace
            if await self._client.live.get(Job, name, namespace=namespace, missing=None) is None:
                self._event("MissingJob", f"Active job went missing: {name}")
                self._remove_active(reference.uid or "")

    async def _delete(self, job: Job) -> None:
        try:
            await self._client.delete(job, propagation="Background")
        except APIError as error:
            self._event("FailedDelete", f"Deleted job: {error}", "Warning")
            raise
        self._remove_active(job.metadata.uid)
        self._event("SuccessfulDelete", f"Deleted job {job.metadata.name}")

    def _is_active(self, uid: str) -> bool:
        return any(each.uid == uid for each in self._cron.status.active)

    def _remove_active(self, uid: str) -> None:
        self._cron.status.active = [each for each in self._cron.status.active if each.uid != uid]

    # The next Job

    async def _start_due_job(self, *, rescheduled: bool) -> float | None:
        cron = self._cron
        if cron.metadata.deletion_timestamp is not None or cron.spec.suspend:
            return None
        schedule = self._schedule()
        if schedule is None:
            return None
        if not rescheduled:
            try:
                found = missed_schedules(cron, schedule, self._now)
            except ScheduleError as error:
                self._event("InvalidSchedule", f"invalid schedule: {cron.spec.schedule} : {error}", "Warning")
                return None
            if found.newest is not None:
                if found.missed > MANY_MISSED:
                    message = (
                        "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                    )
                    self._event("TooManyMissedTimes", message, "Warning")
                if self._may_start(found.newest):
                    await self._start(found.newest)
        return seconds_until_next(cron, schedule, self._now)

    def _schedule(self) -> Schedule | None:
        spec = self._cron.spec
        if spec.time_zone is not None:
            try:
                parse_schedule("@hourly", spec.time_zone)
            except ScheduleError as error:
                self._event("UnknownTimeZone", f"invalid timeZone: {quote(spec.time_zone)}: {error}", "Warning")
                return None
        if "TZ" in spec.schedule:
            message = f"CRON_TZ or TZ used in schedule {quote(spec.schedule)} is not officially supported"
            self._event("UnsupportedSchedule", f"{message}, see {_DOCUMENTATION} for more details", "Warning")
        try:
            return parse_schedule(spec.schedule, spec.time_zone or "UTC")
        except ScheduleError as error:
            message = f"unparseable schedule: {quote(spec.schedule)} : {error}"
            self._event("UnparseableSchedule", message, "Warning")
            return None

    def _may_start(self, moment: datetime) -> bool:
        cron, active = self._cron, self._cron.status.active
        deadline = cron.spec.starting_deadline_seconds
        if deadline is not None and (self._now - moment).total_seconds() > deadline:
            when = moment.astimezone(UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            self._event("MissSchedule", f"Missed scheduled time to start a job: {when}", "Warning")
            return False
        name = _name_of(cron, moment)
        if cron.status.last_schedule_time == moment or any(each.name == name for each in active):
            return False
        if cron.spec.concurrency_policy == "Forbid" and active:
            message = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self._event("JobAlreadyActive", message)
            return False
        return True

    async def _start(self, moment: datetime) -> None:
        cron = self._cron
        if cron.spec.concurrency_policy == "Replace":
            for reference in list(cron.status.active):
                await self._replace(reference)
        wanted = _job_of(cron, moment)
        self._ctx.explain(f"the schedule {cron.spec.schedule} of CronJob {cron.metadata.name} was due at {moment}")
        try:
            job = await self._client.create(wanted)
            self._event("SuccessfulCreate", f"Created job {job.metadata.name}")
        except AlreadyExists:
            job = await self._client.live.get(Job, wanted.metadata)
            if not is_controlled_by(job, cron) or self._is_active(job.metadata.uid):
                return
        except APIError as error:
            if not error.has_cause(NAMESPACE_TERMINATING):
                self._event("FailedCreate", f"Error creating job: {error}", "Warning")
            raise
        cron.status.active = [*cron.status.active, _reference_to(job)]
        cron.status.last_schedule_time = Time.of(moment)

    async def _replace(self, reference: ObjectReference) -> None:
        namespace = reference.namespace or self._cron.metadata.namespace
        try:
            job = await self._client.live.get(Job, reference.name or "", namespace=namespace)
        except APIError as error:
            self._event("FailedGet", f"Get job: {error}", "Warning")
            raise
        await self._delete(job)

    def _event(self, reason: str, note: str, kind: str = "Normal") -> None:
        self._ctx.event(self._cron, reason, note, kind=kind)


def _job_of(cron: CronJob, moment: datetime) -> Job:
    template = cron.spec.job_template
    local = moment.astimezone(ZoneInfo(cron.spec.time_zone) if cron.spec.time_zone else UTC)
    written = local.isoformat(timespec="seconds").replace("+00:00", "Z")
    return Job(
        metadata=ObjectMeta(
            name=_name_of(cron, moment),
            namespace=cron.metadata.namespace,
            labels=dict(template.metadata.labels),
            annotations={**template.metadata.annotations, _SCHEDULED: written},
            owner_references=[controller_reference_to(cron)],
        ),
        spec=copy.deepcopy(template.spec),
    )


def _name_of(cron: CronJob, moment: datetime) -> str:
    return f"{cron.metadata.name}-{int(moment.timestamp()) // 60}"


def _reference_to(job: Job) -> ObjectReference:
    gvk, metadata = kind_of(job).gvk, job.metadata
    return ObjectReference(
        api_version=gvk.api_version,
        kind=gvk.kind,
        name=metadata.name,
        namespace=metadata.namespace,
        resource_version=metadata.resource_version,
        uid=metadata.uid,
    )


def _finished_condition(job: Job) -> str:
    """Return the type of the finished condition; "" if the Job is not finished."""
    ends = (each.type for each in job.status.conditions if each.status == "True")
    return next((each for each in ends if each in ("Complete", "Failed")), "")


def _age(job: Job) -> tuple[bool, datetime, str]:
    """Sort key: oldest first, Jobs without a start time last."""
    began = job.status.start_time
    return began is None, began or datetime.max.replace(tzinfo=UTC), job.metadata.name
