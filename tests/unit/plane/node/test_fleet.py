"""Nodes of this machine, as a plane makes them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, Config
from ostinato.kinds.core_v1 import Container, Pod, PodSpec, ServiceAccount
from ostinato.plane.plane import Plane, PlaneSettings
from ostinato.server.standalone import Settings
from ostinato.world import World


@pytest.fixture
def world() -> Iterator[World]:
    world = World.real()
    yield world
    world.executor.close()


def test_pods_run_with_a_relative_state_directory(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def play() -> None:
        plane = Plane(world, PlaneSettings(server=Settings(state=Path("plane"), port=0), nodes=1, runtime="process"))
        await plane.start()
        try:
            async with Client.connect(Config.load(path=plane.kubeconfig), world=world) as client:
                await client.wait_for(ServiceAccount, "default", lambda account: account is not None, timeout=15)
                container = Container(name="main", image="none", command=["sh", "-c", "echo hello"])
                await client.create(
                    Pod(metadata=ObjectMeta(name="hello"), spec=PodSpec(containers=[container], restart_policy="Never"))
                )
                await client.wait_for(
                    Pod, "hello", lambda pod: pod is not None and pod.status.phase == "Succeeded", timeout=15
                )
                assert await client.pods.log("hello") == "hello\n"
                await client.delete(Pod, "hello", grace_period=0)
        finally:
            await plane.stop()

    asyncio.run(play())
