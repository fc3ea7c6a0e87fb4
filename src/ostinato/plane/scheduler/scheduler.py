"""Scheduler: the scheduling loop, a runnable of a manager.

Informer events update a snapshot and the queue (`event_handlers`). Each Pod is scheduled against the snapshot
(`framework`) in one synchronous step. A feasible Pod is assumed on its node and bound while the next Pod is scheduled.
An unschedulable Pod may preempt others (`preempt`) and waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from ostinato.api.errors import APIError
from ostinato.cache.informer import Registration
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers.runnable import Dependencies, Recorder
from ostinato.kinds.core_v1 import Node, PersistentVolume, PersistentVolumeClaim, Service
from ostinato.kinds.storage_v1 import StorageClass
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.scheduler.api_writes import ERROR, UNSCHEDULABLE, ApiWriter
from ostinato.plane.scheduler.attempts import Attempts
from ostinato.plane.scheduler.cache.listers import KINDS, Listers
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.event_handlers import EventHandlers
from ostinato.plane.scheduler.framework.events import CLAIM, CLASS, POD, VOLUME, Action, ClusterEvent
from ostinato.plane.scheduler.framework.interface import Plugin
from ostinato.plane.scheduler.framework.runtime import FitError, Framework, Profile, ScheduleResult
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.plane.scheduler.preempt import NAME as PREEMPTION
from ostinato.plane.scheduler.preempt import Preemption, Victims
from ostinato.plane.scheduler.queue import QueuedPod, SchedulingQueue

_YIELD_EVERY: Final = 8  # Pods, then yield to the event loop
_MAX_WRITES: Final = 100  # in flight
_SYNC_TIMEOUT: Final = 120.0
_NO_NODES: Final = "no nodes available to schedule pods"


class Scheduler:
    name = "scheduler"
    needs_leader_election = True

    def __init__(self, profiles: Sequence[Profile], recorders: Mapping[str, Recorder]) -> None:
        """`recorders`: event recorders by profile name."""
        self._profiles = {profile.name: profile for profile in profiles}
        self._recorders = recorders
        self._tasks: set[asyncio.Task[None]] = set()  # writes in flight
        self._completed = asyncio.Event()  # one of them has ended

    async def run(self, dependencies: Dependencies) -> None:
        run = _Run(self._profiles, dependencies)
        registrations = self._add_handlers(run, dependencies)
        try:
            for kind in KINDS:
                await dependencies.informers.of(kind).synced(_SYNC_TIMEOUT)
            for registration in registrations:
                await registration.synced(_SYNC_TIMEOUT)
            await self._loop(run)
        finally:
            for registration in registrations:
                registration.remove()
            run.queue.close()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _add_handlers(self, run: _Run, dependencies: Dependencies) -> list[Registration]:
        handlers = EventHandlers(self._profiles.keys(), run.snapshot, run.queue, run.nominator, run.listers)
        informers = dependencies.informers
        handled: list[tuple[Any, Callable[[Any], None]]] = [
            (Node, handlers.node),
            (PodState, handlers.pod),
            (Service, handlers.service),
            (PersistentVolumeClaim, handlers.other(CLAIM)),
            (PersistentVolume, handlers.other(VOLUME)),
            (StorageClass, handlers.other(CLASS)),
        ]
        registrations = []
        for kind in KINDS:
            informers.of(kind)
        for kind, handler in handled:
            registrations.append(informers.of(kind).add_handler(handler, name=self.name))
        informers.start()
        return registrations

    async def _loop(self, run: _Run) -> None:
        attempts = 0
        while True:
            queued = run.queue.try_pop() or await run.queue.pop()
            self._schedule_one(run, queued)
            attempts += 1
            if len(self._tasks) >= _MAX_WRITES:
                self._completed.clear()
                await self._completed.wait()
            elif attempts % _YIELD_EVERY == 0:
                await run.clock.sleep(0)

    def _schedule_one(self, run: _Run, queued: QueuedPod) -> None:
        pod = queued.pod
        if pod.is_being_deleted:
            note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            self._record(pod, "FailedScheduling", note, "Scheduling", kind="Warning")
            run.queue.delete(pod.uid)
            return
        framework = run.frameworks[pod.scheduler_name]
        began = run.clock.monotonic()
        try:
            found = framework.schedule(pod)
            if isinstance(found, ScheduleResult):
                if run.attempts is not None:
                    run.attempts.made(queued, found, began)
                self._assume(run, found)
                self._start(self._bind(run, queued, found))
            elif found is None:
                if run.attempts is not None:
                    run.attempts.made(queued, None, began, _NO_NODES)
                self._reject(run, queued, _NO_NODES, frozenset({"NodeName"}), "")
            else:
                message = self._handle_fit_error(run, queued, found)
                if run.attempts is not None:
                    run.attempts.made(queued, found, began, message)
        except Exception as error:  # plugins are untrusted: other Pods must not be affected
            run.dependencies.logger.exception("scheduling failed pod=%s", pod.key)
            self._fail(run, queued, error)

    # Binding cycle

    def _assume(self, run: _Run, found: ScheduleResult) -> None:
        pod = found.cycle.pod
        run.snapshot.put_pod(pod.on(found.node.name), assumed=True)
        run.nominator.remove(pod.uid)
        for plugin in run.reserving[pod.scheduler_name]:
            plugin.reserve(found.cycle, found.node)

    async def _bind(self, run: _Run, queued: QueuedPod, found: ScheduleResult) -> None:
        pod, node = found.cycle.pod, found.node
        try:
            for plugin in run.pre_binding[pod.scheduler_name]:
                await plugin.pre_bind(found.cycle, node, run.dependencies)
            await run.api.bind(pod, node.name)
        except Exception as error:  # noqa: BLE001 - forget the Pod and retry it after any error
            self._forget(run, found)
            if run.needs_scheduling(pod):
                if not isinstance(error, APIError | TransportError):
                    run.dependencies.logger.warning("binding failed pod=%s error=%r", pod.key, error)
                self._fail(run, queued, error)
            return
        self._record(pod, "Scheduled", f"Successfully assigned {pod.namespace}/{pod.name} to {node.name}", "Binding")

    def _forget(self, run: _Run, found: ScheduleResult) -> None:
        pod = found.cycle.pod
        for plugin in run.reserving[pod.scheduler_name]:
            plugin.unreserve(found.cycle, found.node)
        if run.snapshot.is_assumed(pod.uid):
            freed = run.snapshot.remove_pod(pod.uid)
            run.queue.move_all(ClusterEvent(POD, Action.DELETE, old=freed))

    # Unschedulable Pods

    def _handle_fit_error(self, run: _Run, queued: QueuedPod, fit_error: FitError) -> str:
        """Preempt others if that helps, and requeue the Pod; return why it is unschedulable."""
        outcome = run.preemption.find(fit_error)
        nominated: str | None = None if outcome.keeps_nomination else ""
        if outcome.victims is not None:
            nominated = outcome.victims.node.name
            self._preempt(run, queued.pod, outcome.victims)
        message = fit_error.diagnosis.message(outcome.message)
        self._reject(run, queued, message, fit_error.diagnosis.plugins, nominated)
        return message

    def _reject(
        self, run: _Run, queued: QueuedPod, message: str, plugins: frozenset[str], nominated: str | None
    ) -> None:
        pod = queued.pod
        run.queue.add_unschedulable(queued, plugins)
        if nominated is not None:
            run.nominator.add(pod, nominated)
        self._report_failure(run, pod, UNSCHEDULABLE, message, nominated)

    def _fail(self, run: _Run, queued: QueuedPod, error: Exception) -> None:
        run.queue.add_after_error(queued)
        self._report_failure(run, queued.pod, ERROR, str(error), "")

    def _report_failure(self, run: _Run, pod: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        self._record(pod, "FailedScheduling", message, "Scheduling", kind="Warning")

        async def write() -> None:
            with suppress(APIError, TransportError):  # repeated with the next attempt
                await run.api.patch_status(pod, reason, message, nominated)

        self._start(write())

    # Preemption

    def _preempt(self, run: _Run, pod: PodInfo, victims: Victims) -> None:
        """Evict the victims. The Pod is gated until the deletion of the last one has started."""
        pods = [victim for victim in victims.pods if not victim.is_being_deleted]
        if pods:
            run.preempting[pod.uid] = None
            self._start(self._evict_victims(run, pod, victims.node.name, pods))

    async def _evict_victims(self, run: _Run, pod: PodInfo, node: str, victims: list[PodInfo]) -> None:
        try:
            for other in run.nominator.pods_on(node):
                if other.priority < pod.priority:
                    await run.api.clear_nomination(other)
            for victim in victims:
                if victim is victims[-1]:
                    run.preempting[pod.uid] = victim
                if await run.api.evict(victim, pod):
                    note = f"Preempted by pod {pod.uid} on node {node}"
                    self._record(victim, "Preempted", note, "Preempting", recorder=pod.scheduler_name, related=pod)
        except (APIError, TransportError) as error:
            run.dependencies.logger.warning("preemption failed pod=%s node=%s error=%s", pod.key, node, error)
            del run.preempting[pod.uid]
            run.queue.activate(pod.uid)
        finally:
            run.preempting.pop(pod.uid, None)
            if all(run.snapshot.pod(victim.uid) is None for victim in victims):  # no further events will occur
                run.queue.activate(pod.uid)

    # Internals

    def _record(
        self,
        pod: PodInfo,
        reason: str,
        note: str,
        action: str,
        *,
        kind: str = "Normal",
        recorder: str = "",
        related: PodInfo | None = None,
    ) -> None:
        self._recorders[recorder or pod.scheduler_name].event(
            _reference(pod),
            reason,
            note,
            kind=kind,
            action=action,
            related=None if related is None else _reference(related),
        )

    def _start(self, run: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(run)
        self._tasks.add(task)
        task.add_done_callback(self._complete)

    def _complete(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._completed.set()


class _Run:
    """State of one run of the scheduler."""

    def __init__(self, profiles: Mapping[str, Profile], dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.clock = dependencies.world.clock
        self.snapshot = Snapshot()
        self.nominator = Nominator()
        self.listers = Listers(dependencies.informers)
        self.api = ApiWriter(dependencies.client, self.listers, self.clock)
        observer = dependencies.observer
        self.attempts = None if observer is None else Attempts(dependencies.world, observer)
        rng = dependencies.world.rng.fork("scheduler")
        self.frameworks = {
            name: Framework(
                profile, self.snapshot, self.listers, self.nominator, rng.fork(name), explains=observer is not None
            )
            for name, profile in profiles.items()
        }
        hints = {
            name: {plugin.name: plugin.hints() for plugin in framework.plugins}
            for name, framework in self.frameworks.items()
        }
        self.queue = SchedulingQueue(self.clock, hints, self._gate)
        self.preemption = Preemption(self.snapshot, self.listers, self.nominator, rng.fork("preemption"))
        # Preempting Pods by uid -> last victim, once its eviction has started.
        self.preempting: dict[str, PodInfo | None] = {}
        self.gating = {name: _implementing(each, "gate") for name, each in self.frameworks.items()}
        self.reserving = {name: _implementing(each, "reserve") for name, each in self.frameworks.items()}
        self.pre_binding = {name: _implementing(each, "pre_bind") for name, each in self.frameworks.items()}

    def _gate(self, pod: PodInfo) -> str:
        """Return the plugin that gates the Pod; "" if none does."""
        if self._is_preempting(pod):
            return PREEMPTION
        return next((plugin.name for plugin in self.gating[pod.scheduler_name] if plugin.gate(pod)), "")

    def _is_preempting(self, pod: PodInfo) -> bool:
        if pod.uid not in self.preempting:
            return False
        last = self.preempting[pod.uid]
        known = None if last is None else self.snapshot.pod(last.uid)
        return last is None or (known is not None and not known.is_being_deleted)

    def needs_scheduling(self, pod: PodInfo) -> bool:
        """Return whether the Pod still exists and is not assigned."""
        known = self.listers.pod(PodState, pod)
        return known is not None and not known.spec.node_name


def _implementing(framework: Framework, method: str) -> list[Plugin]:
    """Return the plugins that implement an extension point."""
    return [plugin for plugin in framework.plugins if getattr(type(plugin), method) is not getattr(Plugin, method)]


def _reference(pod: PodInfo) -> dict[str, Any]:
    """Return the object reference for an event."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod.name,
            "namespace": pod.namespace,
            "uid": pod.uid,
            "resourceVersion": pod.resource_version,
        },
    }
