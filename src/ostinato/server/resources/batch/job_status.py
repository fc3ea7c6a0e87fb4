"""Validation of Job status updates. A finished Job stays finished."""

from __future__ import annotations

from collections.abc import Iterator

from ostinato.api.time import Time
from ostinato.api.validation.field_errors import OMIT, FieldError, Path
from ostinato.server.resources.batch.job_policies import count_indexes
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.workloads import STATUS, counts

_CONDITIONS = STATUS.child("conditions")
_COMPLETION = STATUS.child("completionTime")


class _State:
    """A Job's status, and its true conditions."""

    def __init__(self, job: Json) -> None:
        self.status: Json = job.get("status") or {}
        self.true = {c.get("type") for c in self.status.get("conditions") or () if c.get("status") == "True"}
        self.complete, self.failed = "Complete" in self.true, "Failed" in self.true
        self.finished = self.complete or self.failed
        self.criteria_met = "SuccessCriteriaMet" in self.true
        self.failing = "FailureTarget" in self.true
        self.uncounted = self.status.get("uncountedTerminatedPods") or {}


def job_status_errors(new: Json, old: Json) -> list[FieldError]:
    """Validate a change of a Job's status. Most rules apply only to changed fields."""
    now, before = _State(new), _State(old)
    errors = counts(now.status, STATUS, "active", "succeeded", "failed", "ready", "terminating")
    errors += _uncounted_errors(now)
    errors += _finishing_errors(new, now, before)
    errors += _index_errors(new["spec"], now, before)
    errors += _pod_errors(now, before)
    errors += _criteria_errors(new["spec"], now)
    return errors + list(_history_errors(new["spec"], now, before))


def _changed(now: _State, before: _State, *fields: str) -> bool:
    return any(now.status.get(field) != before.status.get(field) for field in fields)


def _wrong_conditions(detail: str) -> FieldError:
    return FieldError.invalid(_CONDITIONS, OMIT, detail)


def _uncounted_errors(now: _State) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for i, uid in enumerate(now.uncounted.get(field) or ()):
            path = STATUS.child("uncountedTerminatedPods", field).index(i)
            if not uid:
                errors.append(FieldError.invalid(path, uid, "must not be empty"))
            elif uid in seen:
                errors.append(FieldError.duplicate(path, uid))
            seen.add(uid)
    return errors


def _finishing_errors(job: Json, now: _State, before: _State) -> list[FieldError]:
    """Validate the transition to Complete or Failed."""
    status, errors = now.status, []
    completes, fails = now.complete != before.complete, now.failed != before.failed
    finishes = now.finished != before.finished
    if (completes or fails) and now.complete and now.failed:
        errors.append(_wrong_conditions("cannot set Complete=True and Failed=true conditions"))
    if (completes or now.failing != before.failing) and now.complete and now.failing:
        errors.append(_wrong_conditions("cannot set Complete=True and FailureTarget=true conditions"))
    ended, began = status.get("completionTime"), status.get("startTime")
    if completes or _changed(now, before, "completionTime"):
        if ended and not now.complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            errors.append(FieldError.invalid(_COMPLETION, ended, detail))
        if not ended and now.complete:
            errors.append(FieldError.required(_COMPLETION, "completionTime is required for Complete jobs"))
    if (
        _changed(now, before, "startTime", "completionTime")
        and began
        and ended
        and Time.parse(ended) < Time.parse(began)
    ):
        errors.append(FieldError.invalid(_COMPLETION, ended, "must be equal to or after `startTime`"))
    if (fails or _changed(now, before, "failedIndexes")) and now.failed and not now.failing:
        errors.append(_wrong_conditions("cannot set Failed=True condition without the FailureTarget=true condition"))
    if (completes or now.criteria_met != before.criteria_met) and now.complete and not now.criteria_met:
        detail = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
        errors.append(_wrong_conditions(detail))
    if (finishes or _changed(now, before, "active")) and now.finished and status.get("active", 0) > 0:
        errors.append(
            FieldError.invalid(STATUS.child("active"), status["active"], "active>0 is invalid for finished job")
        )
    idle = job["spec"].get("suspend") is True and job["spec"].get("completions") == 0
    if (finishes or _changed(now, before, "startTime")) and not idle and now.finished and not began:
        errors.append(FieldError.required(STATUS.child("startTime"), "startTime is required for finished job"))
    if (finishes or _changed(now, before, "uncountedTerminatedPods")) and now.finished and any(now.uncounted.values()):
        path = STATUS.child("uncountedTerminatedPods")
        errors.append(FieldError.invalid(path, now.uncounted, "must be empty for finished job"))
    return errors


def _index_errors(spec: Json, now: _State, before: _State) -> list[FieldError]:
    status, errors = now.status, list[FieldError]()
    limited = {"completedIndexes": True, "failedIndexes": "backoffLimitPerIndex" in spec}
    for field, checks in limited.items():
        if checks and "completions" in spec and field in status and _changed(now, before, field):
            try:
                count_indexes(status[field], spec["completions"])
            except ValueError as error:
                errors.append(FieldError.invalid(STATUS.child(field), status[field], f"error parsing {field}: {error}"))
    if (
        _changed(now, before, "completedIndexes")
        and status.get("completedIndexes")
        and spec.get("completionMode") != "Indexed"
    ):
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        errors.append(FieldError.invalid(STATUS.child("completedIndexes"), status["completedIndexes"], detail))
    if _changed(now, before, "failedIndexes") and "failedIndexes" in status and "backoffLimitPerIndex" not in spec:
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        errors.append(FieldError.invalid(STATUS.child("failedIndexes"), status["failedIndexes"], detail))
    return errors


def _pod_errors(now: _State, before: _State) -> list[FieldError]:
    status, errors = now.status, []
    finishes = now.finished != before.finished
    if (finishes or _changed(now, before, "terminating")) and now.finished and status.get("terminating", 0) > 0:
        detail = "terminating>0 is invalid for finished job"
        errors.append(FieldError.invalid(STATUS.child("terminating"), status["terminating"], detail))
    ready = status.get("ready")
    if _changed(now, before, "ready", "active") and ready is not None and ready > status.get("active", 0):
        errors.append(FieldError.invalid(STATUS.child("ready"), ready, "cannot set more ready pods than active"))
    return errors


def _criteria_errors(spec: Json, now: _State) -> list[FieldError]:
    errors = []
    if now.criteria_met and now.failed:
        errors.append(_wrong_conditions("cannot set SuccessCriteriaMet=True and Failed=true conditions"))
    if now.criteria_met and now.failing:
        errors.append(_wrong_conditions("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"))
    if "successPolicy" in spec and now.complete and not now.criteria_met:
        detail = "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"
        errors.append(_wrong_conditions(detail))
    return errors


def _history_errors(spec: Json, now: _State, before: _State) -> Iterator[FieldError]:
    """Validate that counts and times are not taken back."""
    status, old = now.status, before.status
    for kind in ("Failed", "Complete", "FailureTarget"):
        if kind in before.true and kind not in now.true:
            yield _wrong_conditions(f"cannot disable the terminal {kind}=True condition")
    counted = ["failed"]
    if spec.get("completionMode") != "Indexed" or spec.get("completions") != spec.get("parallelism"):
        counted.append("succeeded")
    for field in counted:
        if status.get(field, 0) < old.get(field, 0):
            yield _invalid(STATUS.child(field), status.get(field, 0), f"cannot decrease the {field} counter")
    ended, ended_before = status.get("completionTime"), old.get("completionTime")
    if ended and ended_before and ended != ended_before:
        yield _invalid(_COMPLETION, ended, "field is immutable")
    resumes = "Suspended" in before.true and _is_false(status, "Suspended")
    if old.get("startTime") and old["startTime"] != status.get("startTime") and not resumes and not spec.get("suspend"):
        detail = "field is immutable for unsuspended job once set"
        yield _invalid(STATUS.child("startTime"), status.get("startTime"), detail)
    if before.criteria_met and not now.criteria_met:
        yield _wrong_conditions("cannot disable the SuccessCriteriaMet=True condition")
    if before.complete and not before.criteria_met and now.criteria_met:
        yield _wrong_conditions("cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions")


def _invalid(path: Path, value: object, detail: str) -> FieldError:
    return FieldError.invalid(path, value, detail)


def _is_false(status: Json, kind: str) -> bool:
    return any(c.get("type") == kind and c.get("status") == "False" for c in status.get("conditions") or ())
