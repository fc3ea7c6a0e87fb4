"""Replicas that share objects, in virtual time: managers, a server, and everything that may go wrong between them.

Each reconcile writes several times. What must never happen: that the writes of one replica to an object fall between
those of another.

    python -m tests.unit.manager.sharding.replicas 100        # seeds 0 to 99
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from tests.unit.manager.contest import SLOWEST_WRITE, LeaseTransport, Network

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MergePatch
from ostinato.client.transport.protocol import ConnectionLost, DeadlinePassed, Request, TransportError
from ostinato.controllers import Context, Result, controller
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import ConfigMap, Namespace
from ostinato.manager import Manager, Purpose, Sharding
from ostinato.manager.sharding.shards import Term
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation

OBJECTS = 6
SHARDS = 5
TERM: ContextVar[Term | None] = ContextVar("TERM", default=None)


class WorkTransport:
    """Requests of the controllers. Each write goes into the log when it comes to the server, if at all."""

    host = "server"

    def __init__(self, replica: Replica, purpose: Purpose) -> None:
        self._replica = replica
        self._deadline = purpose.deadline
        self._inner = InProcessTransport(replica.stage.server)

    async def request(self, request: Request) -> Any:
        if request.method == "GET" or "/events" in request.path:
            return await self._inner.request(request)
        replica = self._replica
        await replica.network.open.wait()  # a pause before the request is sent
        until = None if self._deadline is None else self._deadline()
        if until is not None and replica.world.clock.monotonic() > until:
            raise DeadlinePassed("too late")
        term = TERM.get()
        assert term is not None, f"{request.method} {request.path} outside of a reconcile"
        arriving = asyncio.get_running_loop().create_task(self._arrive(request, term))
        replica.stage.arriving.add(arriving)
        arriving.add_done_callback(replica.stage.arrived)
        if replica.network.rng.random() < replica.network.losing:
            raise ConnectionLost("the connection broke behind the request")
        return await asyncio.shield(arriving)

    async def _arrive(self, request: Request, term: Term) -> Any:
        replica = self._replica
        await replica.network.delay(min(SLOWEST_WRITE, replica.network.slowness + 0.01))
        name = request.path.rpartition("/")[2]
        replica.stage.log.append((replica.stage.simulation.clock.monotonic(), name, replica.name, id(term)))
        try:
            return await self._inner.request(request._replace(timeout=None))
        except TransportError:  # the process has ended meanwhile, and with it the transport
            raise ConnectionLost("the process has ended") from None

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        raise AssertionError("replicas open no WebSockets")

    async def close(self) -> None:
        await self._inner.close()


class Replica:
    """A process with a manager."""

    def __init__(self, stage: Stage, number: int) -> None:
        rng = stage.rng.fork(f"replica {number}")
        self.stage = stage
        self.name = f"replica-{number}"
        self.world = stage.simulation.machine(self.name, offset=rng.uniform(-1000, 1000), rate=rng.uniform(0.94, 1.06))
        self.network = Network(stage.simulation, rng)
        sharding = Sharding(name="work", namespace="default", shards=SHARDS, identity=self.name)
        self.manager = Manager(connect=self.connect, world=self.world, sharding=sharding, graceful_shutdown=20)
        self.manager.add(controller(ConfigMap, name="work", max_concurrent=3, error_events=False)(self.reconcile))
        self.serving = asyncio.create_task(self.manager.serve())

    def connect(self, purpose: Purpose) -> Any:
        if purpose.name == "leader-election":
            return LeaseTransport(InProcessTransport(self.stage.server), self.network, self.world)
        return WorkTransport(self, purpose)

    async def reconcile(self, config: ConfigMap, ctx: Context) -> Result:
        shards = self.manager._shards
        assert shards is not None
        TERM.set(shards._terms[shards._options.shard_of(ctx.request)])
        self.stage.terms.append((config.metadata.name, id(TERM.get())))
        self.stage.kept.append(TERM.get())
        for number in range(self.network.rng.randrange(1, 4)):
            await self.world.clock.sleep(self.network.rng.uniform(0.0, 1.0))
            with suppress(ConnectionLost):
                change = MergePatch({"data": {"by": f"{self.name} {number}"}})
                await ctx.client.patch(ConfigMap, config.metadata.name, change)
        return Result(requeue_after=2.0)

    async def stop(self) -> None:
        """As by SIGTERM."""
        self.manager.stop()
        await self.ended()

    async def kill(self) -> None:
        """As by SIGKILL: nothing is released. What was sent arrives."""
        self.network.open.clear()
        parts = self.manager._parts
        if parts is not None and parts.sharding is not None:
            parts.sharding.abandon()
        for _ in range(3):
            self.serving.cancel()
            await asyncio.sleep(0)
        await self.ended()

    async def ended(self) -> None:
        with suppress(asyncio.CancelledError, TransportError, TimeoutError):
            await self.serving


class Stage:
    def __init__(self, seed: int) -> None:
        self.simulation = Simulation(seed, interleave=True)
        self.rng = self.simulation.rng.fork("stage")
        self.log: list[tuple[float, str, str, int]] = []  # of writes: when, object, replica, term
        self.terms: list[tuple[str, int]] = []  # of reconciles: object and term
        self.kept: list[Any] = []  # terms: their ids must not be reused
        self.arriving: set[asyncio.Task[Any]] = set()
        self.living: list[Replica] = []
        self.numbers = 0

    def run(self, mishaps: float = 90.0) -> Stage:
        self.simulation.run(self._main(mishaps))
        return self

    def overlaps(self) -> list[str]:
        """Writes to an object that came while those of another term were not over."""
        found = []
        for name in {each[1] for each in self.log}:
            spans: dict[tuple[str, int], list[float]] = {}
            for at, written, replica, term in self.log:
                if written == name:
                    spans.setdefault((replica, term), []).append(at)
            ordered = sorted((times[0], times[-1], replica) for (replica, _), times in spans.items())
            found += [
                f"{name}: {other} wrote at {begin:.2f}, {replica} until {end:.2f}"
                for (_, end, replica), (begin, _, other) in itertools.pairwise(ordered)
                if begin <= end and replica != other
            ]
        return found

    def arrived(self, task: asyncio.Task[Any]) -> None:
        """Forget a write, whether or not its sender lives."""
        self.arriving.discard(task)
        if not task.cancelled():
            task.exception()

    def start(self) -> Replica:
        self.numbers += 1
        replica = Replica(self, self.numbers)
        self.living.append(replica)
        return replica

    async def _main(self, mishaps: float) -> None:
        self.server = Server(self.simulation, MemoryLog())
        self.client = Client(InProcessTransport(self.server), world=self.simulation, namespace="default")
        await self.client.create(Namespace(metadata=ObjectMeta(name="default")))
        for number in range(OBJECTS):
            await self.client.create(ConfigMap(metadata=ObjectMeta(name=f"object-{number}")))
        clock = self.simulation.clock
        for _ in range(3):
            self.start()
        until = clock.monotonic() + mishaps
        while clock.monotonic() < until:
            await clock.sleep(self.rng.uniform(0.1, 12.0))
            await self._mishap()
        await self._heal()
        await clock.sleep(60)
        self.settled = clock.monotonic()
        self.shares = {replica.name: replica.manager.shards for replica in self.living}
        self.counted = len(self.terms)
        await clock.sleep(15)
        self.last = [name for name, _ in self.terms[self.counted :]]
        for replica in self.living:
            await replica.stop()
        if self.arriving:
            await asyncio.wait(self.arriving)
        leases = [lease for lease in await self.client.list(Lease) if lease.spec.holder_identity]
        self.left = [lease.metadata.name for lease in leases if "member" not in lease.metadata.name]
        await self.server.close()

    async def _mishap(self) -> None:
        replica = self.rng.choice(self.living)
        what = self.rng.randrange(9)
        if what == 0:
            await self.client.delete(Lease, f"work-{self.rng.randrange(SHARDS)}", missing_ok=True)
        elif what in (1, 2, 3):
            replica.network.open.clear()
            self.simulation.clock.timer(self.rng.uniform(0.5, 40.0), replica.network.open.set)
        elif what == 4:
            replica.network.slowness = self.rng.choice([0.0, 0.5, 3.0])
        elif what == 5:
            replica.network.losing = self.rng.choice([0.0, 0.3])
        elif what in (6, 7):
            self.living.remove(replica)
            await (replica.kill() if what == 6 else replica.stop())
            self.start()
        elif len(self.living) < 5:
            self.start()

    async def _heal(self) -> None:
        for replica in self.living:
            replica.network.slowness = replica.network.losing = 0.0
            replica.network.open.set()


def main(count: int, first: int = 0) -> int:
    logging.disable(logging.CRITICAL)
    writes = terms = failures = 0
    for seed in range(first, first + count):
        stage = Stage(seed).run()
        writes += len(stage.log)
        terms += len({term for _, term in stage.terms})
        problems = stage.overlaps() + unsettled(stage)
        if problems:
            failures += 1
            print(f"seed {seed}: {problems[0]}")
    print(f"{count} runs, {terms} terms, {writes} writes: {failures} with problems")
    return 1 if failures else 0


def unsettled(stage: Stage) -> list[str]:
    """What is not shared evenly and completely a minute after the last mishap."""
    held = [shard for shards in stage.shares.values() for shard in shards]
    sizes = sorted(map(len, stage.shares.values()))
    found = []
    if sorted(held) != list(range(SHARDS)):
        found.append(f"held shards: {stage.shares}")
    if sizes[-1] - sizes[0] > 1:
        found.append(f"uneven: {stage.shares}")
    if len(set(stage.last)) != OBJECTS:
        found.append(f"not reconciled: only {sorted(set(stage.last))}")
    if stage.left:
        found.append(f"not released: {stage.left}")
    return found


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["100"])))
