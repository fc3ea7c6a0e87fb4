"""Registration of CSI drivers at a node, and what the node publishes of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.csi.driver import Driver, Refusal
from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.controllers import Dependencies
from ostinato.grpc import Code
from ostinato.kinds.core_v1 import Node
from ostinato.kinds.storage_v1 import CSINode
from ostinato.plane.csi import CsiError
from ostinato.plane.node.volumes.csi.csi_node import CsiNodePublisher
from ostinato.plane.node.volumes.csi.drivers import NodeDrivers
from ostinato.plane.node.volumes.csi.plugin_watcher import PluginWatcher
from ostinato.world import World


class Publisher:
    def __init__(self) -> None:
        self.published: list[str] = []
        self.info: dict[str, Any] = {}

    async def ensure(self) -> None: ...

    async def publish(self, driver: str, info: dict[str, Any]) -> None:
        self.published.append(driver)
        self.info = info

    async def withdraw(self, driver: str) -> None:
        self.published.remove(driver)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - the condition is of another task
            await asyncio.sleep(0.01)


def watched(tmp_path: Path, play: Callable[[NodeDrivers, Publisher, Path], Awaitable[None]]) -> None:
    async def whole() -> None:
        world, publisher, registry = World.real(), Publisher(), tmp_path / "plugins_registry"
        drivers = NodeDrivers(world.clock)
        watcher = PluginWatcher("node-1", registry, drivers, publisher)  # type: ignore[arg-type]
        dependencies = cast("Dependencies", SimpleNamespace(world=world, logger=logging.getLogger("test")))
        watching = asyncio.ensure_future(watcher.run(dependencies))
        await until(registry.is_dir)
        await play(drivers, publisher, registry)
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)

    asyncio.run(whole())


def test_a_driver_is_registered_while_its_socket_exists(tmp_path: Path) -> None:
    async def play(drivers: NodeDrivers, publisher: Publisher, registry: Path) -> None:
        driver = Driver(tmp_path, max_volumes=7)
        async with driver.listening(tmp_path / "csi.sock", registry / "reg.sock"):
            await until(lambda: any(method == "NotifyRegistrationStatus" for method, _ in driver.calls))
            assert [method for method, _ in driver.calls] == ["GetInfo", "NodeGetInfo", "NotifyRegistrationStatus"]
            assert driver.calls[-1][1] == {"plugin_registered": True}
            assert publisher.published == [driver.name]
            assert publisher.info == {"node_id": "node-1", "max_volumes_per_node": 7}
            assert drivers.get(driver.name).service.socket == tmp_path / "csi.sock"
        await until(lambda: not publisher.published)
        with pytest.raises(CsiError):
            drivers.get(driver.name)

    watched(tmp_path, play)


def test_a_plugin_that_fails_or_hangs_is_told_so_and_delays_no_other(tmp_path: Path) -> None:
    async def play(drivers: NodeDrivers, publisher: Publisher, registry: Path) -> None:
        failing = Driver(tmp_path, "failing.csi", fail={"NodeGetInfo": Refusal(Code.INTERNAL, "no disk")})
        hanging = Driver(tmp_path, "hanging.csi", hang={"GetInfo"})
        working = Driver(tmp_path, "working.csi")
        async with (
            failing.listening(registry / "a.sock"),
            hanging.listening(registry / "b.sock"),
            working.listening(registry / "c.sock"),
        ):
            await until(lambda: publisher.published == ["working.csi"])
            await until(lambda: any(method == "NotifyRegistrationStatus" for method, _ in failing.calls))
            told = {"plugin_registered": False, "error": "rpc error: code = Internal desc = no disk"}
            assert failing.calls[-1] == ("NotifyRegistrationStatus", told)
            with pytest.raises(CsiError):
                drivers.get("failing.csi")

    watched(tmp_path, play)


def test_the_node_publishes_its_drivers() -> None:
    async def play(stage: Stage) -> None:
        client = stage.client
        await client.create(Node(metadata=ObjectMeta(name="node-1")))
        publisher = CsiNodePublisher("node-1", client)
        found = await publisher.ensure()
        assert found.metadata.owner_references[0].kind == "Node"
        topology = {"accessible_topology": {"segments": {"zone": "z1"}}}
        await publisher.publish("b.csi", {"node_id": "id-b", "max_volumes_per_node": 3} | topology)
        await publisher.publish("a.csi", {"node_id": "id-a"})
        before = (await client.get(CSINode, "node-1")).metadata.resource_version
        await publisher.publish("a.csi", {"node_id": "id-a"})  # again, after a restart
        drivers = (await client.get(CSINode, "node-1")).spec.drivers
        assert [(each.name, each.node_id, each.topology_keys) for each in drivers] == [
            ("b.csi", "id-b", ["zone"]),
            ("a.csi", "id-a", []),
        ]
        assert drivers[0].allocatable is not None
        assert drivers[0].allocatable.count == 3
        assert drivers[1].allocatable is None
        node = await client.get(Node, "node-1")
        assert (await client.get(CSINode, "node-1")).metadata.resource_version == before
        assert node.metadata.annotations["csi.volume.kubernetes.io/nodeid"] == '{"a.csi":"id-a","b.csi":"id-b"}'
        assert node.metadata.labels["zone"] == "z1"
        await publisher.withdraw("b.csi")
        assert [each.name for each in (await client.get(CSINode, "node-1")).spec.drivers] == ["a.csi"]
        with pytest.raises(CsiError, match="topology value collision"):
            await publisher.publish("c.csi", {"node_id": "c", "accessible_topology": {"segments": {"zone": "z2"}}})

    on_stage(play)
