"""One pass over a plan: tries the steps that are not complete, and records their states.

- Phases of a `serial` plan, and steps of a `serial` phase, start when those before are complete. With any other
  strategy all are tried in each pass.
- All tasks of a step are tried in each pass until all are done in the same one; a task is safe to repeat.
- An error is recorded, and tried again in the next pass. A fatal error stops the plan.
- The pass reads and writes nothing but the status that it is given: it can be interrupted anywhere and repeated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, NamedTuple

from ostinato.api.time import Time
from ostinato.frontends.plans.api import Phase, PhaseStatus, Plan, PlanStatus, Step, StepStatus
from ostinato.frontends.plans.engine.states import COMPLETE, ERROR, FATAL_ERROR, IN_PROGRESS, TERMINAL

SERIAL = "serial"


class TaskResult(NamedTuple):
    """What one try of a task came to.

    - `message`: why it waits, or what failed.
    - `reason`: reason of the Event about a fatal error.
    """

    state: Literal["done", "waiting", "error", "fatal"]
    message: str = ""
    reason: str = ""


DONE = TaskResult("done")

RunTask = Callable[[Phase, Step, str], Awaitable[TaskResult]]
"""Tries the task of a step."""


class Fatal(NamedTuple):
    """The error that stopped a plan."""

    message: str
    reason: str


async def execute(plan: Plan, status: PlanStatus, run: RunTask, now: Time) -> Fatal | None:
    """Try the unfinished steps of a plan, and record their states in `status`."""
    if status.status in TERMINAL:
        return None
    before = (status.status, status.message)
    status.status, status.message = IN_PROGRESS, ""
    fatal = await _phases(plan, status, run)
    if (status.status, status.message) != before:
        status.last_updated_timestamp = now
    return fatal


async def _phases(plan: Plan, status: PlanStatus, run: RunTask) -> Fatal | None:
    recorded = {each.name: each for each in status.phases}
    left = 0
    for phase in plan.phases or ():
        current = recorded[phase.name]
        if current.status == COMPLETE:
            continue
        current.status, current.message = IN_PROGRESS, ""
        fatal = await run_phase(phase, current, run)
        if fatal is not None:
            current.status = status.status = FATAL_ERROR
            return fatal
        if current.status == COMPLETE:
            continue
        left += 1
        if plan.strategy == SERIAL:
            break
    if not left:
        status.status = COMPLETE
    return None


async def run_phase(phase: Phase, current: PhaseStatus, run: RunTask) -> Fatal | None:
    """Try the unfinished steps of a phase, and record their states in `current`."""
    recorded = {each.name: each for each in current.steps}
    for step in phase.steps:
        state = recorded[step.name]
        if state.status == COMPLETE:
            continue
        fatal = await _tasks(phase, step, state, run)
        if fatal is not None:
            return fatal
        if state.status != COMPLETE and phase.strategy == SERIAL:
            break
    if all(step.status == COMPLETE for step in current.steps):
        current.status = COMPLETE
    return None


async def _tasks(phase: Phase, step: Step, state: StepStatus, run: RunTask) -> Fatal | None:
    state.status, state.message = IN_PROGRESS, ""
    is_done = True
    for name in step.tasks:
        result = await run(phase, step, name)
        if result.state == "fatal":
            state.status, state.message = FATAL_ERROR, result.message
            return Fatal(result.message, result.reason)
        if result.state == "error":
            state.status, state.message = ERROR, result.message
        elif result.state == "waiting" and state.status == IN_PROGRESS and not state.message:
            state.message = result.message
        is_done = is_done and result.state == "done"
    if is_done:
        state.status, state.message = COMPLETE, ""
    return None
