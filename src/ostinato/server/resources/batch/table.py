"""Table rows of the batch group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.api.time import Time
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import (
    NONE,
    UNSET,
    Cells,
    age,
    condition_status,
    container_cells,
    human,
    name_of,
    selector_text,
    since,
    spec_and_status,
)

_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job(obj: Json, now: datetime) -> list[Any]:
    spec, status = spec_and_status(obj)
    done = status.get("succeeded", 0)
    if "completions" in spec:
        completions = f"{done}/{spec['completions']}"
    elif spec.get("parallelism", 0) > 1:
        completions = f"{done}/1 of {spec['parallelism']}"
    else:
        completions = f"{done}/1"
    lasted = ""
    if status.get("startTime"):
        end = Time.parse(status["completionTime"]) if status.get("completionTime") else now
        lasted = human(end - Time.parse(status["startTime"]))
    return [
        name_of(obj),
        _job_state(obj),
        completions,
        lasted,
        age(obj, now),
        *container_cells(spec.get("template") or {}),
        selector_text(spec.get("selector")),
    ]


def _job_state(obj: Json) -> str:
    for condition, word in _JOB_STATES:
        if condition:
            if condition_status(obj, condition) == "True":
                return word
        elif obj["metadata"].get("deletionTimestamp"):
            return word
    return "Running"


def _cron_job(obj: Json, now: datetime) -> list[Any]:
    spec, status = spec_and_status(obj)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    suspended = spec.get("suspend")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        UNSET if suspended is None else str(bool(suspended)),
        len(status.get("active") or ()),
        since(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE,
        age(obj, now),
        *container_cells(job.get("template") or {}),
        selector_text(job.get("selector")),
    ]


CELLS: dict[tuple[str, str], Cells] = {
    ("batch", "jobs"): _job,
    ("batch", "cronjobs"): _cron_job,
}
