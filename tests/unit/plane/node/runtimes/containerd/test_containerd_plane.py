"""A control plane with a containerd node: a Pod from its creation through restarts to its removal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.plane.node.runtimes.containerd.containerd_server import containerd

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client
from ostinato.kinds.core_v1 import Container, Node, Pod, PodSpec
from ostinato.manager import Purpose
from ostinato.plane.node.runtimes.containerd import connect
from ostinato.plane.plane import Plane, PlaneSettings
from ostinato.server.standalone import Settings
from ostinato.world import World

FOREVER = "echo begun; trap 'exit 0' TERM; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with containerd(tmp_path_factory.mktemp("containerd")) as path:
        yield path


@asynccontextmanager
async def running(state: Path, socket: Path, nodes: int = 1) -> AsyncIterator[Client]:
    world = World.real()
    settings = PlaneSettings(server=Settings(state=state, port=0), nodes=nodes, runtime="containerd", containerd=socket)
    plane = Plane(world, settings)
    await plane.start()
    try:
        yield Client(plane.connect(Purpose(name="test")), world=world, namespace="default")
    finally:
        await plane.stop()


async def until(client: Client, name: str, holds: Callable[[Pod | None], bool]) -> Pod | None:
    pod = await client.get(Pod, name, missing=None)
    while not holds(pod):
        await client.world.clock.sleep(0.05)
        pod = await client.get(Pod, name, missing=None)
    return pod


def is_ready(pod: Pod | None) -> bool:
    return pod is not None and any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def pod(name: str, script: str = FOREVER) -> Pod:
    container = Container(name="c", image="busybox:1", command=["sh", "-c", script])
    spec = PodSpec(containers=[container], termination_grace_period_seconds=5, automount_service_account_token=False)
    return Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


async def sandboxes(socket: Path) -> int:
    found = await connect(World.real(), socket)
    listed = (await found.cri.call("ListPodSandbox", {})).get("items", [])
    await found.close()
    return len(listed)


def test_a_pod_runs_on_while_its_node_is_away_and_leaves_nothing(socket: Path, tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path, socket) as client:
            node = await client.get(Node, "node-1", missing=None)
            await client.create(pod("p"))
            await client.create(pod("q"))
            before = await until(client, "p", is_ready)
            await until(client, "q", is_ready)
            node = await client.get(Node, "node-1")
            assert node.status.node_info is not None
            assert node.status.node_info.container_runtime_version.startswith("containerd://")
            done = await client.pods.run("p", ["sh", "-c", "echo $HOSTNAME; exit 3"])
            assert (done.exit_code, done.stdout) == (3, b"p\n")
        assert await sandboxes(socket) == 2
        async with running(tmp_path, socket, nodes=0) as client:  # nobody is there to see it go
            await client.delete(Pod, "q", grace_period=0)
        async with running(tmp_path, socket) as client:
            after = await until(client, "p", is_ready)
            assert before is not None
            assert after is not None
            assert after.status.container_statuses[0].container_id == before.status.container_statuses[0].container_id
            assert after.status.container_statuses[0].restart_count == 0
            while await sandboxes(socket) > 1:
                await client.world.clock.sleep(0.05)
            await client.delete(Pod, "p")
            await until(client, "p", lambda found: found is None)
            assert await sandboxes(socket) == 0

    asyncio.run(asyncio.wait_for(play(), 90))


def test_a_container_that_dies_comes_back(socket: Path, tmp_path: Path) -> None:
    async def play() -> None:
        async with running(tmp_path, socket) as client:
            await client.create(pod("p"))
            await until(client, "p", is_ready)
            await client.pods.run("p", ["kill", "-TERM", "1"])
            await until(client, "p", lambda found: is_ready(found) and _restarts(found) == 1)
            await client.delete(Pod, "p")
            await until(client, "p", lambda found: found is None)

    asyncio.run(asyncio.wait_for(play(), 60))


def _restarts(found: Pod | None) -> int:
    return -1 if found is None else found.status.container_statuses[0].restart_count
