"""Clusters of tests: isolation, clients, virtual time, events; without pytest too."""

from __future__ import annotations

import asyncio
import unittest

import pytest
from tests.unit.testing.ponds import Pond, broken, pond, ponds

from ostinato import NotFound
from ostinato.api.errors import Forbidden, Invalid
from ostinato.client import Client
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import ConfigMap, Pod, Secret
from ostinato.testing import (
    Cluster,
    ClusterManager,
    ClusterTestCase,
    Events,
    Eventually,
    UnexpectedErrors,
    VirtualClock,
)
from ostinato.world import Simulation


@pytest.mark.parametrize("_", range(2))
async def test_each_test_has_a_cluster_of_its_own(client: Client, _: int) -> None:
    assert await client.get(ConfigMap, "mine", missing=None) is None
    await client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}})


async def test_a_controller_runs_on_the_cluster(
    manager: ClusterManager, client: Client, eventually: Eventually, events: Events
) -> None:
    await manager.start(ponds)
    made = await client.create(pond(ducks=3))
    await eventually(ConfigMap, "a", lambda each: each.data == {"ducks": "3"})
    assert str(await events.expect("Filled", regarding=made)) == "Normal Filled Pond default/a: 3 ducks"
    assert await events.list(kind="Warning") == []


async def test_definitions_of_the_controllers_kinds_are_installed(manager: ClusterManager, client: Client) -> None:
    await manager.start(ponds)
    with pytest.raises(Invalid, match=r"spec\.ducks"):
        await client.create(pond(ducks=-1))


async def test_time_is_virtual_with_the_clock(
    clock: VirtualClock, manager: ClusterManager, client: Client, eventually: Eventually
) -> None:
    await manager.start(ponds)
    await client.create(pond())
    await eventually(Pond, "a", lambda each: each.status.checks == 1)
    began = clock.now()
    await clock.advance(3 * 3600)
    assert (await client.get(Pond, "a")).status.checks == 4
    assert (clock.now() - began).total_seconds() == pytest.approx(3 * 3600, abs=0.1)


async def test_pods_run_on_a_plane(plane: Cluster, clock: VirtualClock, client: Client, eventually: Eventually) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
    await client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    await eventually(Deployment, "web", lambda each: each.status.ready_replicas == 2)
    assert {pod.status.phase async for pod in client.list(Pod)} == {"Running"}


async def test_users_have_the_permissions_of_their_roles(cluster: Cluster) -> None:
    alice = cluster.client_as("alice")
    with pytest.raises(Forbidden):
        await alice.get(Secret, "a")
    admin = cluster.client_as("bob", "system:masters")
    with pytest.raises(NotFound):
        await admin.get(Secret, "a")


def test_asyncio_runs_a_cluster() -> None:
    async def main() -> None:
        async with Cluster() as cluster:
            await cluster.manager().start(ponds)
            await cluster.client.create(pond())
            await cluster.eventually(ConfigMap, "a")

    asyncio.run(main())


def test_a_simulation_runs_a_cluster_in_virtual_time() -> None:
    world = Simulation(seed=1)

    async def main() -> None:
        async with Cluster(world=world) as cluster:
            await cluster.manager().start(ponds)
            await cluster.client.create(pond())
            await cluster.eventually(Pond, "a", lambda each: each.status.checks == 3, timeout=7300)

    world.run(main())


class PondTest(ClusterTestCase):
    async def test_a_pond_gets_a_config_map(self) -> None:
        await self.manager.start(ponds)
        await self.client.create(pond())
        await self.eventually(ConfigMap, "a")


class BrokenTest(ClusterTestCase):
    async def failing(self) -> None:
        await self.manager.start(broken)
        await self.client.create(pond())
        await self.eventually(self.manager.unread_errors)


def test_unittest_reports_failed_reconciles() -> None:
    result = unittest.TestResult()
    BrokenTest("failing").run(result)
    ((_, text),) = result.failures
    assert "controller broken failed on default/a: KeyError: 'a'" in text


def test_a_closed_cluster_is_not_used_again() -> None:
    async def main() -> None:
        async with Cluster() as cluster:
            pass
        with pytest.raises(RuntimeError, match="closed"):
            await cluster.start()
        await cluster.close()

    asyncio.run(main())


def test_the_error_of_the_test_comes_before_those_in_the_background() -> None:
    async def main() -> None:
        async with Cluster() as cluster:
            await cluster.manager().start(broken)
            await cluster.client.create(pond())
            await cluster.eventually(cluster.managers[0].unread_errors)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        asyncio.run(main())
    assert "controller broken failed" in caught.value.__notes__[0]
    assert not isinstance(caught.value, UnexpectedErrors)
