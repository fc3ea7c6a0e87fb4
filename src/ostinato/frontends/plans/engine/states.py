"""States of plans, phases and steps, and the record of them in a status.

| state | meaning |
|---|---|
| `NEVER_RUN` | not requested yet |
| `PENDING` | requested, not started |
| `IN_PROGRESS` | started; its objects are not healthy yet |
| `COMPLETE` | done |
| `ERROR` | failed, and tried again |
| `FATAL_ERROR` | failed; the plan has stopped |
| `CANCELLED` | stopped on request; not a state of KUDO |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ostinato.api.time import Time
from ostinato.frontends.plans.api import PhaseStatus, Plan, PlanStatus, StepStatus

NEVER_RUN: Final = "NEVER_RUN"
PENDING: Final = "PENDING"
IN_PROGRESS: Final = "IN_PROGRESS"
COMPLETE: Final = "COMPLETE"
ERROR: Final = "ERROR"
FATAL_ERROR: Final = "FATAL_ERROR"
CANCELLED: Final = "CANCELLED"

RUNNING: Final = (PENDING, IN_PROGRESS, ERROR)
TERMINAL: Final = (COMPLETE, FATAL_ERROR, CANCELLED)
SKIPPED: Final = "skipped on request"


def prepare(plans: Mapping[str, Plan], recorded: Mapping[str, PlanStatus]) -> dict[str, PlanStatus]:
    """Return a status for every plan, in the order of its phases and steps, with the recorded states.

    Plans that the operator no longer has keep their record.
    """
    prepared = dict(recorded)
    for name, plan in plans.items():
        known = recorded.get(name) or PlanStatus(name=name, status=NEVER_RUN)
        prepared[name] = known
        if plan.phases is None:
            continue  # a plan in Python: its phases are known as it runs
        phases = {each.name: each for each in known.phases}
        known.phases = []
        for phase in plan.phases:
            status = phases.get(phase.name) or PhaseStatus(name=phase.name, status=NEVER_RUN)
            steps = {each.name: each for each in status.steps}
            status.steps = [
                steps.get(step.name) or StepStatus(name=step.name, status=NEVER_RUN) for step in phase.steps
            ]
            known.phases.append(status)
    return prepared


def reset(status: PlanStatus, uid: str, now: Time) -> None:
    """Make a plan pending, with all its phases and steps."""
    status.uid, status.status, status.message, status.last_updated_timestamp = uid, PENDING, "", now
    for phase in status.phases:
        phase.status, phase.message = PENDING, ""
        for step in phase.steps:
            step.status, step.message = PENDING, ""


def resume(status: PlanStatus, now: Time) -> None:
    """Make what is not complete pending: a stopped plan goes on where it stopped."""
    status.status, status.message, status.last_updated_timestamp = PENDING, "", now
    for phase in status.phases:
        if phase.status != COMPLETE:
            phase.status, phase.message = PENDING, ""
            for step in phase.steps:
                if step.status != COMPLETE:
                    step.status, step.message = PENDING, ""


def cancel(status: PlanStatus, message: str, now: Time) -> None:
    """Stop a plan: what is not complete is cancelled."""
    status.status, status.message, status.last_updated_timestamp = CANCELLED, message, now
    for phase in status.phases:
        if phase.status != COMPLETE:
            phase.status = CANCELLED
            for step in phase.steps:
                if step.status != COMPLETE:
                    step.status = CANCELLED


def skip(status: PlanStatus, phase_name: str, step_name: str) -> str:
    """Mark a step as complete without running it. Returns what is wrong, or ""."""
    for phase in status.phases:
        for step in phase.steps:
            if step.name == step_name and phase_name in ("", phase.name):
                if step.status == COMPLETE:
                    return f"step {phase.name}.{step.name} is complete"
                step.status, step.message = COMPLETE, SKIPPED
                return ""
    wanted = f"{phase_name}.{step_name}" if phase_name else step_name
    known = ", ".join(f"{phase.name}.{step.name}" for phase in status.phases for step in phase.steps)
    return f"plan {status.name} has no step {wanted}; its steps are {known}"


def unfinished(status: PlanStatus) -> tuple[str, str] | None:
    """Return phase and step of the first step that is not complete."""
    for phase in status.phases:
        for step in phase.steps:
            if step.status != COMPLETE:
                return phase.name, step.name
    return None


def last_run(plans: Mapping[str, PlanStatus], uid: str = "") -> PlanStatus | None:
    """Return the status of the plan that runs, or else of the one that ran last.

    `uid`: of the last run, if it is known. Times are in whole seconds.
    """
    ran = [each for each in plans.values() if each.status not in ("", NEVER_RUN)]
    running = [each for each in ran if each.status in RUNNING]
    if running:
        return running[0]
    for each in ran:
        if uid and each.uid == uid:
            return each
    return max(ran, key=lambda each: str(each.last_updated_timestamp or ""), default=None)
