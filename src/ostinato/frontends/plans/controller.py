"""Controller of plans: reconciles the objects that plans run on.

    Manager().add(PlanController()).run()

A reconcile decides what is to run (`deciding`), makes one pass over the plan that runs (`running`), and writes the
status. The state of a run is in the status alone, so that another process goes on where this one ended. A plan goes on
when an object that it has applied changes: every kind that a plan applies is watched from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from ostinato.api import accessors as access
from ostinato.api.codec import from_dict, to_dict
from ostinato.api.errors import NotFound
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.meta import Condition
from ostinato.api.time import Time
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.controllers.context import Context
from ostinato.controllers.controller import Controller
from ostinato.controllers.front_end import FrontEnd
from ostinato.controllers.objects.applying import Applier
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.result import Result
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.kind import KindOptions, KindSource
from ostinato.frontends.kernel.recording import recorded
from ostinato.frontends.kernel.sync import Decider, kind_key, parse_kind_key
from ostinato.frontends.plans.api import CLEANUP, DEPLOY, REPAIR, UPDATE, UPGRADE, InstanceStatus, OperatorVersion
from ostinato.frontends.plans.decisions.decider import decider, decision_request, notes_of
from ostinato.frontends.plans.decisions.deciding import Note, Situation, Version, finish
from ostinato.frontends.plans.decisions.requests import RequestError, request_of
from ostinato.frontends.plans.dependencies import cycle_problem
from ostinato.frontends.plans.engine.states import COMPLETE, FATAL_ERROR
from ostinato.frontends.plans.readiness import readiness
from ostinato.frontends.plans.sources import ForInstance, ForVersion
from ostinato.frontends.plans.subjects import Instances, Subject
from ostinato.frontends.plans.tasks.cluster import Cluster

Json = dict[str, Any]

_CHANGES_READINESS: Final = (DEPLOY, UPDATE, UPGRADE)
_REASONS: Final = {
    "ResourcesReady": "True",
    "ResourceNotReady": "False",
    "PlanInFatalError": "Unknown",
    "PlanInProgress": "Unknown",
}
_MAX_DELAY: Final = 60  # seconds between passes of a plan that waits


class PlanController(FrontEnd):
    def __init__(
        self,
        subject: Subject | None = None,
        *,
        name: str = "plans",
        repair_drift: bool | None = None,
        options: ControllerOptions | None = None,
    ) -> None:
        """
        - `subject`: the kind that plans run on. Defaults to KUDO's Instances.
        - `name`: name in logs and metrics, and field manager. Defaults to "plans".
        - `repair_drift`: apply the objects of completed plans again when they change; the annotation
          `plans.ostinato.dev/repair-drift` of an object overrides it. Defaults to the choice of the subject.
        """
        self.subject = subject or Instances()
        self.name = name
        self.reconciles = self.subject.kinds
        self.access = self.subject.access
        self.definitions = self.subject.definitions
        self._repairs = self.subject.repairs_drift if repair_drift is None else repair_drift
        self._applier: Applier | None = None
        self.decider = recorded(decider)
        view = self.subject.view
        sources = [KindSource(view, ForInstance(view, is_watched=True))]
        if isinstance(self.subject, Instances):
            sources.append(KindSource(OperatorVersion, ForVersion()))
        self._controller = Controller(name, self._reconcile, view=view, sources=sources, options=options)
        self._watched = {view.gvk}
        self.sources = self._controller.sources
        self.needs_leader_election = self._controller.needs_leader_election

    @property
    def has_synced(self) -> bool:
        return self._controller.has_synced

    def deciders(self) -> Mapping[str, Decider]:
        return {self.name: self.decider}

    async def run(self, dependencies: Dependencies) -> None:
        self._applier = Applier(dependencies.client, self.name)
        await self._controller.run(dependencies)

    async def watch_kind(self, gvk: GroupVersionKind) -> None:
        """Watch a kind that plans apply, from now on."""
        if gvk not in self._watched:
            self._watched.add(gvk)
            handler = ForInstance(self.subject.view)
            self._controller.watch(KindSource(Unstructured(gvk), handler, KindOptions(optional=True)))

    # Reconcile

    async def _reconcile(self, instance: Json, ctx: Context) -> Result | None:
        assert self._applier is not None, "run() is called before"
        status = from_dict(InstanceStatus, instance.get("status") or {})
        run = _Run(instance, status, ctx, self)
        return await run.reconcile(Cluster(ctx.client, self._applier, self.watch_kind))

    def repairs(self, instance: Json) -> bool:
        wanted = access.annotations(instance).get(REPAIR)
        return self._repairs if wanted is None else wanted == "true"


class _Run:
    """One reconcile."""

    def __init__(self, instance: Json, status: InstanceStatus, ctx: Context, controller: PlanController) -> None:
        self._instance = instance
        self._status = status
        self._ctx = ctx
        self._controller = controller
        self._subject = controller.subject

    async def reconcile(self, cluster: Cluster) -> Result | None:
        for kind in () if self._status.execution is None else self._status.execution.kinds:
            await self._controller.watch_kind(parse_kind_key(kind))
        version = await self._wanted_version()
        if version is None:
            return await self._without_version()
        await self._decide(version)
        execution = self._status.execution
        assert execution is not None, "decide() has set it"
        if not execution.plan:
            return await self._idle(version, cluster)
        await self._write()  # what runs is recorded before it has effects
        running = await self._subject.version(execution.operator_version, execution.namespace, self._ctx.client)
        return await self._pass(running or version, cluster)

    async def _wanted_version(self) -> Version | None:
        return await self._subject.version(*self._subject.reference(self._instance), self._ctx.client)

    async def _without_version(self) -> Result | None:
        name, namespace = self._subject.reference(self._instance)
        text = f"operator version {namespace}/{name} does not exist"
        self._event(Note("InvalidOperatorVersion", text, "Warning"))
        if access.is_being_deleted(self._instance):
            await self._set_finalizer(wanted=False)
            return None
        return Result(requeue_after=_MAX_DELAY)  # its creation is an event too

    async def _decide(self, version: Version) -> None:
        is_deleting = access.is_being_deleted(self._instance)
        if not is_deleting and CLEANUP in (version.spec.plans or {}):
            await self._set_finalizer(wanted=True)
        execution = self._status.execution
        before = None
        if execution is not None and execution.operator_version:
            before = await self._subject.version(execution.operator_version, execution.namespace, self._ctx.client)
        request = None
        try:
            request = request_of(access.annotations(self._instance))
        except RequestError as error:
            self._event(Note("RequestRefused", str(error), "Warning"))
        situation = Situation(
            version=version,
            before=before,
            parameters=self._subject.parameters(self._instance),
            generation=access.generation(self._instance),
            is_deleting=is_deleting,
            execution=self._subject.execution(self._instance),
            request=request,
            new_uid=self._ctx.world.ids.uid,
            now=self._ctx.now(),
        )
        request_made = decision_request(self._ctx.name, self._instance, self._status, situation)
        result = await self._controller.decider(request_made)
        self._status = from_dict(InstanceStatus, result.status or {})
        for note in notes_of(result):
            self._event(note)

    async def _pass(self, version: Version, cluster: Cluster) -> Result | None:
        """Go on with the plan that runs."""
        execution = self._status.execution
        assert execution is not None
        plan = self._status.plan_status[execution.plan]
        problem = await cycle_problem(version, self._subject, self._instance, self._ctx.client)
        if problem:
            plan.status, plan.message, plan.last_updated_timestamp = FATAL_ERROR, problem, self._ctx.now()
            self._event(Note("CircularDependency", problem, "Warning"))
        else:
            fatal = await self._subject.run(self._instance, version, cluster).step(execution, plan, self._ctx.now())
            if fatal is not None:
                self._event(Note(fatal.reason, fatal.message, "Warning", plan.name))
        execution.kinds = sorted({*execution.kinds, *map(kind_key, cluster.applied)})
        changes, state = plan.name in _CHANGES_READINESS, plan.status
        finished = finish(self._status)
        conditions = []
        if state == FATAL_ERROR:
            conditions = [_ready("PlanInFatalError", "")]
        elif finished is not None:
            conditions = [_ready("ResourcesReady", "")]
        elif changes:
            conditions = [_ready("PlanInProgress", "")]
        await self._write(conditions)
        if finished is None:
            return Result(requeue_after=self._delay(plan.last_updated_timestamp))
        self._event(finished)
        if plan.name == CLEANUP and state == COMPLETE:
            await self._set_finalizer(wanted=False)
            return None
        await self._clear_request()
        return Result(requeue_after=0)  # what has changed during the run

    def _delay(self, since: Time | None) -> float:
        """Return seconds until the next pass, if no event comes first: more for a plan that has waited long."""
        waited = timedelta() if since is None else self._ctx.now() - since
        return float(min(_MAX_DELAY, 1 + waited // timedelta(minutes=1)))

    async def _idle(self, version: Version, cluster: Cluster) -> Result | None:
        """No plan runs: keep the objects and the readiness up to date."""
        if access.is_being_deleted(self._instance):
            await self._write()
            has_cleanup = CLEANUP in (version.spec.plans or {})
            if not has_cleanup or self._status.plan_status[CLEANUP].status == COMPLETE:
                await self._set_finalizer(wanted=False)
            return None
        await self._clear_request()
        execution = self._status.execution
        assert execution is not None
        last = next((each for each in self._status.plan_status.values() if each.uid == execution.last_uid), None)
        if execution.completed and self._controller.repairs(self._instance):
            await self._repair(cluster)
        conditions = []
        if execution.parameters is not None and not (last is not None and last.status == FATAL_ERROR):
            ready, message = await readiness(self._instance, execution.kinds, self._ctx.client)
            conditions = [_ready("ResourcesReady" if ready else "ResourceNotReady", message)]
        await self._write(conditions)
        return None

    async def _repair(self, cluster: Cluster) -> None:
        """Apply the objects of the completed plans again; those that have not changed cause no request."""
        execution = self._status.execution
        assert execution is not None
        version = await self._subject.version(execution.operator_version, execution.namespace, self._ctx.client)
        if version is None:
            return
        for each in await self._subject.run(self._instance, version, cluster).objects(execution.completed):
            await cluster.apply(each, self._instance)

    # Writes

    async def _write(self, conditions: Iterable[Condition] = ()) -> None:
        fields = to_dict(self._status)
        answer = await self._ctx.status(
            self._instance,
            plan_status=fields.get("planStatus", {}),
            execution=fields.get("execution", {}),
            conditions=conditions,
        )
        access.writable_metadata(self._instance)["resourceVersion"] = access.resource_version(answer)

    async def _set_finalizer(self, *, wanted: bool) -> None:
        present = list(access.finalizers(self._instance))
        if (self._subject.finalizer in present) == wanted:
            return
        kept = [each for each in present if each != self._subject.finalizer]
        await self._patch({"metadata": {"finalizers": [*kept, self._subject.finalizer] if wanted else kept or None}})

    async def _clear_request(self) -> None:
        """Empty `spec.planExecution`, which has been handled."""
        execution = self._status.execution
        requested = self._subject.execution(self._instance)
        if requested.plan_name and execution is not None and execution.execution and not execution.plan:
            await self._patch({"spec": {"planExecution": None}})

    async def _patch(self, change: Json) -> None:
        version = access.resource_version(self._instance)
        change.setdefault("metadata", {})["resourceVersion"] = version
        view, key = self._subject.view, access.key(self._instance)
        try:
            answer = await self._ctx.client.patch(view, key, MergePatch(change), field_manager=self._ctx.name)
        except NotFound:
            return
        status = self._instance.get("status")
        self._instance.clear()
        self._instance.update(answer)
        if status is not None:
            self._instance["status"] = status

    def _event(self, note: Note) -> None:
        self._ctx.event(
            self._instance, note.reason, note.message[:1000], kind=note.kind, action=note.plan or note.reason
        )


def _ready(reason: str, message: str) -> Condition:
    return Condition(type="Ready", status=_REASONS[reason], reason=reason, message=message)
