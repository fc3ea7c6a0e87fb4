"""The cluster of `ostinato run --embedded`: its files and its shutdown."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from ostinato.cli.error import CommandError
from ostinato.cli.program.embedded import Embedded
from ostinato.client import Client
from ostinato.client.http.transport import HttpTransport
from ostinato.kinds.core_v1 import Namespace
from ostinato.manager import Purpose, serve_together
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import World


class Plane:
    """A plane that fails on request."""

    def __init__(self) -> None:
        self.failing = asyncio.Event()

    async def failed(self) -> None:
        await self.failing.wait()
        raise OSError(28, "no space left for the scheduler")


class Beside:
    """What runs on the cluster."""

    def __init__(self) -> None:
        self.stopped = asyncio.Event()

    async def serve(self) -> None:
        await self.stopped.wait()

    def stop(self) -> None:
        self.stopped.set()

    async def synced(self) -> None: ...


@pytest.fixture
def cluster(tmp_path: Path) -> Any:
    return Embedded(World.real(), tmp_path)


def test_a_failed_component_stops_the_managers(cluster: Any) -> None:
    async def main() -> None:
        cluster._plane, beside = Plane(), Beside()
        cluster._plane.failing.set()
        with pytest.raises(OSError, match="no space left for the scheduler"):
            await serve_together(beside, cluster)
        assert beside.stopped.is_set()

    asyncio.run(main())


def test_the_cluster_stops_with_the_managers(cluster: Any) -> None:
    async def main() -> None:
        cluster._plane, beside = Plane(), Beside()
        beside.stop()
        await serve_together(beside, cluster)

    asyncio.run(main())


def test_managers_connect_in_process_and_leader_election_over_http(tmp_path: Path) -> None:
    async def main() -> None:
        world = World.real()
        cluster, other = Embedded(world, tmp_path), Embedded(world, tmp_path)
        await cluster.start()
        try:
            transport = cluster.connect(Purpose())
            assert isinstance(transport, InProcessTransport)
            async with Client(transport, world=world) as client:
                assert (await client.get(Namespace, "default")).metadata.name == "default"
            election = cluster.connect(Purpose("leader-election"))
            assert isinstance(election, HttpTransport)
            await election.close()
            with pytest.raises(CommandError, match="is in use by process"):
                await other.start()
        finally:
            await cluster.close()
            world.executor.close()
        assert (tmp_path / "store.db").exists()

    asyncio.run(main())


def test_exit_removes_the_temporary_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    cluster = Embedded(World.real(), None)
    place = cluster.kubeconfig.parent
    assert place.exists()
    cluster.exit(1)
    assert (codes, place.exists()) == ([1], False)


def test_without_a_state_directory_all_files_are_removed() -> None:
    async def main() -> None:
        world = World.real()
        cluster = Embedded(world, None)
        await cluster.start()
        place = cluster.kubeconfig.parent
        assert cluster.kubeconfig.exists()
        await cluster.close()
        world.executor.close()
        assert not place.exists()

    asyncio.run(main())
