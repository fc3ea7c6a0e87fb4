"""Resizes that do not fit the node: deferred, and allocated when there is room."""

from __future__ import annotations

from pathlib import Path

from tests.unit.plane.node.fake import NodeStage, container, on_node, pod

from ostinato.api.quantity import Quantity
from ostinato.client import StrategicMergePatch
from ostinato.kinds.core_v1 import Pod, PodCondition, ResourceRequirements


def cpu(requested: str) -> ResourceRequirements:
    return ResourceRequirements(requests={"cpu": Quantity(requested)}, limits={"cpu": Quantity("4")})


async def resize(node: NodeStage, name: str, requested: str) -> None:
    change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": requested}}}]}}
    await node.client.patch(Pod, name, StrategicMergePatch(change), subresource="resize")
    await node.wait(2)


async def pending(node: NodeStage, name: str = "p") -> PodCondition | None:
    conditions = (await node.get(name)).status.conditions
    return next((each for each in conditions if each.type == "PodResizePending"), None)


async def start(node: NodeStage, **requests: str) -> None:
    for name, requested in requests.items():
        await node.client.create(pod(name, containers=[container(resources=cpu(requested))]))
    await node.wait(2)


def test_a_resize_without_room_is_deferred_until_a_pod_ends(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await start(node, p="1", other="2")
        await resize(node, "p", "3")
        condition = await pending(node)
        assert condition is not None
        message = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"
        assert (condition.status, condition.reason, condition.message) == ("True", "Deferred", message)
        assert condition.observed_generation == 2
        status = await node.status()
        assert status.allocated_resources == {"cpu": Quantity("1")}
        assert status.resources == cpu("1")
        assert node.runtime.resized == []
        resources = '{"limits":{"cpu":"4"},"requests":{"cpu":"3"}}'
        summary = f'{{"containers":[{{"name":"c","resources":{resources}}}],"generation":2,"error":"{message}"}}'
        assert ("ResizeDeferred", f"Pod resize OutOfcpu: {summary}") in await node.events()

        await node.client.delete(Pod, "other", grace_period=0)
        await node.wait(2)
        assert await pending(node) is None
        assert (await node.status()).resources == cpu("3")
        assert [reason for reason, _ in await node.events()][-2:] == ["ResizeStarted", "ResizeCompleted"]

    on_node(play, tmp_path)


def test_a_deferred_resize_is_allocated_when_another_pod_shrinks(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await start(node, p="1", other="2")
        await resize(node, "p", "3")
        assert await pending(node) is not None
        await resize(node, "other", "1")
        assert await pending(node) is None
        assert (await node.status()).allocated_resources == {"cpu": Quantity("3")}

    on_node(play, tmp_path)


def test_a_deferred_resize_can_be_withdrawn(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await start(node, p="1", other="2")
        await resize(node, "p", "3")
        assert await pending(node) is not None
        await resize(node, "p", "1")
        assert await pending(node) is None
        assert node.runtime.resized == []

    on_node(play, tmp_path)


def test_a_container_restarts_with_its_allocated_resources_while_its_resize_is_deferred(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await start(node, p="1", other="2")
        await resize(node, "p", "3")
        next(each for each in node.runtime.started if each.launch.pod.metadata.name == "p").end(1)
        await node.wait(30)
        started = [each for each in node.runtime.started if each.launch.pod.metadata.name == "p"]
        assert [each.launch.container.resources for each in started] == [cpu("1"), cpu("1")]
        assert await pending(node) is not None

    on_node(play, tmp_path)


def test_room_goes_to_the_resize_that_has_been_deferred_longest(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await start(node, first="1", second="1", other="2")
        await resize(node, "first", "2")
        await resize(node, "second", "2")
        assert await pending(node, "first") is not None
        assert await pending(node, "second") is not None
        await resize(node, "other", "1")
        assert await pending(node, "first") is None, "it was deferred before the other"
        assert await pending(node, "second") is not None

    on_node(play, tmp_path)


def test_admission_counts_the_allocated_resources_of_a_deferred_resize(tmp_path: Path) -> None:
    async def play(node: NodeStage) -> None:
        await start(node, p="1", other="2")
        await resize(node, "p", "3")
        await start(node, late="1")
        assert (await node.get("late")).status.phase == "Running"

    on_node(play, tmp_path)
