"""From `apply` to a process that runs, and runs again after it died: ten steps, each found in what the API server told.

The node is cordoned at first, so that the Pod is seen waiting: queued by the scheduler, ignored by the node's agent.
Everything is told by watches, in the order of the server's versions, which are of one sequence for all kinds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.client import Client, Config, MergePatch
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec, ReplicaSet
from ostinato.kinds.core_v1 import Container, Event, Node, Pod, PodSpec, PodTemplateSpec, ServiceAccount
from tests.cluster.planes import PlaneProcess

SECONDS = 60
NODE = "node-1"
LABELS = {"app": "web"}
SCRIPT = "until [ -e die ]; do sleep 0.1; done; rm die; exit 3"


class Told(NamedTuple):
    version: int
    type: str
    object: Any


class History:
    """All that happened to some kinds in a namespace, in order."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._told: list[Told] = []
        self._news = asyncio.Event()

    async def listen(self, kind: type[Any]) -> None:
        async for event in self._client.watch(kind, namespace="default"):
            self._told.append(Told(int(event.object.metadata.resource_version), event.type, event.object))
            self._news.set()

    def of(self, kind: type[Any]) -> list[Told]:
        return sorted((each for each in self._told if isinstance(each.object, kind)), key=lambda told: told.version)

    async def first(self, kind: type[Any], what: str, holds: Callable[[Any], bool], after: int = 0) -> Told:
        """The first version of which something holds; waits for it."""
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    for told in self.of(kind):
                        if told.version > after and told.type != "DELETED" and holds(told.object):
                            return told
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise AssertionError(f"{what}: not in {[each for each in self.of(kind) if each.version > after]}") from None

    async def event(self, reason: str, about: Told, component: str) -> Event:
        """What a part says of an object that it has done."""

        def holds(event: Event) -> bool:
            name = event.involved_object.name
            told_by = event.reporting_component or (event.source and event.source.component)
            return (event.reason, name, told_by) == (reason, about.object.metadata.name, component)

        found: Event = (await self.first(Event, f"{reason} by {component}", holds)).object
        return found


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Path]:
    if request.config.getoption("--cluster"):
        pytest.skip("it cordons all nodes")
    process = PlaneProcess(tmp_path_factory.mktemp("plane"), "--nodes", "1", "--runtime", "process")
    process.start()
    yield process.kubeconfig
    assert process.stop() == 0, process.log()[-2000:]


@asynccontextmanager
async def watched(client: Client) -> AsyncIterator[History]:
    history = History(client)
    watches = [asyncio.create_task(history.listen(kind)) for kind in (Deployment, ReplicaSet, Pod, Event)]
    try:
        yield history
    finally:
        for each in watches:
            each.cancel()
        await asyncio.gather(*watches, return_exceptions=True)  # their connections end before the client does


def condition(pod: Pod, name: str) -> tuple[str | None, str | None]:
    return next(((each.status, each.reason) for each in pod.status.conditions if each.type == name), (None, None))


def is_tainted(node: Node | None) -> bool:
    return node is not None and any(each.key == "node.kubernetes.io/unschedulable" for each in node.spec.taints)


def is_ready(pod: Pod) -> bool:
    return condition(pod, "Ready")[0] == "True"


def owner(instance: Any) -> str:
    (reference,) = instance.metadata.owner_references
    assert reference.controller
    return str(reference.uid)


def web() -> Deployment:
    container = Container(name="main", image="busybox:1", command=["sh", "-c", SCRIPT])
    pod = PodSpec(containers=[container], termination_grace_period_seconds=1)
    template = PodTemplateSpec(metadata=ObjectMeta(labels=LABELS), spec=pod)
    return Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(replicas=1, selector=LabelSelector(match_labels=LABELS), template=template),
    )


async def walk_through(client: Client, history: History) -> None:
    await client.wait_for(Node, NODE, "Ready", timeout=SECONDS)
    await client.wait_for(ServiceAccount, "default", lambda found: found is not None, timeout=SECONDS)
    await client.patch(Node, NODE, MergePatch({"spec": {"unschedulable": True}}))
    await client.wait_for(Node, NODE, is_tainted, timeout=SECONDS)  # the plane has seen it

    # 1. It is applied, and stored with a version.
    written = await client.apply(web())
    applied = await history.first(Deployment, "the Deployment", lambda _: True)
    assert applied.type == "ADDED"
    assert applied.object.metadata.uid == written.metadata.uid
    assert [each.manager for each in applied.object.metadata.managed_fields] == ["test"]

    # 2. The Deployment's controller detects it, and wants one replica by a ReplicaSet.
    detected = await history.first(ReplicaSet, "a ReplicaSet", lambda found: found.spec.replicas == 1)
    assert detected.version > applied.version
    assert owner(detected.object) == applied.object.metadata.uid
    await history.event("ScalingReplicaSet", applied, "deployment-controller")

    # 3. The ReplicaSet's controller creates a Pod, which is bound to no node.
    created = await history.first(Pod, "a Pod", lambda _: True)
    assert created.version > detected.version
    assert (created.type, created.object.spec.node_name, created.object.status.phase) == ("ADDED", None, "Pending")
    assert owner(created.object) == detected.object.metadata.uid
    await history.event("SuccessfulCreate", detected, "replicaset-controller")

    # 4. The scheduler queues it: there is no node that would have it.
    unschedulable = ("False", "Unschedulable")
    queued = await history.first(Pod, "waits", lambda pod: condition(pod, "PodScheduled") == unschedulable)
    assert queued.version > created.version
    failed = await history.event("FailedScheduling", created, "default-scheduler")
    assert "1 node(s) were unschedulable" in failed.message

    # 5. The node's agent ignores what is not bound to its node: until the Pod is, it says nothing of it (see below).
    await client.patch(Node, NODE, MergePatch({"spec": {"unschedulable": None}}))

    # 6. The scheduler binds it.
    bound = await history.first(Pod, "bound", lambda pod: bool(pod.spec.node_name))
    assert bound.object.spec.node_name == NODE
    assert condition(bound.object, "PodScheduled")[0] == "True"
    await history.event("Scheduled", created, "default-scheduler")
    for told in history.of(Pod):
        if told.version <= bound.version:
            status = told.object.status
            assert (status.start_time, status.host_ip, status.container_statuses) == (None, None, []), "5."
    by_the_agent = [
        told.version
        for told in history.of(Event)
        if told.object.involved_object.kind == "Pod" and told.object.reporting_component == "kubelet"
    ]
    assert all(version > bound.version for version in by_the_agent), "5."

    # 7. The agent starts its container.
    for reason in ("Pulled", "Created", "Started"):
        await history.event(reason, created, "kubelet")

    # 8. It tells the Pod's status, which travels up to the Deployment.
    running = await history.first(Pod, "ready", is_ready, after=bound.version)
    (container,) = running.object.status.container_statuses
    assert running.object.status.phase == "Running"
    assert (container.ready, container.restart_count) == (True, 0)
    assert running.object.status.pod_ip
    counted = await history.first(ReplicaSet, "ready", lambda found: found.status.ready_replicas == 1, running.version)
    available = await history.first(
        Deployment, "available", lambda found: found.status.available_replicas == 1, counted.version
    )

    # 9. The container dies.
    await client.pods.run(created.object.metadata.name, ["touch", "die"])

    def died(pod: Pod) -> bool:
        (found,) = pod.status.container_statuses
        states = (found.state, found.last_state)
        return any(state and state.terminated and state.terminated.exit_code == 3 for state in states)

    dead = await history.first(Pod, "dead", died, available.version)

    # 10. The loop makes it anew: the same Pod, another container.
    def renewed(pod: Pod) -> bool:
        (found,) = pod.status.container_statuses
        return is_ready(pod) and found.restart_count == 1 and found.container_id != container.container_id

    again = await history.first(Pod, "runs again", renewed, dead.version - 1)
    assert again.object.metadata.uid == created.object.metadata.uid
    assert died(again.object), "it tells how its last run ended"

    # And of a Pod that is gone, the ReplicaSet's controller makes another one.
    await client.delete(Pod, created.object.metadata.name)
    other = await history.first(
        Pod, "another", lambda pod: is_ready(pod) and pod.metadata.uid != again.object.metadata.uid
    )
    assert owner(other.object) == detected.object.metadata.uid
    await client.delete(Deployment, "web", propagation="Foreground")
    await client.wait_for(Deployment, "web", lambda found: found is None, timeout=SECONDS)


def test_the_walk_through(plane: Path) -> None:
    async def play() -> None:
        config = Config.load(path=plane, namespace="default")
        async with Client.connect(config, field_manager="test") as client, watched(client) as history:
            await walk_through(client, history)

    asyncio.run(play())
