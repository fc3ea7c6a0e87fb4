"""A contest for leadership in virtual time: candidates, a server, and everything that may go wrong between them.

Each candidate writes as long as it may. What must never happen: that the writes of one fall between those of another.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client
from ostinato.client.transport.protocol import ConnectionLost, DeadlinePassed, Request, RequestTimedOut
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import Namespace
from ostinato.manager.election.election import Election
from ostinato.manager.election.elector import LeadershipLost
from ostinato.manager.election.fence import Fence, FencedTransport
from ostinato.manager.election.settings import LeaderElection
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Rng, Simulation, World

SECONDS = 120.0  # that a contest lasts
SLOWEST_WRITE = 2.0  # seconds that a write is under way; more would be longer than the gap that the times leave


class Network:
    """What lies between one machine and the server: it stops, delays, loses answers, and comes back."""

    def __init__(self, simulation: Simulation, rng: Rng) -> None:
        self.clock = simulation.clock
        self.rng = rng
        self.open = asyncio.Event()
        self.open.set()
        self.slowness = 0.0  # seconds that requests and answers take at most
        self.losing = 0.0  # the share of answers that are lost

    async def delay(self, most: float) -> None:
        await self.clock.sleep(self.rng.uniform(0.0, most))


class LeaseTransport:
    """Requests for the lease: as slow as it gets, answers lost."""

    host = "server"

    def __init__(self, inner: Any, network: Network, world: World) -> None:
        self._inner = inner
        self._network = network
        self._clock = world.clock

    async def request(self, request: Request) -> Any:
        network = self._network
        limit = self._clock.timeout(request.timeout)
        try:
            async with limit:
                await network.open.wait()
                await network.delay(network.slowness)
                answer = await self._inner.request(request._replace(timeout=None))
                await network.delay(network.slowness)
                await network.open.wait()
        except TimeoutError:
            raise RequestTimedOut("no answer in time") from None
        if network.rng.random() < network.losing:
            raise ConnectionLost("the answer was lost")
        return answer

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...


class Done:
    """The answer to a write."""

    status = 200


class WriteTransport:
    """Writes of the work: each goes into the log when it comes to the server, whether or not anybody waits for it."""

    host = "server"

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate

    async def request(self, request: Request) -> Any:
        candidate = self._candidate
        await candidate.network.open.wait()  # a pause before the request is sent
        until = candidate.fence.deadline()
        if until is None or candidate.world.clock.monotonic() > until:
            raise DeadlinePassed("too late")
        network = candidate.network
        arriving = asyncio.get_running_loop().create_task(self._arrive())
        candidate.contest.arriving.add(arriving)
        arriving.add_done_callback(candidate.contest.arriving.discard)
        if network.rng.random() < network.losing:
            raise ConnectionLost("the connection broke behind the request")
        await asyncio.shield(arriving)
        return Done()

    async def _arrive(self) -> None:
        candidate = self._candidate
        await candidate.network.delay(min(SLOWEST_WRITE, candidate.network.slowness + 0.01))
        candidate.contest.log.append((candidate.contest.simulation.clock.monotonic(), candidate.name))

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        raise NotImplementedError

    async def close(self) -> None: ...


class NeverClosed(Fence):
    """The fence of a process whose election hangs: nobody closes it, so that time alone must end its writes."""

    def close(self) -> None: ...


class Candidate:
    """A process that stands for election and, elected, writes several times a second."""

    def __init__(self, contest: Contest, number: int) -> None:
        rng = contest.rng.fork(f"candidate {number}")
        self.contest = contest
        self.name = f"candidate-{number}"
        self.world = contest.simulation.machine(
            self.name, offset=rng.uniform(-1000, 1000), rate=rng.uniform(0.92, 1.08), wall_rate=rng.uniform(0.1, 3.0)
        )
        self.network = Network(contest.simulation, rng)
        self.fence = NeverClosed(self.world.clock)
        options = LeaderElection(name="contest", namespace="default", identity=self.name)
        self.election = Election(options, self.connect, self.world, self.fence, self)
        self.writer = FencedTransport(WriteTransport(self), self.fence)  # type: ignore[arg-type]
        self.working: asyncio.Task[None] | None = None
        self.election.start()

    def connect(self) -> Client:
        return Client(
            LeaseTransport(InProcessTransport(self.contest.server), self.network, self.world), world=self.world
        )

    def leader_seen(self, identity: str) -> None: ...

    def elected(self, lease: Lease) -> None:
        self.contest.terms += 1
        self.working = asyncio.get_running_loop().create_task(self.work())

    async def work(self) -> None:
        with suppress(DeadlinePassed):
            while True:
                with suppress(ConnectionLost):
                    await self.writer.request(Request("POST", "/write"))
                await self.world.clock.sleep(0.3)

    async def live(self) -> None:
        """Return when it has lost, or was stopped."""
        with suppress(LeadershipLost):
            await self.election.ended()
        if self.working is not None:
            await self.working

    async def stop(self) -> None:
        """Stop the work, then leave: as a manager does."""
        if self.working is not None:
            self.working.cancel()
            with suppress(asyncio.CancelledError):
                await self.working
        await self.election.resign()


class Contest:
    def __init__(self, seed: int, candidates: int) -> None:
        self.simulation = Simulation(seed, interleave=True)
        self.rng = self.simulation.rng.fork("contest")
        self.candidates = candidates
        self.log: list[tuple[float, str]] = []  # of writes: when each came to the server, and whose it was
        self.arriving: set[asyncio.Task[None]] = set()  # writes that are on their way
        self.terms = 0
        self.numbers = 0
        self.living: list[Candidate] = []

    def run(self) -> Contest:
        self.simulation.run(self._main())
        return self

    def overlaps(self) -> list[str]:
        """Writes that came while another candidate's were not over."""
        spans: dict[str, list[float]] = {}
        for at, name in self.log:
            spans.setdefault(name, []).append(at)
        ordered = sorted((times[0], times[-1], name) for name, times in spans.items())
        return [
            f"{other} wrote at {begin:.2f}, {name} until {end:.2f}"
            for (_, end, name), (begin, _, other) in itertools.pairwise(ordered)
            if begin <= end
        ]

    async def _main(self) -> None:
        self.server = Server(self.simulation, MemoryLog())
        self.client = Client(InProcessTransport(self.server), world=self.simulation, namespace="default")
        await self.client.create(Namespace(metadata=ObjectMeta(name="default")))  # all that a lease needs of a cluster
        lives = [asyncio.create_task(self._replace()) for _ in range(self.candidates)]
        until = self.simulation.clock.monotonic() + SECONDS
        while self.simulation.clock.monotonic() < until:
            await self.simulation.clock.sleep(self.rng.uniform(0.1, 12.0))
            await self._mishap()
        for life in lives:
            life.cancel()
        await asyncio.wait(lives)
        if self.arriving:
            await asyncio.wait(self.arriving)
        await self.server.close()

    async def _replace(self) -> None:
        """A candidate, and another whenever it ends: as a Deployment would."""
        while True:
            self.numbers += 1
            candidate = Candidate(self, self.numbers)
            self.living.append(candidate)
            await candidate.live()
            self.living.remove(candidate)
            await self.simulation.clock.sleep(self.rng.uniform(0.0, 3.0))

    async def _mishap(self) -> None:
        candidate = self.rng.choice(self.living) if self.living else None
        what = self.rng.randrange(8)
        if what == 0:
            await self.client.delete(Lease, "contest", missing_ok=True)
        elif candidate is None:
            return
        elif what in (1, 2):
            candidate.network.open.clear()
            self.simulation.clock.timer(self.rng.uniform(0.5, 40.0), candidate.network.open.set)
        elif what == 3:
            candidate.network.slowness = self.rng.choice([0.0, 0.5, 3.0, 12.0])
        elif what == 4:
            candidate.network.losing = self.rng.choice([0.0, 0.3, 1.0])
        elif what == 5:
            await candidate.stop()
        elif what == 6:
            for each in self.living:
                each.network.slowness = each.network.losing = 0.0
