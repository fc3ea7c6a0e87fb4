"""Managers of tests: errors, permissions, leader election."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.testing.ponds import Pond, broken, pond, ponds, thirsty

from ostinato import BlockingContext, Context, ObjectMeta, controller
from ostinato.api.errors import Forbidden
from ostinato.crd import Access
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.testing import Cluster, ClusterManager, Eventually, UnexpectedErrors, VirtualClock
from ostinato.webhook import Denied, ServiceEndpoint, Webhooks, validator


def failure_of(test: Any) -> str:
    """Run a test with a cluster of its own; return the errors that it ends with."""

    async def main() -> None:
        async with Cluster() as cluster:
            await test(cluster)

    with pytest.raises(UnexpectedErrors) as caught:
        asyncio.run(main())
    return str(caught.value)


def test_a_failed_reconcile_fails_the_test() -> None:
    async def test(cluster: Cluster) -> None:
        manager = await cluster.manager().start(broken)
        await cluster.client.create(pond())
        await cluster.eventually(manager.unread_errors)

    assert failure_of(test) == "controller broken failed on default/a: KeyError: 'a'"


async def test_errors_that_the_test_reads_do_not_fail_it(
    manager: ClusterManager, cluster: Cluster, eventually: Eventually
) -> None:
    await manager.start(broken)
    await cluster.client.create(pond())
    await eventually(lambda: manager.errors)
    assert isinstance(manager.errors[0].error, KeyError)
    await manager.end()


async def test_an_error_that_a_later_reconcile_resolves_does_not_fail_the_test(
    manager: ClusterManager, cluster: Cluster, eventually: Eventually
) -> None:
    runs = 0

    @controller(Pond)
    async def hesitant(pond: Pond, ctx: Context) -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            raise ConnectionError("not yet")

    await manager.start(hesitant)
    await cluster.client.create(pond())
    await eventually(lambda: runs == 2)
    await eventually(lambda: not manager.unread_errors())


def test_a_missing_permission_fails_the_test_and_names_the_option() -> None:
    async def test(cluster: Cluster) -> None:
        manager = await cluster.manager().start(thirsty)
        await cluster.client.create(pond())
        await cluster.eventually(manager.unread_errors)

    text = failure_of(test)
    assert 'cannot create resource "secrets" in API group "" in the namespace "default"' in text
    assert "controller thirsty lacks the permission: add access=[Access(" in text
    assert 'Access(groups=("",), resources=("secrets",), verbs=("create",))' in text
    assert "owns=[...]" in text


async def test_a_declared_permission_is_granted(cluster: Cluster, manager: ClusterManager) -> None:
    access = [Access(groups=("",), resources=("secrets",), verbs=("create",))]
    function = controller(Pond, name="drinker", access=access)(thirsty.function)
    await manager.start(function)
    await cluster.client.create(pond())
    await cluster.eventually(Secret, "a")


@pytest.mark.ostinato(rbac=False)
async def test_permissions_are_not_enforced_on_request(cluster: Cluster, manager: ClusterManager) -> None:
    await manager.start(thirsty)
    await cluster.client.create(pond())
    await cluster.eventually(Secret, "a")


async def test_controllers_are_added_to_a_running_manager(cluster: Cluster, manager: ClusterManager) -> None:
    await manager.start()
    with pytest.raises(RuntimeError, match=r"await manager\.start"):
        manager.add(ponds)
    await manager.start(ponds)
    await cluster.client.create(pond())
    await cluster.eventually(ConfigMap, "a")


async def test_a_reconciler_of_the_builder_runs(cluster: Cluster, manager: ClusterManager) -> None:
    class Reconciler:
        async def reconcile(self, request: Any) -> None:
            await manager.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": request.name}})

    access = Access(groups=("",), resources=("configmaps",), verbs=("create",))
    manager.build("ponds").watch_for(Pond).needs(access).complete(Reconciler())
    await manager.start()
    await cluster.client.create(pond())
    await cluster.eventually(ConfigMap, "a")
    await cluster.eventually(lambda: True)


async def test_a_second_replica_takes_over(cluster: Cluster, clock: VirtualClock) -> None:
    first = await cluster.manager(leader_election="ponds").start(ponds)
    await first.elected()
    second = await cluster.manager(leader_election="ponds").start(ponds)
    await clock.advance(60)
    assert not second.is_leader
    await first.end()
    await second.elected()
    await cluster.client.create(pond())
    await cluster.eventually(ConfigMap, "a")


@controller(Pond, owns=[ConfigMap])
def blocking(pond: Pond, ctx: BlockingContext) -> None:
    ctx.apply(ConfigMap(metadata=ObjectMeta(name=pond.metadata.name)), owner=pond)


async def test_a_blocking_reconciler_runs(cluster: Cluster, manager: ClusterManager) -> None:
    await manager.start(blocking)
    await cluster.client.create(pond())
    await cluster.eventually(ConfigMap, "a")


async def test_a_blocking_reconciler_runs_in_virtual_time(
    cluster: Cluster, manager: ClusterManager, clock: VirtualClock
) -> None:
    await manager.start(blocking)
    await cluster.client.create(pond())
    await cluster.eventually(ConfigMap, "a")


@validator(Pond)
def few_ducks(pond: Pond) -> Iterator[str]:
    if pond.spec.ducks > 100:
        raise Denied("too many ducks")
    yield "ducks are loud"


def webhooks() -> Webhooks:
    return Webhooks(few_ducks, endpoint=ServiceEndpoint("ponds-system", "ponds"), name="pond-webhooks")


async def test_webhooks_are_called(cluster: Cluster, manager: ClusterManager) -> None:
    await manager.start(ponds, webhooks())
    await cluster.client.create(pond(ducks=3))
    with pytest.raises(Forbidden, match="too many ducks"):
        await cluster.client.create(pond("b", ducks=101))
    await cluster.eventually(ConfigMap, "a")


async def test_webhooks_are_not_for_virtual_time(manager: ClusterManager, clock: VirtualClock) -> None:
    with pytest.raises(RuntimeError, match="webhooks are called over HTTPS, which virtual time excludes"):
        await manager.start(webhooks())
