"""The scheduler: gives every Pod a node, one after the other, or says why there is none.

It is a runnable of a manager. What informers tell goes into a snapshot and a queue (`handlers`); each Pod of the queue
is tried against the snapshot (`framework`), in one step that nothing interrupts. A Pod that fits is assumed to be on
its node from then on, and bound while the next one is tried. A Pod that does not fit may displace others (`preempt`),
and waits.
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
from ostinato.plane.scheduler.api_writes import ERROR, UNSCHEDULABLE, Writes
from ostinato.plane.scheduler.cache.listers import KINDS, Objects
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.cache.snapshot import Snapshot
from ostinato.plane.scheduler.event_handlers import Handlers
from ostinato.plane.scheduler.framework.events import CLAIM, CLASS, POD, VOLUME, Action, ClusterEvent
from ostinato.plane.scheduler.framework.interface import Plugin
from ostinato.plane.scheduler.framework.runtime import Found, Framework, NoFit, Profile
from ostinato.plane.scheduler.nominator import Nominator
from ostinato.plane.scheduler.preempt import NAME as PREEMPTION
from ostinato.plane.scheduler.preempt import Preemption, Victims
from ostinato.plane.scheduler.queue import QueuedPod, SchedulingQueue

_TURN: Final = 8  # Pods after which others get their turn
_MOST_WRITES: Final = 100  # that are under way
_SYNC_TIMEOUT: Final = 120.0
_NO_NODES: Final = "no nodes available to schedule pods"


class Scheduler:
    name = "scheduler"
    needs_leader_election = True

    def __init__(self, profiles: Sequence[Profile], recorders: Mapping[str, Recorder]) -> None:
        """`recorders` write the events of each profile, by its name."""
        self._profiles = {profile.name: profile for profile in profiles}
        self._recorders = recorders
        self._tasks: set[asyncio.Task[None]] = set()  # writes that are under way

    async def run(self, dependencies: Dependencies) -> None:
        work = _Work(self._profiles, dependencies)
        registrations = self._listen(work, dependencies)
        try:
            for kind in KINDS:
                await dependencies.informers.of(kind).synced(_SYNC_TIMEOUT)
            for registration in registrations:
                await registration.synced(_SYNC_TIMEOUT)
            await self._schedule_all(work)
        finally:
            for registration in registrations:
                registration.remove()
            work.queue.close()
            if self._tasks:
                await asyncio.wait(self._tasks)

    def _listen(self, work: _Work, dependencies: Dependencies) -> list[Registration]:
        handlers = Handlers(self._profiles.keys(), work.snapshot, work.queue, work.nominator, work.objects)
        informers = dependencies.informers
        heard: list[tuple[Any, Callable[[Any], None]]] = [
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
        for kind, handler in heard:
            registrations.append(informers.of(kind).add_handler(handler, name=self.name))
        informers.start()
        return registrations

    async def _schedule_all(self, work: _Work) -> None:
        tried = 0
        while True:
            queued = work.queue.pop_now() or await work.queue.pop()
            self._try(work, queued)
            tried += 1
            if len(self._tasks) >= _MOST_WRITES:
                await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
            elif tried % _TURN == 0:
                await work.clock.sleep(0)

    def _try(self, work: _Work, queued: QueuedPod) -> None:
        pod = queued.pod
        if pod.is_being_deleted:
            note = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            self._record(pod, "FailedScheduling", note, "Scheduling", kind="Warning")
            work.queue.delete(pod.uid)
            return
        framework = work.frameworks[pod.scheduler_name]
        try:
            found = framework.schedule(pod)
            if isinstance(found, Found):
                self._assume(work, found)
                self._start(self._bind(work, queued, found))
            elif found is None:
                self._refused(work, queued, _NO_NODES, frozenset({"NodeName"}), "")
            else:
                self._no_fit(work, queued, found)
        except Exception as error:  # of a plugin, whoever wrote it: other Pods go on
            work.dependencies.logger.exception("%s cannot be scheduled", pod)
            self._failed(work, queued, error)

    # A node was found

    def _assume(self, work: _Work, found: Found) -> None:
        pod = found.cycle.pod
        work.snapshot.put_pod(pod.on(found.node.name), assumed=True)
        work.nominator.remove(pod.uid)
        for plugin in work.reserving[pod.scheduler_name]:
            plugin.reserve(found.cycle, found.node)

    async def _bind(self, work: _Work, queued: QueuedPod, found: Found) -> None:
        pod, node = found.cycle.pod, found.node
        try:
            for plugin in work.preparing[pod.scheduler_name]:
                await plugin.pre_bind(found.cycle, node, work.dependencies)
            await work.writes.bind(pod, node.name)
        except Exception as error:  # noqa: BLE001 - whatever it is, the node is not taken, and the Pod is tried again
            self._give_back(work, found)
            if work.still_waits(pod):
                if not isinstance(error, APIError | TransportError):
                    work.dependencies.logger.warning("%s cannot be bound: %s: %s", pod, type(error).__name__, error)
                self._failed(work, queued, error)
            return
        self._record(pod, "Scheduled", f"Successfully assigned {pod.namespace}/{pod.name} to {node.name}", "Binding")

    def _give_back(self, work: _Work, found: Found) -> None:
        pod = found.cycle.pod
        for plugin in work.reserving[pod.scheduler_name]:
            plugin.unreserve(found.cycle, found.node)
        if work.snapshot.is_assumed(pod.uid):
            freed = work.snapshot.remove_pod(pod.uid)
            work.queue.move(ClusterEvent(POD, Action.DELETE, old=freed))

    # No node was found

    def _no_fit(self, work: _Work, queued: QueuedPod, refused: NoFit) -> None:
        outcome = work.preemption.find(refused)
        nominated: str | None = None if outcome.keeps_nomination else ""
        if outcome.victims is not None:
            nominated = outcome.victims.node.name
            self._preempt(work, queued.pod, outcome.victims)
        message = refused.diagnosis.message(outcome.message)
        self._refused(work, queued, message, refused.diagnosis.plugins, nominated)

    def _refused(
        self, work: _Work, queued: QueuedPod, message: str, plugins: frozenset[str], nominated: str | None
    ) -> None:
        pod = queued.pod
        work.queue.refuse(queued, plugins)
        if nominated is not None:
            work.nominator.add(pod, nominated)
        self._tell(work, pod, UNSCHEDULABLE, message, nominated)

    def _failed(self, work: _Work, queued: QueuedPod, error: Exception) -> None:
        work.queue.fail(queued)
        self._tell(work, queued.pod, ERROR, str(error), "")

    def _tell(self, work: _Work, pod: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        self._record(pod, "FailedScheduling", message, "Scheduling", kind="Warning")

        async def write() -> None:
            with suppress(APIError, TransportError):  # it is said again the next time
                await work.writes.tell(pod, reason, message, nominated)

        self._start(write())

    # Making room

    def _preempt(self, work: _Work, pod: PodInfo, victims: Victims) -> None:
        """Have the victims removed. The Pod is not tried again before the last of them is on its way."""
        pods = [victim for victim in victims.pods if not victim.is_being_deleted]
        if pods:
            work.preempting[pod.uid] = None
            self._start(self._make_room(work, pod, victims.node.name, pods))

    async def _make_room(self, work: _Work, pod: PodInfo, node: str, victims: list[PodInfo]) -> None:
        try:
            for other in work.nominator.on(node):
                if other.priority < pod.priority:
                    await work.writes.clear_nomination(other)
            for victim in victims:
                if victim is victims[-1]:
                    work.preempting[pod.uid] = victim
                if await work.writes.evict(victim, pod):
                    note = f"Preempted by pod {pod.uid} on node {node}"
                    self._record(victim, "Preempted", note, "Preempting", recorder=pod.scheduler_name, related=pod)
        except (APIError, TransportError) as error:
            work.dependencies.logger.warning("cannot make room for %s on %s: %s", pod, node, error)
            del work.preempting[pod.uid]
            work.queue.activate(pod.uid)
        finally:
            work.preempting.pop(pod.uid, None)
            if all(work.snapshot.pod(victim.uid) is None for victim in victims):  # nothing more will happen to them
                work.queue.activate(pod.uid)

    # Inside

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

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Work:
    """Everything that one run of the scheduler works with."""

    def __init__(self, profiles: Mapping[str, Profile], dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.clock = dependencies.world.clock
        self.snapshot = Snapshot()
        self.nominator = Nominator()
        self.objects = Objects(dependencies.informers)
        self.writes = Writes(dependencies.client, self.objects, self.clock)
        rng = dependencies.world.rng.fork("scheduler")
        self.frameworks = {
            name: Framework(profile, self.snapshot, self.objects, self.nominator, rng.fork(name))
            for name, profile in profiles.items()
        }
        hints = {
            name: {plugin.name: plugin.hints() for plugin in framework.plugins}
            for name, framework in self.frameworks.items()
        }
        self.queue = SchedulingQueue(self.clock, hints, self._gate)
        self.preemption = Preemption(self.snapshot, self.objects, self.nominator, rng.fork("preemption"))
        # Pods that are having others removed, by uid: the last of these, once it is being told.
        self.preempting: dict[str, PodInfo | None] = {}
        self.gating = {name: _that_have(each, "gate") for name, each in self.frameworks.items()}
        self.reserving = {name: _that_have(each, "reserve") for name, each in self.frameworks.items()}
        self.preparing = {name: _that_have(each, "pre_bind") for name, each in self.frameworks.items()}

    def _gate(self, pod: PodInfo) -> str:
        """Which plugin holds a Pod back; "" if none does."""
        if self._is_making_room(pod):
            return PREEMPTION
        return next((plugin.name for plugin in self.gating[pod.scheduler_name] if plugin.gate(pod)), "")

    def _is_making_room(self, pod: PodInfo) -> bool:
        if pod.uid not in self.preempting:
            return False
        last = self.preempting[pod.uid]
        known = None if last is None else self.snapshot.pod(last.uid)
        return last is None or (known is not None and not known.is_being_deleted)

    def still_waits(self, pod: PodInfo) -> bool:
        """Whether a Pod is there, the same one, and without a node."""
        known = self.objects.pod(PodState, pod)
        return known is not None and not known.spec.node_name


def _that_have(framework: Framework, method: str) -> list[Plugin]:
    """The plugins that do something at this point."""
    return [plugin for plugin in framework.plugins if getattr(type(plugin), method) is not getattr(Plugin, method)]


def _reference(pod: PodInfo) -> dict[str, Any]:
    """As much of a Pod as an event needs."""
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
