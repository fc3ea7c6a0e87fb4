"""Faults that tests inject into the requests of controllers."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.testing.ponds import Pond, pond, ponds

from ostinato import Conflict
from ostinato.api.errors import ServiceUnavailable, TooManyRequests
from ostinato.client.transport.protocol import ConnectionLost
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import Cluster, ClusterManager, UnexpectedErrors, VirtualClock


async def test_a_conflict_is_retried(cluster: Cluster, manager: ClusterManager) -> None:
    await manager.start(ponds)
    fault = cluster.fail(next=Conflict, on=ConfigMap)
    await cluster.client.create(pond())
    await cluster.eventually(ConfigMap, "a")
    assert fault.hits == ["patch configmaps default/a"]


async def test_a_fault_repeats_and_is_selected_by_name_and_verb(
    cluster: Cluster, manager: ClusterManager, clock: VirtualClock
) -> None:
    await manager.start(ponds)
    fault = cluster.fail(next=ServiceUnavailable, on="ponds/status", verb="patch", name="b", times=2)
    await cluster.client.create(pond("a"))
    await cluster.client.create(pond("b"))
    for name in ("a", "b"):
        await cluster.eventually(Pond, name, lambda each: each.status.checks == 1)
    assert fault.hits == ["patch ponds/status default/b"] * 2
    await cluster.eventually(lambda: not manager.unread_errors())


async def test_a_lost_response_does_not_undo_the_request(
    cluster: Cluster, manager: ClusterManager, clock: VirtualClock
) -> None:
    await manager.start(ponds)
    fault = cluster.fail(next=ConnectionLost("reset"), on=ConfigMap, verb="patch", processed=True)
    await cluster.client.create(pond())
    await cluster.eventually(Pond, "a", lambda each: each.status.checks == 1)
    assert len(fault.hits) == 1
    assert [str(each.error) for each in manager.errors] == ["reset"]


async def test_requests_are_delayed(cluster: Cluster, manager: ClusterManager, clock: VirtualClock) -> None:
    await manager.start(ponds)
    cluster.delay(30, on=ConfigMap, verb="patch")
    await cluster.client.create(pond())
    await clock.advance(29)
    assert await cluster.client.get(ConfigMap, "a", missing=None) is None
    await clock.advance(1.1)
    await cluster.client.get(ConfigMap, "a")


async def test_a_lost_watch_is_resumed(cluster: Cluster, manager: ClusterManager, clock: VirtualClock) -> None:
    await manager.start(ponds)
    assert cluster.lose_watches(on=Pond) == 1
    assert cluster.lose_watches(on=Pond, namespace="other") == 0
    await cluster.client.create(pond())
    await cluster.eventually(ConfigMap, "a")


async def test_faults_end_when_they_are_removed(cluster: Cluster) -> None:
    fault = cluster.fail(next=TooManyRequests, times=None)
    alice = cluster.client_as("alice", "system:masters")
    with pytest.raises(TooManyRequests):
        await alice.get(ConfigMap, "a", missing=None)
    fault.remove()
    assert await alice.get(ConfigMap, "a", missing=None) is None
    assert await cluster.client.get(ConfigMap, "a", missing=None) is None


def test_a_fault_without_a_matching_request_fails_the_test() -> None:
    async def main() -> None:
        async with Cluster() as cluster:
            cluster.fail(next=Conflict, on=ConfigMap, name="misspelt")

    with pytest.raises(UnexpectedErrors, match=r"cluster.fail\(next=Conflict, on=ConfigMap, name='misspelt'\): no req"):
        asyncio.run(main())


async def test_mistakes_in_faults_are_reported(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="verb 'post' does not exist; choose from get, list"):
        cluster.fail(next=Conflict, verb="post")
    with pytest.raises(TypeError, match="next is 409; pass an error"):
        cluster.fail(next=409)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="times is 0"):
        cluster.delay(1, times=0)
