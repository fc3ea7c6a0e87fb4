"""Unhealthy nodes and their Pods."""

from __future__ import annotations

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.api.time import MicroTime
from ostinato.client import MergePatch, StrategicMergePatch
from ostinato.kinds.coordination_v1 import Lease, LeaseSpec
from ostinato.kinds.core_v1 import Container, Node, NodeSpec, Pod, PodSpec, Taint, Toleration
from ostinato.plane.node import fleet

LIFECYCLE, EVICTION = "node-lifecycle-controller", "taint-eviction-controller"


async def join(stage: Stage, *names: str) -> None:
    """Nodes that report Ready once."""
    for name in names:
        await stage.client.create(Node(metadata=ObjectMeta(name=name)))
        await say(stage, name, "True")
    await stage.settle()


async def say(stage: Stage, name: str, ready: str) -> None:
    now = str(MicroTime.of(stage.world.clock.now()))[:19] + "Z"
    condition = {"type": "Ready", "status": ready, "lastHeartbeatTime": now, "lastTransitionTime": now}
    await stage.client.patch(
        Node, name, StrategicMergePatch({"status": {"conditions": [condition]}}), subresource="status"
    )


async def taints(stage: Stage, name: str) -> list[tuple[str, str]]:
    node = await stage.client.get(Node, name)
    return sorted((each.key.removeprefix("node.kubernetes.io/"), each.effect) for each in node.spec.taints)


async def ready(stage: Stage, name: str) -> tuple[str, str]:
    node = await stage.client.get(Node, name)
    found = next(each for each in node.status.conditions if each.type == "Ready")
    return found.status, found.reason or ""


def pod(name: str, node: str, *tolerations: Toleration) -> Pod:
    container = Container(name="c", image="i")
    spec = PodSpec(node_name=node, containers=[container], tolerations=list(tolerations))
    return Pod(metadata=ObjectMeta(name=name), spec=spec)


async def names(stage: Stage) -> list[str]:
    """Names of Pods that are not terminating."""
    return sorted(
        each.metadata.name for each in await stage.client.list(Pod) if each.metadata.deletion_timestamp is None
    )


def test_a_ready_node_loses_its_initial_not_ready_taint() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a")
        assert await taints(stage, "a") == []

    on_stage(play, LIFECYCLE)


def test_a_node_without_heartbeat_is_unknown_and_unreachable_and_its_pods_are_not_ready() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a", "b")
        created = await stage.client.create(pod("p", "a"))
        await stage.set_pod_status(created, phase="Running", conditions=[{"type": "Ready", "status": "True"}])
        for _ in range(9):
            await stage.world.clock.sleep(6)
            await say(stage, "b", "True")
        await stage.world.clock.sleep(2)
        assert await ready(stage, "a") == ("Unknown", "NodeStatusUnknown")
        assert await taints(stage, "a") == [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]
        assert await ready(stage, "b") == ("True", "")
        found = await stage.client.get(Pod, "p")
        assert [each.status for each in found.status.conditions if each.type == "Ready"] == ["False"]
        assert ("NodeNotReady", "Node is not ready") in await stage.events("p")
        assert ("NodeNotReady", "Node a status is now: NodeNotReady") in await stage.events("a")
        await say(stage, "a", "True")
        await stage.settle()
        assert await taints(stage, "a") == []

    on_stage(play, LIFECYCLE)


def test_a_renewed_lease_is_a_heartbeat() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a")
        lease = Lease(metadata=ObjectMeta(name="a", namespace="kube-node-lease"), spec=LeaseSpec(holder_identity="a"))
        await stage.client.create(lease)
        for _ in range(20):
            await stage.world.clock.sleep(10)
            now = str(MicroTime.of(stage.world.clock.now()))
            change = MergePatch({"spec": {"renewTime": now}})
            await stage.client.patch(Lease, "a", change, namespace="kube-node-lease")
        assert await ready(stage, "a") == ("True", "")

    on_stage(play, LIFECYCLE)


def test_in_full_disruption_no_pods_are_evicted() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a", "b", "c")
        await stage.world.clock.sleep(120)
        for name in "abc":
            assert await taints(stage, name) == [("unreachable", "NoSchedule")]

    on_stage(play, LIFECYCLE)


def test_cordons_and_pressure_conditions_become_taints_and_are_removed() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a")
        await stage.client.patch(Node, "a", MergePatch({"spec": {"unschedulable": True}}))
        pressure = {"type": "MemoryPressure", "status": "True"}
        change = StrategicMergePatch({"status": {"conditions": [pressure]}})
        await stage.client.patch(Node, "a", change, subresource="status")
        await stage.settle()
        assert await taints(stage, "a") == [("memory-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")]
        await stage.client.patch(Node, "a", MergePatch({"spec": {"unschedulable": None}}))
        await stage.settle()
        assert await taints(stage, "a") == [("memory-pressure", "NoSchedule")]

    on_stage(play, LIFECYCLE)


def test_a_flapping_node_causes_a_bounded_number_of_writes() -> None:
    async def play(stage: Stage) -> None:
        await join(stage, "a", "b")
        for status in ("False", "True") * 5:
            await say(stage, "a", status)
            await stage.settle()
        await stage.world.clock.sleep(10)  # events are written asynchronously
        before = stage.version
        await stage.world.clock.sleep(15)
        assert stage.version == before
        assert await taints(stage, "a") == []

    on_stage(play, LIFECYCLE, EVICTION)


def test_untolerated_taints_evict_pods_at_once_or_after_toleration_seconds() -> None:
    async def play(stage: Stage) -> None:
        stage.run(lambda manager: fleet.add_to(manager, 1, "simulated"))
        await stage.settle()
        await stage.client.create(pod("plain", "node-1"))
        await stage.client.create(pod("forever", "node-1", Toleration(key="broken", operator="Exists")))
        await stage.client.create(
            pod(
                "awhile",
                "node-1",
                Toleration(key="broken", operator="Exists", effect="NoExecute", toleration_seconds=60),
            )
        )
        await stage.settle()
        change = {"spec": {"taints": [{"key": "broken", "effect": "NoExecute"}]}}
        await stage.client.patch(Node, "node-1", MergePatch(change))
        await stage.world.clock.sleep(5)
        assert await names(stage) == ["awhile", "forever"]
        await stage.world.clock.sleep(60)
        assert await names(stage) == ["forever"]
        assert ("TaintManagerEviction", "Marking for deletion Pod default/awhile") in await stage.events("awhile")

    on_stage(play, EVICTION)


def test_a_taint_removed_in_time_cancels_the_eviction() -> None:
    async def play(stage: Stage) -> None:
        await stage.client.create(
            Node(
                metadata=ObjectMeta(name="a"),
                spec=NodeSpec(taints=[Taint(key="broken", effect="NoExecute")]),
            )
        )
        await stage.client.create(
            pod("p", "a", Toleration(key="broken", operator="Exists", effect="NoExecute", toleration_seconds=60))
        )
        await stage.world.clock.sleep(30)
        await stage.client.patch(Node, "a", MergePatch({"spec": {"taints": None}}))
        await stage.world.clock.sleep(120)
        assert await names(stage) == ["p"]
        assert ("TaintManagerEviction", "Cancelling deletion of Pod default/p") in await stage.events("p")

    on_stage(play, EVICTION)
