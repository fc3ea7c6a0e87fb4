"""Completion of a Job.

A Job first gets an interim condition (`SuccessCriteriaMet`, `FailureTarget`), which makes the decision final, and the
terminal condition (`Complete`, `Failed`) when all Pods are terminated and counted.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.batch_v1 import Job, JobCondition
from ostinato.plane.controllers.workloads.job.pods import restarts
from ostinato.plane.controllers.workloads.job.policies import job_failure_message, match_success_policy
from ostinato.plane.controllers.workloads.job.tracking import PodCounts

_DEFAULT_LIMIT: Final = 6


class Finish(msgspec.Struct, frozen=True):
    """Outcome of a Job."""

    succeeds: bool
    reason: str
    message: str

    @property
    def criteria_condition(self) -> str:
        return "SuccessCriteriaMet" if self.succeeds else "FailureTarget"

    @property
    def condition(self) -> str:
        return "Complete" if self.succeeds else "Failed"


COMPLETED: Final = Finish(True, "CompletionsReached", "Reached expected number of succeeded pods")  # noqa: FBT003


def finish_of(count: PodCounts, now: datetime) -> Finish | None:
    """Return the outcome if the Job is finished regardless of active Pods; None otherwise."""
    job = count.job
    for succeeds in (True, False):
        announced = find(job, Finish(succeeds, "", "").criteria_condition)
        if announced is not None and announced.status == "True":
            return Finish(succeeds, announced.reason or "", announced.message or "")
    if message := job_failure_message(job, count.pods):
        return _failed("PodFailurePolicy", message)
    limit = _DEFAULT_LIMIT if job.spec.backoff_limit is None else job.spec.backoff_limit
    if count.failed > limit or _is_restarted_too_often(count, limit):
        return _failed("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left = time_left(job, now)
    if left is not None and left <= 0:
        return _failed("DeadlineExceeded", "Job was active longer than specified deadline")
    if count.failed_indexes is not None:
        most, failed = job.spec.max_failed_indexes, len(count.failed_indexes)
        if most is not None and failed > most:
            message = "Job has exceeded the specified maximal number of failed indexes"
            return _failed("MaxFailedIndexesExceeded", message)
        if failed and failed + len(count.succeeded_indexes) >= (job.spec.completions or 0):
            return _failed("FailedIndexes", "Job has failed indexes")
    if message := match_success_policy(job, count.succeeded_indexes):
        return Finish(True, "SuccessPolicy", message)  # noqa: FBT003
    return None


def _failed(reason: str, message: str) -> Finish:
    return Finish(False, reason, message)  # noqa: FBT003


def _is_restarted_too_often(count: PodCounts, limit: int) -> bool:
    """Return whether container restarts exceed the backoff limit (restartPolicy OnFailure)."""
    if count.job.spec.template.spec.restart_policy != "OnFailure":
        return False
    return restarts(count.pods) >= max(limit, 1)


def time_left(job: Job, now: datetime) -> float | None:
    """Return the seconds until activeDeadlineSeconds; None if it does not apply."""
    if job.spec.active_deadline_seconds is None or job.status.start_time is None or job.spec.suspend:
        return None
    return job.spec.active_deadline_seconds - (now - job.status.start_time).total_seconds()


def is_finished(job: Job) -> bool:
    return any(each.type in ("Complete", "Failed") and each.status == "True" for each in job.status.conditions)


def find(job: Job, kind: str) -> JobCondition | None:
    return next((each for each in job.status.conditions if each.type == kind), None)


def set_condition(job: Job, wanted: JobCondition, now: Time) -> bool:
    """Set a condition; return whether it changed. A condition that was never True is not set to False."""
    known = find(job, wanted.type)
    if known is None and wanted.status == "False":
        return False
    if known is not None and (known.status, known.reason, known.message) == (
        wanted.status,
        wanted.reason,
        wanted.message,
    ):
        return False
    wanted.last_probe_time = wanted.last_transition_time = now
    others = [each for each in job.status.conditions if each is not known]
    job.status.conditions = [*others, wanted]
    return True
