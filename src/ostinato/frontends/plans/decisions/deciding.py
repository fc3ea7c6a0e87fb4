"""Decides what runs: a function of an object, its operator version, and what the status has recorded.

- The record is in `status.execution`: the run in progress, and the version and parameters that the last run was decided
  from. A change is what differs from that record, so that nothing is lost while the controller does not run.
- A change that triggers the plan that runs restarts it. One that triggers another plan waits for the end of the run.
- A change that is not allowed has no effect; `status.execution.refused` says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec

from ostinato.api.time import Time
from ostinato.frontends.plans.api import (
    CLEANUP,
    DEPLOY,
    CompletedPlan,
    Execution,
    HandledRequest,
    InstanceStatus,
    OperatorVersionSpec,
    PlanExecution,
    PlanStatus,
)
from ostinato.frontends.plans.decisions.requests import Request
from ostinato.frontends.plans.decisions.triggers import Change, Refused, first_plan, fixed_values, plan_of
from ostinato.frontends.plans.engine import states

_FINISHED: Final = (states.COMPLETE, states.FATAL_ERROR, states.CANCELLED)


class Version(NamedTuple):
    """An operator version. `namespace`: "" if it is not an object in the cluster."""

    name: str
    namespace: str
    spec: OperatorVersionSpec


class Note(NamedTuple):
    """An Event. Those about different plans are not counted as one."""

    reason: str
    message: str
    kind: str = "Normal"
    plan: str = ""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What a decision depends on, besides the status.

    - `before`: the version that the last run was decided from; None for a new object, or if it is gone.
    - `bad_request`: why the request cannot be read.
    """

    version: Version
    before: Version | None
    parameters: Mapping[str, str]
    generation: int
    is_deleting: bool
    execution: PlanExecution
    request: Request | None
    new_uid: Callable[[], str]
    now: Time


def decide(situation: Situation, status: InstanceStatus) -> list[Note]:
    """Record in `status` what is to run. Returns Events."""
    return _Decision(situation, status).made()


class _Decision:
    def __init__(self, situation: Situation, status: InstanceStatus) -> None:
        self._now = situation
        self._spec = situation.version.spec
        self._plans = self._spec.plans or {}
        status.plan_status = states.prepare(self._plans, status.plan_status)
        if status.execution is None:
            status.execution = Execution()
        self._status = status
        self._execution = status.execution
        self._notes: list[Note] = []

    def made(self) -> list[Note]:
        self._execution.observed_generation = self._now.generation
        self._handle_request()
        if self._now.is_deleting:
            self._delete()
        elif self._execution.parameters is None:
            self._begin()
        else:
            self._change()
        return self._notes

    # Deletion

    def _delete(self) -> None:
        """Cleanup overrides whatever runs, once."""
        if CLEANUP not in self._plans or self._execution.plan == CLEANUP:
            return
        if self._status.plan_status[CLEANUP].status == states.NEVER_RUN:
            if self._execution.plan:
                running = self._status.plan_status[self._execution.plan]
                states.cancel(running, "cancelled: the instance is being deleted", self._now.now)
            self._start(CLEANUP, "the instance is being deleted")

    # A new object

    def _begin(self) -> None:
        if not self._adopted():
            try:
                plan = first_plan(self._spec, self._now.parameters)
            except Refused as refused:
                self._refuse(str(refused))
                return
            self._accept()
            self._start(plan, "the instance is new")
        self._execution.execution = _token(self._now.execution)

    def _adopted(self) -> bool:
        """Take over an instance whose plans KUDO has run: what it did is not repeated."""
        last = states.last_run(self._status.plan_status)
        if last is None:
            return False
        self._accept()
        if last.status in states.RUNNING:
            self._execution.plan, self._execution.uid = last.name, last.uid
            self._execution.reason = "the plan was running"
        return True

    # A known object

    def _change(self) -> None:
        execution = self._now.execution
        requested = ""
        if _token(execution) != self._execution.execution:
            requested = execution.plan_name
        if not execution.plan_name:
            self._execution.execution = ""
        is_upgrade = self._now.version.name != self._execution.operator_version
        parameters = self._effective()
        try:
            plan = plan_of(
                Change(
                    old=(self._now.before or self._now.version).spec,
                    new=self._spec,
                    old_parameters=self._execution.parameters or {},
                    new_parameters=parameters,
                    is_upgrade=is_upgrade,
                    new_name=self._now.version.name,
                    requested=requested,
                )
            )
        except Refused as refused:
            self._refuse(str(refused))
            return
        self._execution.refused = ""
        if not plan:
            if not is_upgrade:
                self._execution.parameters = parameters  # values that no plan is about
            self._execution.pending = ""
            return
        running = self._execution.plan
        if running and (is_upgrade or plan != running):
            self._execution.pending = plan
            return
        self._execution.pending = ""
        self._accept()
        if is_upgrade:
            self._execution.completed = []
        reason = f"upgrade to {self._now.version.name}" if is_upgrade else "parameters have changed"
        if requested:
            self._execution.execution = _token(execution)
            reason = "requested"
        uid = execution.uid if requested else ""
        self._start(plan, reason, uid=uid, arguments=execution.arguments if requested else {})

    def _effective(self) -> dict[str, str]:
        """Return the parameters of the object, with the fixed values of immutable ones that it does not name."""
        recorded = self._execution.parameters or {}
        known = {each.name: each for each in self._spec.parameters}
        fixed = {
            name: value
            for name, value in recorded.items()
            if name in known and known[name].is_immutable and name not in self._now.parameters
        }
        return {**fixed, **self._now.parameters}

    def _accept(self) -> None:
        execution = self._execution
        if execution.parameters is None:
            execution.parameters = fixed_values(self._spec, self._now.parameters)
        else:
            execution.parameters = self._effective()
        execution.operator_version, execution.namespace = self._now.version.name, self._now.version.namespace
        execution.refused = ""

    def _start(self, plan: str, reason: str, *, uid: str = "", arguments: Mapping[str, str] | None = None) -> None:
        execution = self._execution
        execution.plan, execution.uid, execution.reason = plan, uid or self._now.new_uid(), reason
        execution.last_uid, execution.arguments = execution.uid, dict(arguments or {})
        execution.results = {}
        if self._plans[plan].phases is None:
            self._status.plan_status[plan].phases = []
        states.reset(self._status.plan_status[plan], execution.uid, self._now.now)
        self._notes.append(Note("PlanStarted", f"Execution of plan {plan} started: {reason}", plan=plan))

    def _refuse(self, message: str) -> None:
        if self._execution.refused != message:
            self._execution.refused = message
            self._notes.append(Note("ChangeRefused", message, "Warning"))

    # Requests

    def _handle_request(self) -> None:
        request = self._now.request
        if request is None or (self._execution.request is not None and self._execution.request.id == request.id):
            return
        problem = self._perform(request)
        self._execution.request = HandledRequest(
            id=request.id, verb=request.verb, accepted=not problem, message=problem
        )
        if problem:
            self._notes.append(Note("RequestRefused", f"{request.verb}: {problem}", "Warning"))

    def _perform(self, request: Request) -> str:
        """Perform a request, and return why it is refused, or ""."""
        if request.verb == "run":
            return self._run(request)
        running = self._execution.plan
        name = request.plan or running or self._last()
        if name not in self._status.plan_status:
            return f"no plan {name}" if name else "no plan has run yet"
        plan = self._status.plan_status[name]
        if request.verb == "cancel":
            return self._cancel(plan)
        if running and running != name:
            return f"plan {running} runs"
        if not running and plan.status not in (states.FATAL_ERROR, states.CANCELLED):
            return f"plan {name} is {plan.status}; nothing to {request.verb}"
        if request.verb == "skip":
            problem = self._skip(plan, request)
            if problem:
                return problem
        self._resume(plan)
        return ""

    def _run(self, request: Request) -> str:
        if request.plan not in self._plans:
            return f"plan {request.plan} does not exist; plans are {', '.join(sorted(self._plans))}"
        if request.plan == CLEANUP or self._now.is_deleting:
            return f"plan {CLEANUP} runs when the instance is deleted, and no other then"
        if self._execution.plan not in ("", request.plan):
            return f"plan {self._execution.plan} runs; wait for its end, or cancel it"
        if self._execution.parameters is None:
            return f"plan {DEPLOY} has not run yet"
        self._start(request.plan, "requested", arguments=request.arguments)
        return ""

    def _cancel(self, plan: PlanStatus) -> str:
        if self._execution.plan != plan.name:
            return f"plan {plan.name} does not run"
        if plan.name == CLEANUP:
            return f"plan {CLEANUP} cannot be cancelled; skip its step, or remove the finalizer"
        states.cancel(plan, "cancelled on request", self._now.now)
        finish(self._status)
        self._notes.append(Note("PlanCancelled", f"plan {plan.name} was cancelled on request"))
        return ""

    def _skip(self, plan: PlanStatus, request: Request) -> str:
        phase, step = request.phase, request.step
        if not step:
            found = states.unfinished(plan)
            if found is None:
                return f"plan {plan.name} has no step left"
            phase, step = found
        problem = states.skip(plan, phase, step)
        if not problem:
            self._notes.append(
                Note("StepSkipped", f"step {step} of plan {plan.name} was skipped on request", "Warning")
            )
        return problem

    def _resume(self, plan: PlanStatus) -> None:
        states.resume(plan, self._now.now)
        self._execution.plan, self._execution.uid, self._execution.last_uid = plan.name, plan.uid, plan.uid
        self._notes.append(Note("PlanResumed", f"plan {plan.name} goes on"))

    def _last(self) -> str:
        last = states.last_run(self._status.plan_status, self._execution.last_uid)
        return "" if last is None else last.name


def finish(status: InstanceStatus) -> Note | None:
    """Record the end of the run, if it has ended."""
    execution = status.execution
    if execution is None or not execution.plan:
        return None
    plan = status.plan_status[execution.plan]
    if plan.status not in _FINISHED:
        return None
    if plan.status == states.COMPLETE:
        done = CompletedPlan(
            plan=plan.name,
            uid=execution.uid,
            parameters=dict(execution.parameters or {}),
            arguments=dict(execution.arguments),
            results=dict(execution.results),
        )
        execution.completed = [*(each for each in execution.completed if each.plan != plan.name), done]
    execution.plan, execution.uid, execution.reason, execution.arguments = "", "", "", {}
    execution.results = {}
    text = f"Execution of plan {plan.name} finished with status {plan.status}"
    return Note("PlanFinished", text, plan=plan.name)


def _token(execution: PlanExecution) -> str:
    return execution.plan_name and f"{execution.plan_name}/{execution.uid}"
