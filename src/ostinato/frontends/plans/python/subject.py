"""The kind of an operator in Python, and the passes over its plans."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api import accessors as access
from ostinato.api.codec import to_dict
from ostinato.api.errors import APIError
from ostinato.api.object import KindInfo, Object
from ostinato.api.owners import OwnerError
from ostinato.api.time import Time
from ostinato.cache.client import CachedClient
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import Unstructured
from ostinato.frontends.plans.api import CompletedPlan, Execution, Phase, PhaseStatus, PlanStatus, Step, StepStatus
from ostinato.frontends.plans.decisions.deciding import Version
from ostinato.frontends.plans.engine.execute import DONE, Fatal, TaskResult, run_phase
from ostinato.frontends.plans.engine.states import COMPLETE, FATAL_ERROR, IN_PROGRESS, PENDING, TERMINAL
from ostinato.frontends.plans.kinds import definition
from ostinato.frontends.plans.python.steps import Action, Apply, Call, Check, Delete, PhaseOf, StepOf
from ostinato.frontends.plans.running import RUN_ONCE
from ostinato.frontends.plans.subjects import Subject
from ostinato.frontends.plans.tasks.cluster import Cluster, Waiting
from ostinato.frontends.plans.tasks.decoration import Names, decorate
from ostinato.frontends.plans.tasks.errors import TERMINAL_STATE, FatalError
from ostinato.frontends.plans.tasks.health import health_of
from ostinato.frontends.plans.tasks.resources import key_of

if TYPE_CHECKING:
    from ostinato.frontends.plans.python.operator import PlanOperator

Json = dict[str, Any]


class PythonKind(Subject):
    repairs_drift = True

    def __init__(self, cls: type[PlanOperator], info: KindInfo, version: Any, schema: Json) -> None:
        self._cls = cls
        self.view = Unstructured(info.gvk, info)
        self.kinds = (self.view,)
        made = definition(info, ())
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = schema
        self.definitions = (made,)
        self._version = Version(f"{info.singular}-{version.version}", "", version)

    def reference(self, instance: Json) -> tuple[str, str]:  # noqa: ARG002 - one version for all
        return self._version.name, ""

    async def version(self, name: str, namespace: str, client: CachedClient) -> Version | None:  # noqa: ARG002
        return self._version if name == self._version.name else None

    def parameters(self, instance: Json) -> dict[str, str]:
        """Return the fields of the spec as JSON."""
        spec = instance.get("spec") or {}
        return {name: msgspec.json.encode(value, order="sorted").decode() for name, value in spec.items()}

    def run(self, owner: Json, version: Version, cluster: Cluster) -> PythonRun:
        return PythonRun(self._cls, owner, version, cluster)


class PythonRun:
    """A plan of an operator in Python, for one object."""

    def __init__(self, cls: type[PlanOperator], owner: Json, version: Version, cluster: Cluster) -> None:
        self._cls = cls
        self._owner = owner
        self._version = version
        self._cluster = cluster

    async def step(self, execution: Execution, status: PlanStatus, now: Time) -> Fatal | None:
        """Run the plan from its beginning, up to the first phase that is not complete."""
        if status.status in TERMINAL:
            return None
        before = (status.status, status.message)
        status.status, status.message = IN_PROGRESS, ""
        try:
            fatal = await self._phases(execution, status)
        except Exception as error:  # noqa: BLE001 - of the plan's code: it stops the plan, not the controller
            fatal = Fatal(f"plan {execution.plan}: {type(error).__name__}: {error}", "PlanError")
            status.message = fatal.message
        if fatal is not None:
            status.status = FATAL_ERROR
        if (status.status, status.message) != before:
            status.last_updated_timestamp = now
        return fatal

    async def _phases(self, execution: Execution, status: PlanStatus) -> Fatal | None:
        plan = self._generator(execution.plan, execution.parameters or {}, execution.arguments)
        recorded = {each.name: each for each in status.phases}
        names: list[str] = []
        results: dict[str, Any] | None = None
        while True:
            try:
                phase = next(plan) if results is None else plan.send(results)
            except StopIteration:
                status.phases = [recorded[name] for name in names]
                status.status = COMPLETE
                return None
            if not isinstance(phase, PhaseOf):
                raise TypeError(f"yielded {phase!r}; yield phase(NAME, ...)")
            if phase.name in names:
                raise ValueError(f"phase {phase.name!r} is defined twice; names must differ")
            names.append(phase.name)
            current = recorded.setdefault(phase.name, PhaseStatus(name=phase.name, status=PENDING))
            status.phases = [recorded[name] for name in names]
            fatal = await self._phase(phase, current, execution)
            if fatal is not None:
                current.status = FATAL_ERROR
                return fatal
            if current.status != COMPLETE:
                return None
            prefix = f"{phase.name}."
            results = {
                name.removeprefix(prefix): value for name, value in execution.results.items() if name.startswith(prefix)
            }

    async def _phase(self, phase: PhaseOf, current: PhaseStatus, execution: Execution) -> Fatal | None:
        if current.status == COMPLETE:
            return None
        known = {each.name: each for each in current.steps}
        steps = phase.group.steps
        current.steps = [known.get(each.name) or StepStatus(name=each.name, status=PENDING) for each in steps]
        current.status, current.message = IN_PROGRESS, ""
        wanted = {each.name: each for each in steps}
        shape = Phase(
            name=phase.name,
            strategy=phase.group.strategy,
            steps=[Step(name=each.name, tasks=[each.name]) for each in steps],
        )

        async def run(_: Phase, step: Step, __: str) -> TaskResult:
            return await self._tried(wanted[step.name], phase.name, execution)

        return await run_phase(shape, current, run)

    async def _tried(self, step: StepOf, phase: str, execution: Execution) -> TaskResult:
        try:
            for action in step.actions:
                result = await self._act(action, phase, step.name, execution)
                if result.state != "done":
                    return result
        except FatalError as error:
            return TaskResult("fatal", f"{execution.plan}.{phase}.{step.name}: {error}", error.reason)
        except Waiting as waiting:
            return TaskResult("waiting", str(waiting))
        except (APIError, TransportError, OwnerError) as error:
            return TaskResult("error", str(error))
        except Exception as error:  # noqa: BLE001 - of the step's code: it is tried again
            return TaskResult("error", f"{type(error).__name__}: {error}")
        return DONE

    async def _act(self, action: Action, phase: str, step: str, execution: Execution) -> TaskResult:
        names = self._names(execution.plan, execution.uid, phase, step)
        if isinstance(action, Apply):
            for each in [await self._applied(instance, names) for instance in action.objects]:
                health = health_of(each)
                if action.wait and health.state == "Failed":
                    raise FatalError(health.message, TERMINAL_STATE)
                if action.wait and not health:
                    return TaskResult("waiting", f"{access.gvk(each).kind} {access.name(each)}: {health.message}")
        elif isinstance(action, Delete):
            for instance in action.objects:
                placed = await self._cluster.place(_document(instance), self._owner)
                if not await self._cluster.delete(placed):
                    return TaskResult("waiting", f"{access.gvk(placed).kind} {access.name(placed)} is being deleted")
        elif isinstance(action, Call):
            key = f"{phase}.{step}"
            if key not in execution.results:
                value = await self._called(action.function, action.arguments)
                execution.results = {**execution.results, key: msgspec.to_builtins(value)}
        elif isinstance(action, Check):
            answer = await self._called(action.function, action.arguments)
            if answer is not True and (not answer or isinstance(answer, str)):
                return TaskResult("waiting", str(answer) if isinstance(answer, str) and answer else action.name)
        return DONE

    async def _called(self, function: Any, arguments: tuple[Any, ...]) -> Any:
        if inspect.iscoroutinefunction(function):
            return await function(*arguments)
        return await self._cluster.client.world.executor.run(function, *arguments)

    async def _applied(self, instance: Any, names: Names) -> Json:
        return await self._cluster.apply(await self._placed(instance, names), self._owner)

    async def _placed(self, instance: Any, names: Names) -> Json:
        placed = await self._cluster.place(_document(instance), self._owner)
        decorate(placed, names)
        return placed

    async def objects(self, completed: list[CompletedPlan]) -> list[Json]:
        """Return the objects that completed plans have left; for drift repair."""
        found: dict[tuple[Any, ...], Json] = {}
        for each in completed:
            plan = self._generator(each.plan, each.parameters, each.arguments)
            results: dict[str, Any] | None = None
            while True:
                try:
                    phase = next(plan) if results is None else plan.send(results)
                except StopIteration:
                    break
                await self._collect(phase, each, found)
                prefix = f"{phase.name}."
                results = {
                    name.removeprefix(prefix): value for name, value in each.results.items() if name.startswith(prefix)
                }
        return list(found.values())

    async def _collect(self, phase: PhaseOf, plan: CompletedPlan, found: dict[tuple[Any, ...], Json]) -> None:
        for step in phase.group.steps:
            names = self._names(plan.plan, plan.uid, phase.name, step.name)
            for action in step.actions:
                for instance in action.objects if isinstance(action, Apply | Delete) else ():
                    placed = await self._placed(instance, names)
                    if isinstance(action, Delete):
                        found.pop(key_of(placed), None)
                    elif placed["kind"] not in RUN_ONCE:
                        found[key_of(placed)] = placed

    def _generator(self, plan: str, parameters: Mapping[str, str], arguments: Mapping[str, str]) -> Any:
        spec = {name: msgspec.json.decode(value) for name, value in parameters.items()}
        operator = self._cls()
        operator.name, operator.namespace = access.name(self._owner), access.namespace(self._owner)
        operator.arguments, operator.client = dict(arguments), self._cluster.client.live
        return getattr(operator, plan)(msgspec.convert(spec, self._cls.Params, strict=False))

    def _names(self, plan: str, uid: str, phase: str, step: str) -> Names:
        spec = self._version.spec
        return Names(
            instance=access.name(self._owner),
            namespace=access.namespace(self._owner),
            operator=spec.operator.name,
            operator_version=spec.version,
            app_version="",
            plan=plan,
            uid=uid,
            phase=phase,
            step=step,
        )


def _document(instance: Any) -> Json:
    return to_dict(instance) if isinstance(instance, Object) else dict(instance)
