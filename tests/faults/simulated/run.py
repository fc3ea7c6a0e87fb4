"""One run in virtual time: clients, watchers and one fault, from a seed; then all checks.

python -m tests.faults.simulated.run --seed 17          # replays one run
python -m tests.faults.simulated.run --runs 1000        # seeds 0 to 999
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from ostinato.server.core import Server
from ostinato.server.request import Peer, Request, Stream
from ostinato.server.store.records import Log
from ostinato.world import Rng, Simulation
from tests.faults.history.check import check
from tests.faults.history.records import UNKNOWN, History
from tests.faults.history.violation import Violation
from tests.faults.simulated import faults
from tests.faults.simulated.disk import COLLECTION, Disk, FaultyLog, Image, MemoryDisk, SQLiteDisk
from tests.faults.workload.api import Lost
from tests.faults.workload.clients import Shared
from tests.faults.workload.session import Pace, Session
from tests.faults.workload.watchers import ended

OPERATIONS = 500
_PEER = Peer("kubernetes-admin", ("system:masters",))
_bootstrapped: list[Image] = []


def bootstrapped() -> Image:
    """A disk with the bootstrap objects and the namespaces of the workload, made once."""
    if not _bootstrapped:
        image, world = Image(), Simulation(0)

        async def main() -> None:
            server = Server(world, image)
            await server.start()
            await server.handle(_request("POST", "/api/v1/namespaces", "", b'{"metadata":{"name":"other"}}'))
            await server.close()

        world.run(main())
        _bootstrapped.append(image)
    return _bootstrapped[0].copy()


def _request(method: str, path: str, query: str, body: bytes) -> Request:
    request = Request(method, path, query, {"user-agent": "workload/1"}, body=body)
    request.peer = _PEER
    return request


class Machine:
    """The server of a run, through its lives, and the connections to it."""

    def __init__(self, world: Simulation, history: History, disk: Disk, delay: Callable[[], float]) -> None:
        self.world = world
        self.history = history
        self._disk = disk
        self._delay = delay
        self._waiting: set[asyncio.Task[object]] = set()  # tasks that wait for the server
        self._cut: set[asyncio.Task[object]] = set()
        self.up = asyncio.Event()
        self.changing = asyncio.Lock()  # held from a crash to the next start
        self._died = asyncio.Event()
        self.lives = 0
        self.wrap: Callable[[FaultyLog], Log] = lambda log: log  # for deliberately broken stores

    async def start(self) -> None:
        self.lives += 1
        self._died.clear()
        self.log = FaultyLog(self._disk.open(), self._delay, self.world, self.history.commits)
        self.log.on_crash = self._died.set
        self.server = Server(self.world, self.wrap(self.log))
        await self.server.start(bootstrapped=True)
        self.up.set()

    async def died(self) -> None:
        await self._died.wait()

    async def crash(self, down: float = 0.0) -> None:
        """kill -9, and a new process."""
        async with self.changing:
            self.up.clear()
            self.log.kill()
            await self._lose_connections()
            self.log.bury()
            await self.server.close()
            await self.world.clock.sleep(down)
            await self.start()

    async def restart(self) -> None:
        """A graceful stop under load, and a new process."""
        async with self.changing:
            self.up.clear()
            await self.server.close()
            await self._lose_connections()
            await self.start()

    async def _lose_connections(self) -> None:
        self.cut_connections()
        while self._cut:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0)
        self.history.end_unknown()

    def cut_connections(self, chosen: Callable[[], bool] = lambda: True) -> None:
        for task in self._waiting:
            if chosen():
                self._cut.add(task)
                task.cancel()

    # Api

    async def call(self, method: str, path: str, query: str = "", body: bytes = b"") -> tuple[int, bytes]:
        if not self.up.is_set():
            raise Lost
        task = asyncio.current_task()
        assert task is not None
        self._waiting.add(task)
        try:
            answer = await self.server.handle(_request(method, path, query, body))
        except asyncio.CancelledError:
            self._lost(task)
            raise
        finally:
            self._waiting.discard(task)
        return answer.status, answer.body  # type: ignore[union-attr]

    async def stream(self, path: str, query: str, answered: Callable[[int], None]) -> AsyncIterator[bytes]:
        if not self.up.is_set():
            raise Lost
        task = asyncio.current_task()
        assert task is not None
        chunks = None
        try:
            self._waiting.add(task)
            answer = await self.server.handle(_request("GET", path, query, b""))
            answered(answer.status)
            if not isinstance(answer, Stream):
                return
            chunks = answer.chunks
            while True:
                self._waiting.add(task)
                try:
                    chunk = await anext(chunks)
                except StopAsyncIteration:
                    return
                self._waiting.discard(task)
                yield chunk
        except asyncio.CancelledError:
            self._lost(task)
            raise
        finally:
            self._waiting.discard(task)
            if chunks is not None:
                await chunks.aclose()  # type: ignore[attr-defined]

    def _lost(self, task: asyncio.Task[object]) -> None:
        if task in self._cut:
            self._cut.discard(task)
            task.uncancel()
            raise Lost from None

    async def available(self) -> None:
        await self.up.wait()

    def state(self) -> tuple[int, int] | None:
        return self.server.index.compacted, self.server.index.version


class Run:
    """A seed decides everything: the store, the fault, the operations, the order of tasks."""

    def __init__(self, seed: int, *, store: str = "", fault: str = "", operations: int = OPERATIONS) -> None:
        self.seed = seed
        rng = Rng(f"run {seed}")
        drawn = rng.choice(["memory", "sqlite"]), rng.choice(sorted(faults.FAULTS))  # also if they are not used
        self.store, self.fault = store or drawn[0], fault or drawn[1]
        self.options = (f" --store {store}" if store else "") + (f" --fault {fault}" if fault else "")
        self.operations = operations
        self.history = History()
        self.history.is_exact = True
        self.rng = rng
        self.world = Simulation(f"run {seed}", interleave=True, keep=1)
        self.prepare: Callable[[Machine], None] = lambda machine: None

    def __str__(self) -> str:
        return f"seed {self.seed} store={self.store} fault={self.fault}"

    def run(self) -> Run:
        """Raise a Violation with a note that has the seed."""
        logger = logging.getLogger("ostinato")
        level, logger.level = logger.level, logging.CRITICAL
        try:
            try:
                self._run()
            except TimeoutError:
                check(self.history)  # why the server hangs, if the history shows it
                raise
            check(self.history)
        except Violation as violation:
            violation.add_note(f"replay: python -m tests.faults.simulated.run --seed {self.seed}{self.options}")
            raise
        finally:
            logger.setLevel(level)
        return self

    def _run(self) -> None:
        if self.store == "memory":
            self.world.run(self._main(MemoryDisk(bootstrapped())))
            return
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
            disk = SQLiteDisk(Path(place) / "disk", self.world, bootstrapped())
            try:
                self.world.run(self._main(disk))
            finally:
                disk.close()

    async def _main(self, disk: Disk) -> None:
        world, rng = self.world, self.rng
        delays = rng.fork("disk")
        machine = self.machine = Machine(world, self.history, disk, lambda: delays.uniform(0.0005, 0.006))
        self.prepare(machine)
        await machine.start()
        self.history.commits.clear()
        shared = self.shared = Shared(self.history)
        shared.newest = machine.server.index.version

        async def settle(trouble: asyncio.Task[None]) -> None:
            async with machine.changing:
                await ended([trouble])
            machine.log.failing = lambda: None

        pace = Pace(world.clock.sleep, world.clock.monotonic, world.clock.timeout)
        fault = faults.FAULTS[self.fault]
        session = Session([machine], shared, rng, pace)
        await session.run(self.operations, lambda: fault(machine, rng.fork("fault")), settle)
        self._check_index(machine)
        await machine.server.close()

    def _check_index(self, machine: Machine) -> None:
        """C1: what the index has is what the log has."""
        collection = machine.server.index.collections[COLLECTION]
        index = {key: entry.version for key, entry in collection.entries.items() if key in self.shared.keys}
        state: dict[str, int] = {}
        for version, (key, value) in sorted(self.history.commits.items()):
            state.pop(key, None)
            if value and key in self.shared.keys:
                state[key] = version
        if index != state:
            key = next(key for key in {**index, **state} if index.get(key) != state.get(key))
            raise Violation("C1", key, f"the index has {index.get(key)}, the log {state.get(key)}")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run simulated histories and check them.")
    parser.add_argument("--seed", type=int, help="replay one run")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--store", default="", choices=["", "memory", "sqlite"])
    parser.add_argument("--fault", default="", choices=["", *faults.FAULTS])
    given = parser.parse_args()
    seeds = [given.seed] if given.seed is not None else range(given.first, given.first + given.runs)
    outcomes: Counter[str] = Counter()
    violations = 0
    for seed in seeds:
        run = Run(seed, store=given.store, fault=given.fault)
        try:
            run.run()
        except Violation as violation:
            violations += 1
            print(f"{run}: {violation}")
        outcomes.update(f"{each.kind} {each.outcome}" for each in run.history.operations)
        if given.seed is not None:
            unknown = sum(each.outcome == UNKNOWN for each in run.history.operations)
            frames = sum(len(stream.frames) for stream in run.history.streams)
            print(f"{run}: {len(run.history.operations)} operations, {unknown} unknown, {frames} events", end="; ")
            print(f"trace {run.world.trace.digest()[:16]}")
    print(
        f"{len(list(seeds))} runs, {violations} violations; "
        + ", ".join(f"{k} {n}" for k, n in sorted(outcomes.items()))
    )
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
