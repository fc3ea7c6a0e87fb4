"""Parents of a sync controller are shared among replicas."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, widget
from tests.unit.frontends.kernel.applier.sets import config_map

from ostinato.frontends.kernel.controller import SyncController
from ostinato.frontends.kernel.sync import SyncRequest, SyncResult
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager, Sharding
from ostinato.server.in_process.transport import InProcessTransport

NAMES = [f"w{number}" for number in range(12)]


@staged
async def test_each_parent_is_synced_by_the_replica_that_holds_its_shard(stage: ControllerStage) -> None:
    synced: dict[str, list[str]] = {"a": [], "b": []}
    for name in NAMES:
        await stage.user.create(widget(name))

    def start(replica: str) -> asyncio.Task[None]:
        async def decide(request: SyncRequest) -> SyncResult:
            assert request.parent is not None
            synced[replica].append(request.parent["metadata"]["name"])
            return SyncResult(children=[config_map(request.parent["metadata"]["name"])])

        manager = Manager(
            connect=lambda purpose: InProcessTransport(stage.server, deadline=purpose.deadline),
            world=stage.world,
            sharding=Sharding(name="work", namespace="default", identity=replica, shards=4, trust_absence=True),
        )
        manager.add(SyncController("syncs", Widget, decide))
        return asyncio.create_task(manager.serve())

    serving = [start("a")]
    await stage.settle(20)
    assert sorted(set(synced["a"])) == sorted(NAMES)
    serving.append(start("b"))
    await stage.settle(30)
    for each in synced.values():
        each.clear()
    for name in NAMES:
        await stage.user.delete(ConfigMap, name)
    await stage.settle(5)
    assert len(await stage.user.list(ConfigMap, namespace="default")) == len(NAMES)
    assert all(synced.values())
    assert set(synced["a"]).isdisjoint(synced["b"])
    assert set(synced["a"]) | set(synced["b"]) == set(NAMES)
    for task in serving:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
