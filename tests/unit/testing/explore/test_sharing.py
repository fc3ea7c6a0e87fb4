"""What the servers of worlds share changes nothing in them."""

from __future__ import annotations

from typing import Any

import pytest

from ostinato.client.client import Client
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request.known_applies import KnownApplies
from ostinato.testing.explore.world.disk import Disk, DiskIndex
from ostinato.testing.explore.world.image import Image, make_image
from ostinato.world import Simulation

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"one": "1"}}


@pytest.fixture(scope="module")
def image() -> Image:
    return make_image([], [{**MAP, "metadata": {"name": "given"}}])


async def served(world: Simulation, image: Image, applies: KnownApplies | None = None) -> tuple[Server, Client]:
    disk = Disk(image.version, image.objects, lambda _: None)
    server = Server(world, DiskIndex(disk, world.clock, image.entries), applies=applies)
    await server.start(bootstrapped=True)
    return server, Client(InProcessTransport(server), world=world, namespace="default", field_manager="test")


def test_a_server_opens_a_kind_when_it_is_used(image: Image) -> None:
    async def main(world: Simulation) -> None:
        server, client = await served(world, image)
        assert "configmaps" not in server.index.collections
        found = await client.get(ConfigMap, "given")
        assert found.data == {"one": "1"}
        assert "configmaps" in server.index.collections
        listed = {resource.gvr.resource for resource in server.registry}
        assert {"configmaps", "pods", "leases"} <= listed
        assert len(server.index.collections) > 50

    world = Simulation(1)
    world.run(main(world))


def test_a_known_apply_gives_the_same_object(image: Image) -> None:
    applies = KnownApplies()

    async def main(world: Simulation, known: KnownApplies | None) -> list[Any]:
        _, client = await served(world, image, known)
        first = await client.apply(MAP)
        changed = await client.apply({**MAP, "data": {"two": "2"}})
        first["data"]["changed"] = "by its user"
        return [await client.apply(MAP), changed]

    def run(known: KnownApplies | None) -> list[Any]:
        world = Simulation(1)
        return world.run(main(world, known))

    alone = run(None)
    assert alone[0]["data"] == {"one": "1"}
    assert alone[1]["data"] == {"two": "2"}
    assert run(applies) == alone
    assert run(applies) == alone
