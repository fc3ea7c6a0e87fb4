"""Daemons and timers under a manager: leader election, shutdown, real threads."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from tests.stage.election import ElectionStage, staged
from tests.stage.server import started_server
from tests.stage.transport import RecordingTransport

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client
from ostinato.client.transport.protocol import ConnectionLost, Request
from ostinato.controllers import BlockingContext, Context, daemon, timer
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import LeaderElection, Manager, Purpose
from ostinato.manager.election.elector import LeadershipLost
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import World


class Replica:
    """A manager whose connection for leader election can be cut."""

    def __init__(self, stage: ElectionStage, identity: str, **options: Any) -> None:
        self._server = stage.server
        self._wires: list[RecordingTransport] = []
        election = LeaderElection(name="widgets", namespace="default", identity=identity)
        self.manager = Manager(connect=self._connect, world=stage.world, leader_election=election, **options)

    def _connect(self, purpose: Purpose) -> Any:
        wire = RecordingTransport(InProcessTransport(self._server, deadline=purpose.deadline))
        if purpose.name == "leader-election":
            self._wires.append(wire)
        return wire

    def serve(self) -> asyncio.Task[None]:
        return asyncio.create_task(self.manager.serve())

    def cut(self) -> None:
        def fail(_: Request) -> None:
            raise ConnectionLost("cut off")

        for wire in self._wires:
            wire.before = fail


def config_map(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default", labels={"watched": "yes"}))


class Log:
    """Notes which replica is busy with an object, and checks that no two are."""

    def __init__(self) -> None:
        self.busy: dict[str, str] = {}
        self.entries: list[str] = []

    async def occupy(self, replica: str, source: ConfigMap, ctx: Context) -> None:
        name = source.metadata.name
        assert name not in self.busy, f"{self.busy[name]} and {replica} at once"
        self.busy[name] = replica
        self.entries.append(f"{replica} begins")
        try:
            await ctx.sleep(10_000)
        finally:
            del self.busy[name]
            self.entries.append(f"{replica} ends")


@pytest.mark.parametrize("kind", ["daemon", "timer"])
def test_a_leader_that_loses_its_lease_stops_before_the_next_one_begins(kind: str) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        log = Log()
        await stage.client.create(config_map("a"))
        replicas = {name: Replica(stage, name) for name in ("first", "second")}
        serving = {}
        for name, replica in replicas.items():

            async def run(source: ConfigMap, ctx: Context, name: str = name) -> None:
                await log.occupy(name, source, ctx)

            run.__name__ = "run"
            made = daemon(ConfigMap, labels="watched=yes") if kind == "daemon" else None
            replica.manager.add((made or timer(ConfigMap, labels="watched=yes", every=5))(run))
            serving[name] = replica.serve()
            await stage.clock.sleep(30)
        assert log.entries == ["first begins"]
        replicas["first"].cut()
        await asyncio.wait([serving["first"]])
        assert isinstance(serving["first"].exception(), LeadershipLost)
        assert log.entries == ["first begins", "first ends"]
        await stage.clock.sleep(60)
        assert log.entries == ["first begins", "first ends", "second begins"]
        replicas["second"].manager.stop()
        await asyncio.gather(serving["second"], return_exceptions=True)

    play()


@pytest.mark.parametrize(("grace", "ends"), [(30.0, True), (2.0, False)])
def test_a_shutdown_waits_for_the_clean_up_of_daemons_within_the_grace_period(grace: float, ends: bool) -> None:
    @staged
    async def play(stage: ElectionStage) -> None:
        log: list[str] = []

        @daemon(ConfigMap, labels="watched=yes")
        async def cleaning(source: ConfigMap, ctx: Context) -> None:
            try:
                await ctx.sleep(10_000)
            finally:
                await ctx.sleep(10)
                log.append("clean")

        await stage.client.create(config_map("a"))
        manager = Replica(stage, "only", graceful_shutdown=grace).manager.add(cleaning)
        serving = asyncio.create_task(manager.serve())
        await stage.clock.sleep(30)
        manager.stop()
        await asyncio.wait([serving])
        assert (log == ["clean"]) is ends
        assert (serving.exception() is None) is ends
        await stage.clock.sleep(20)

    play()


def test_plain_daemons_have_a_thread_each_and_async_ones_must_not_block(caplog: pytest.LogCaptureFixture) -> None:
    count = 12  # more than the threads of a pool
    running: set[str] = set()
    ended: set[str] = set()

    @daemon(ConfigMap, labels="watched=yes")
    def threads(source: ConfigMap, ctx: BlockingContext) -> None:
        running.add(source.metadata.name)
        try:
            while True:
                ctx.sleep(1000)
        finally:
            running.discard(source.metadata.name)
            ended.add(source.metadata.name)

    @daemon(ConfigMap, when=lambda each: each.metadata.name == "c0", slow_step=0.01)
    async def blocking(source: ConfigMap, ctx: Context) -> None:
        time.sleep(0.02)  # noqa: ASYNC251 - the mistake

    async def until(condition: Any) -> None:
        while not condition():  # noqa: ASYNC110 - set by threads
            await asyncio.sleep(0.01)

    async def play() -> None:
        world = World.real(workers=2)
        async with started_server(world) as server:
            client = Client(InProcessTransport(server), world=world, namespace="default")
            for number in range(count):
                await client.create(config_map(f"c{number}"))
            manager = Manager(connect=lambda _: InProcessTransport(server), world=world).add(threads, blocking)
            serving = asyncio.create_task(manager.serve())
            await until(lambda: len(running) == count)
            await client.delete(ConfigMap, "c0")
            await until(lambda: "c0" in ended)
            assert len(running) == count - 1
            await until(lambda: "daemon blocked the event loop" in caplog.text)
            manager.stop()
            await serving
            assert not running
            assert len(ended) == count

    async def limited() -> None:
        async with asyncio.timeout(30):
            await play()

    asyncio.run(limited())
