"""Runs a plan of an operator version: one pass over its steps, with the tasks of the version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ostinato.api import accessors as access
from ostinato.api.time import Time
from ostinato.frontends.plans.api import CompletedPlan, Execution, Phase, PlanStatus, Step, Task
from ostinato.frontends.plans.decisions.deciding import Version
from ostinato.frontends.plans.engine.execute import Fatal, TaskResult, execute
from ostinato.frontends.plans.engine.states import FATAL_ERROR
from ostinato.frontends.plans.parameters import ParameterError, values_for_templates
from ostinato.frontends.plans.tasks.child import child_of
from ostinato.frontends.plans.tasks.cluster import Cluster
from ostinato.frontends.plans.tasks.context import TaskContext
from ostinato.frontends.plans.tasks.decoration import Names
from ostinato.frontends.plans.tasks.errors import UNKNOWN_TASK, FatalError
from ostinato.frontends.plans.tasks.pipe import pipes_of
from ostinato.frontends.plans.tasks.resources import desired, is_enabled, key_of, stable
from ostinato.frontends.plans.tasks.run import fatal, run_task

Json = dict[str, Any]

RUN_ONCE = ("Job", "Pod")  # kinds that drift repair does not create again


class PlanRun:
    """A plan of a version, for one object."""

    def __init__(self, owner: Json, version: Version, cluster: Cluster) -> None:
        self._owner = owner
        self._version = version
        self._cluster = cluster
        self._tasks = {each.name: each for each in version.spec.tasks}

    async def step(self, execution: Execution, status: PlanStatus, now: Time) -> Fatal | None:
        """Try what is left of the plan that runs, and record it in `status`."""
        try:
            context = self._context(
                execution.plan, execution.uid, execution.parameters or {}, execution.arguments, pipes=True
            )
        except (ParameterError, FatalError) as error:
            status.status, status.message, status.last_updated_timestamp = FATAL_ERROR, str(error), now
            return Fatal(str(error), "InvalidPlan" if isinstance(error, FatalError) else "InvalidParams")

        async def run(phase: Phase, step: Step, name: str) -> TaskResult:
            at = self._at(context, phase, step, name)
            task = self._tasks.get(name)
            if task is None:
                return fatal(f"missing task {at.names.path}", UNKNOWN_TASK, at)
            return await run_task(task, at)

        return await execute((self._version.spec.plans or {})[execution.plan], status, run, now)

    async def objects(self, completed: list[CompletedPlan]) -> list[Json]:
        """Return the objects that completed plans have left, as they should be; for drift repair."""
        found: dict[tuple[Any, ...], Json] = {}
        for each in completed:
            plan = (self._version.spec.plans or {}).get(each.plan)
            if plan is None:
                continue
            context = self._context(each.plan, each.uid, each.parameters, each.arguments, pipes=True)
            for phase in plan.phases or ():
                for step in phase.steps:
                    for name in step.tasks:
                        if task := self._tasks.get(name):
                            await self._collect(task, self._at(context, phase, step, name), found)
        return list(found.values())

    async def _collect(self, task: Task, context: TaskContext, found: dict[tuple[Any, ...], Json]) -> None:
        """Add the objects that a task applies, remove those that it deletes."""
        kind, resources = task.kind, task.spec.resources or []
        if kind == "Toggle":
            kind = "Apply" if is_enabled(task.spec.parameter, context) else "Delete"
        if kind == "Apply":
            wanted = await desired(context.objects(resources), context)
            for each in await stable(wanted, resources, context):
                if each["kind"] not in RUN_ONCE:
                    found[key_of(each)] = each
        elif kind == "Delete":
            instances = context.objects(resources)
            for each in await self._cluster.known(instances, self._owner):
                found.pop(key_of(each), None)
        elif kind == "KudoOperator":
            child = child_of(task.spec, context)
            found[key_of(child)] = child

    def _context(
        self, plan: str, uid: str, parameters: Mapping[str, str], arguments: Mapping[str, str], *, pipes: bool
    ) -> TaskContext:
        spec = self._version.spec
        names = Names(
            instance=access.name(self._owner),
            namespace=access.namespace(self._owner),
            operator=spec.operator.name,
            operator_version=spec.version,
            app_version=spec.app_version,
            plan=plan,
            uid=uid,
        )
        if plan not in (spec.plans or {}):
            raise FatalError(f"could not find required plan: '{plan}'", "InvalidPlan")
        return TaskContext(
            cluster=self._cluster,
            owner=self._owner,
            names=names,
            templates=spec.templates,
            params=values_for_templates(spec.parameters, parameters),
            args=arguments,
            pipes=pipes_of((spec.plans or {})[plan], spec, names) if pipes else {},
        )

    @staticmethod
    def _at(context: TaskContext, phase: Phase, step: Step, task: str) -> TaskContext:
        names = msgspec.structs.replace(context.names, phase=phase.name, step=step.name, task=task)
        return msgspec.structs.replace(context, names=names)
