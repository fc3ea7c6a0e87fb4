"""Heartbeats of many nodes, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.stage.plane import Stage, on_stage

from ostinato.kinds.coordination_v1 import Lease
from ostinato.plane.node.node_clients import node_clients
from ostinato.plane.node.registration.heartbeat import RENEW_INTERVAL, Heartbeat
from ostinato.plane.node.registration.node_status import Machine
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.records import Write

NODES = 100
MACHINES = [Machine(name=f"node-{n}", addresses=("10.0.0.7",), runtime="fake://1", capacity={}) for n in range(NODES)]


def test_renewals_of_many_nodes_share_commits_and_are_spread_over_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(stage: Stage) -> None:
        stage.run(lambda manager: manager.add(Heartbeat(MACHINES, node_clients(manager))))
        await stage.settle(quiet=0.5)
        commits: list[tuple[float, int]] = []

        async def append(_: MemoryLog, writes: Sequence[Write]) -> None:
            commits.append((stage.world.clock.monotonic(), len(writes)))
            await stage.world.clock.sleep(0.001)

        monkeypatch.setattr(MemoryLog, "append", append)
        await stage.world.clock.sleep(4 * RENEW_INTERVAL)
        assert sum(size for _, size in commits) == 4 * NODES, "each lease is renewed once in an interval"
        seconds = {round(at) for at, _ in commits}
        assert len(seconds) == 40, "a tenth of the nodes each second"
        assert len(commits) <= 2 * len(seconds), "the nodes of one second share a commit, or two"

    on_stage(play)


def test_each_lease_is_renewed_within_its_duration() -> None:
    async def play(stage: Stage) -> None:
        stage.run(lambda manager: manager.add(Heartbeat(MACHINES, node_clients(manager))))
        await stage.settle(quiet=0.5)
        for _ in range(8):
            await stage.world.clock.sleep(RENEW_INTERVAL / 3)
            now = stage.world.clock.now()
            for lease in await stage.client.list(Lease, namespace="kube-node-lease"):
                assert lease.spec.renew_time is not None
                age = (now - lease.spec.renew_time).total_seconds()
                assert age <= RENEW_INTERVAL + 1, f"{lease.metadata.name}: {age} s"

    on_stage(play)
