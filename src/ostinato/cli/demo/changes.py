"""Changes: watch events of a namespace, each with a time and the component that caused it.

Objects do not record who changed them, but each kind of change has one component that makes it: a controller creates
the objects that its kind owns, the scheduler binds, the kubelet reports container status, the garbage collector deletes
objects whose owner is gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

import msgspec

from ostinato.client import Client, WatchEvent
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet
from ostinato.kinds.core_v1 import ContainerStateTerminated, ContainerStatus, Pod
from ostinato.world import Clock

T = TypeVar("T", Deployment, ReplicaSet, Pod)

YOU: Final = "you"
DEPLOYMENTS: Final = "deployment-controller"
REPLICA_SETS: Final = "replicaset-controller"
SCHEDULER: Final = "scheduler"
AGENT: Final = "kubelet"
COLLECTOR: Final = "garbage-collector"
COMPONENTS: Final = (YOU, DEPLOYMENTS, REPLICA_SETS, SCHEDULER, AGENT, COLLECTOR)
COUNTS: Final = "counts"  # the verb of a Deployment's status


class Change(msgspec.Struct, frozen=True):
    at: float  # on the monotonic clock
    component: str
    verb: str
    kind: str
    name: str
    note: str = ""


class ChangeWatcher:
    """Follow the Deployments, ReplicaSets and Pods of a namespace.

    - `deployments`, `replica_sets`, `pods`: the current objects by name.
    - `changes`: the changes since the consumer last took them.
    """

    def __init__(self, client: Client, namespace: str, clock: Clock) -> None:
        self.deployments: dict[str, Deployment] = {}
        self.replica_sets: dict[str, ReplicaSet] = {}
        self.pods: dict[str, Pod] = {}
        self.changes: list[Change] = []
        self._client = client
        self._namespace = namespace
        self._clock = clock
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Watch until cancelled; raise the error that ends a watch."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._deployments())
            group.create_task(self._replica_sets())
            group.create_task(self._pods())

    async def until(self, condition: Callable[[], bool]) -> float:
        """Wait for a condition; return the time on the monotonic clock."""
        while not condition():
            await self.next_change()
        return self._clock.monotonic()

    async def next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def _deployments(self) -> None:
        async for event in self._client.watch(Deployment, namespace=self._namespace):
            self._record(_of_deployment(_replaced(self.deployments, event), event))

    async def _replica_sets(self) -> None:
        async for event in self._client.watch(ReplicaSet, namespace=self._namespace):
            self._record(_of_replica_set(_replaced(self.replica_sets, event), event))

    async def _pods(self) -> None:
        async for event in self._client.watch(Pod, namespace=self._namespace):
            before = _replaced(self.pods, event)
            orphaned = not any(owner.name in self.replica_sets for owner in event.object.metadata.owner_references)
            self._record(_of_pod(before, event, COLLECTOR if orphaned else REPLICA_SETS))

    def _record(self, changes: Iterator[Change]) -> None:
        now = self._clock.monotonic()
        self.changes += [msgspec.structs.replace(each, at=now) for each in changes]
        self._changed.set()


def _replaced(objects: dict[str, T], event: WatchEvent[T]) -> T | None:
    """Store the event's object and return the previous one."""
    name = event.object.metadata.name
    before = objects.pop(name, None)
    if event.type != "DELETED":
        objects[name] = event.object
    return before


def _of_deployment(before: Deployment | None, event: WatchEvent[Deployment]) -> Iterator[Change]:
    after = event.object

    def change(component: str, verb: str, note: str = "") -> Change:
        return Change(0.0, component, verb, "Deployment", after.metadata.name, note)

    if event.type == "DELETED":
        yield change(YOU, "delete")
        return
    if before is None:
        yield change(YOU, "apply", f"{after.spec.replicas} replicas")
        return
    if before.spec.replicas != after.spec.replicas:
        yield change(YOU, "scale", f"{before.spec.replicas} → {after.spec.replicas} replicas")
    if before.spec.template != after.spec.template:
        yield change(YOU, "change", f"{_image(before)} → {_image(after)}")
    available = after.status.available_replicas or 0
    if (before.status.available_replicas or 0) != available <= (after.spec.replicas or 0):  # more during a rollout
        yield change(DEPLOYMENTS, COUNTS, f"{available} of {after.spec.replicas} available")


def _of_replica_set(before: ReplicaSet | None, event: WatchEvent[ReplicaSet]) -> Iterator[Change]:
    after = event.object

    def change(component: str, verb: str, note: str = "") -> Change:
        return Change(0.0, component, verb, "ReplicaSet", after.metadata.name, note)

    if event.type == "DELETED":
        yield change(COLLECTOR, "deletes")
    elif before is None:
        yield change(DEPLOYMENTS, "creates", f"{after.spec.replicas} replicas")
    elif before.spec.replicas != after.spec.replicas:
        yield change(DEPLOYMENTS, "scales", f"{before.spec.replicas} → {after.spec.replicas} replicas")


def _of_pod(before: Pod | None, event: WatchEvent[Pod], deleter: str) -> Iterator[Change]:
    after = event.object

    def change(component: str, verb: str, note: str = "") -> Change:
        return Change(0.0, component, verb, "Pod", after.metadata.name, note)

    if event.type == "DELETED":
        yield change(AGENT, "removes")
        return
    if before is None:
        yield change(REPLICA_SETS, "creates")
        return
    if after.spec.node_name and not before.spec.node_name:
        yield change(SCHEDULER, "binds", f"to {after.spec.node_name}")
    if after.metadata.deletion_timestamp and not before.metadata.deletion_timestamp:
        yield change(deleter, "deletes")
    ready = is_ready(after) and not is_ready(before)
    for container in after.status.container_statuses:
        previous = _named(before, container.name)
        was_running, restarted = _is_running(previous), _restarts(previous) < _restarts(container)
        ended = _end(container, restarted=restarted)
        if was_running and ended is not None and not after.metadata.deletion_timestamp:
            yield change(AGENT, "detects the exit of", f"exit code {ended.exit_code}")
        if _is_running(container) and (restarted or not was_running):
            yield change(AGENT, "restarts" if _restarts(container) else "starts", "ready" if ready else "")
            ready = False  # reported with the start
    if ready:
        yield change(AGENT, "reports", "ready")


def _is_running(container: ContainerStatus | None) -> bool:
    return container is not None and container.state is not None and container.state.running is not None


def _restarts(container: ContainerStatus | None) -> int:
    return 0 if container is None else container.restart_count or 0


def _end(container: ContainerStatus, *, restarted: bool) -> ContainerStateTerminated | None:
    """Return the terminated state of the container's last run."""
    state = container.last_state if restarted else container.state
    return None if state is None else state.terminated


def _named(pod: Pod, container: str) -> ContainerStatus | None:
    return next((each for each in pod.status.container_statuses if each.name == container), None)


def _image(deployment: Deployment) -> str:
    return deployment.spec.template.spec.containers[0].image or ""


def is_ready(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)
