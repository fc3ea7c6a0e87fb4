"""Managers with leader election against any API server: one works at a time, and the next takes over."""

from __future__ import annotations

import asyncio
from pathlib import Path

from ostinato import ObjectMeta
from ostinato.client import Client, Config
from ostinato.controllers import Dependencies, Task
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import ConfigMap, Event
from ostinato.manager import LeaderElection, Manager, ReportingOptions

SECONDS = 60


def candidate(config: Config, name: str, turns: list[str]) -> Manager:
    async def work(dependencies: Dependencies) -> None:
        made = await dependencies.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=config.namespace)))
        dependencies.recorder.event(made, "Worked", f"{name} worked", kind="Warning")
        turns.append(f"{name} begins")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            turns.append(f"{name} ends")

    election = LeaderElection(
        name="turns", identity=name, lease_duration=4, renew_deadline=3, retry_period=0.5, trust_absence=True
    )
    manager = Manager(config, leader_election=election, reporting=ReportingOptions(core_events=True))
    return manager.add(Task("worker", work))


async def two_take_turns(config: Config) -> None:
    turns: list[str] = []
    first, second = (candidate(config, name, turns) for name in ("first", "second"))
    async with Client.connect(config) as client:
        one = asyncio.create_task(first.serve())
        await client.wait_for(Lease, "turns", lambda lease: lease is not None, timeout=30)
        other = asyncio.create_task(second.serve())
        await client.wait_for(ConfigMap, "first", lambda made: made is not None, timeout=30)
        await first.elected()
        await client.world.clock.sleep(1)
        assert turns == ["first begins"]
        assert (first.is_leader, second.is_leader) == (True, False)
        first.stop()
        await one
        await second.elected()
        await client.wait_for(ConfigMap, "second", lambda made: made is not None, timeout=30)
        lease = await client.get(Lease, "turns")
        assert lease.spec is not None
        assert (lease.spec.holder_identity, lease.spec.lease_transitions) == ("second", 1)
        second.stop()
        await other
        assert turns == ["first begins", "first ends", "second begins", "second ends"]
        lease = await client.get(Lease, "turns")
        assert lease.spec is not None
        assert not lease.spec.holder_identity, "it was given back"
        events = [event async for event in client.list(Event, namespace=config.namespace)]
        said = {str(event.message) for event in events if event.reason == "LeaderElection"}
        assert said == {
            f"{name} {what}" for name in ("first", "second") for what in ("became leader", "stopped leading")
        }
        [worked] = [event for event in events if event.message == "first worked"]
        assert worked.source is not None
        assert (worked.source.component, worked.type, worked.count) == ("worker", "Warning", 1)
        assert (worked.involved_object.kind, worked.involved_object.name) == ("ConfigMap", "first")


def test_two_managers_take_turns(kubeconfig: Path, namespace: str) -> None:
    async def play() -> None:
        async with asyncio.timeout(SECONDS):
            await two_take_turns(Config.load(path=kubeconfig, namespace=namespace))

    asyncio.run(play())
