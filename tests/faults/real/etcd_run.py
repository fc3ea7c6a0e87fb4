"""Rounds of a workload against two server processes on an etcd of three members, each round with one fault.

A round's seed decides the operations, the fault and its moments; the order in which processes run is the machine's.

python -m tests.faults.real.etcd_run --seed 17 --rounds 1
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from ostinato.etcd import EtcdClient
from ostinato.world import Rng, World
from tests.etcd_cluster import EtcdCluster
from tests.faults.history.check import check
from tests.faults.history.records import OK, WRITES, History
from tests.faults.history.violation import Violation
from tests.faults.real.etcd_faults import FAULTS, PARTITIONS, Fault, Patient
from tests.faults.real.etcd_truth import EtcdTruth
from tests.faults.real.networks import can_partition, member_networks
from tests.faults.real.server_process import ServerProcess
from tests.faults.workload.api import NAMESPACES, Api
from tests.faults.workload.clients import Shared
from tests.faults.workload.session import Pace, Session, delete_all
from tests.faults.workload.watchers import SORTS, Sort

SERVERS = 2
_KEYS = ("ca.crt", "ca.key", "sa.key")


class Rotating:
    """The next server for each request and watch: what one has acknowledged the others must show."""

    def __init__(self, servers: Sequence[ServerProcess]) -> None:
        self._servers = servers
        self._turn = 0

    def _next(self) -> Api:
        self._turn += 1
        up = [each for each in self._servers if each.up.is_set()] or self._servers
        return up[self._turn % len(up)].api

    async def call(self, method: str, path: str, query: str = "", body: bytes = b"") -> tuple[int, bytes]:
        return await self._next().call(method, path, query, body)

    def stream(self, path: str, query: str, answered: Callable[[int], None]) -> AsyncIterator[bytes]:
        return self._next().stream(path, query, answered)

    async def available(self) -> None:
        await self._next().available()

    def state(self) -> tuple[int, int] | None:
        return None


class Round:
    """One fault under load, then all checks."""

    def __init__(self, seed: int, patient: Patient, fault: str = "") -> None:
        self.seed = seed
        self.patient = patient
        self.rng = Rng(f"etcd {seed}")
        self.faults: dict[str, Fault] = {**FAULTS, **(PARTITIONS if patient.networks else {})}
        drawn = self.rng.choice(sorted({**FAULTS, **PARTITIONS}))
        self.fault = fault or (drawn if drawn in self.faults else "leader-kill")
        self.history = History()
        self.shared = Shared(self.history, prefix=f"r{seed}-")

    def __str__(self) -> str:
        return f"seed {self.seed} fault={self.fault}"

    async def run(self, operations: int) -> Round:
        """Raise a Violation with a note that has the seed."""
        patient, history = self.patient, self.history
        truth = patient.truth = EtcdTruth(patient.client, history, self.shared.keys)
        await truth.start()
        self.shared.newest = truth.revision
        pause = max(0.02, patient.stopped / 75)  # a long fault is no reason for a long history
        pace = Pace(asyncio.sleep, time.monotonic, asyncio.timeout, pause)
        rotating = Rotating(patient.servers)
        fixed = [each.api for each in patient.servers]
        watchers: list[tuple[Sort, Api]] = [
            (sort, rotating if number % 2 == 0 else fixed[number // 2 % len(fixed)])
            for number, sort in enumerate(SORTS)
        ]
        session = Session([rotating, *fixed], self.shared, self.rng, pace)
        fault, rng = self.faults[self.fault], self.rng.fork("fault")

        async def disturb() -> None:
            await asyncio.sleep(rng.uniform(0.0, 0.4))
            await fault(patient, rng)
            await patient.healed()

        try:
            await session.run(operations, disturb, _settled, watchers=watchers, outlast=operations // 5)
            writes = (each for each in history.operations if each.kind in WRITES and each.outcome == OK)
            await truth.finish(max(each.version for each in writes))
            check(history)
        except Violation as violation:
            how = f"--seed {self.seed} --fault {self.fault} --operations {operations} --stopped {patient.stopped}"
            violation.add_note(f"replay: python -m tests.faults.real.etcd_run {how}")
            raise
        finally:
            await truth.close()
        return self

    async def clean(self) -> None:
        await delete_all(self.patient.servers[0].api, self.shared)

    @property
    def acknowledged(self) -> int:
        return self.history.acknowledged


async def _settled(trouble: asyncio.Task[None]) -> None:
    await trouble


@asynccontextmanager
async def servers_on_etcd(
    place: Path, *, partitions: bool, stopped: float = 1.5, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Patient]:
    """A cluster, two servers, and the namespaces of the workload."""
    with ExitStack() as stack:
        networks = stack.enter_context(member_networks(3)) if partitions else []
        cluster = stack.enter_context(EtcdCluster.start(place / "etcd", members=3, fsync=True, networks=networks))
        world = World.real()
        stack.callback(world.executor.close)
        client = EtcdClient(cluster.settings, world)
        servers = [
            ServerProcess(place / f"server-{number}", "--store", cluster.url, environment=environment)
            for number in range(SERVERS)
        ]
        try:
            for server in servers:
                if server is not servers[0]:
                    server.state.mkdir(mode=0o700)
                    for file in _KEYS:
                        shutil.copy(servers[0].state / file, server.state)
                await server.start()
            body = b'{"metadata":{"name":"%s"}}' % NAMESPACES[1].encode()
            status, data = await servers[0].api.call("POST", "/api/v1/namespaces", "", body)
            assert status == 201, data
            yield Patient(cluster, networks, servers, client, stopped)
        finally:
            for server in servers:
                await server.close()
            await client.close()


async def rounds(given: argparse.Namespace, seeds: Sequence[int], place: Path) -> int:
    violations = 0
    outcomes: Counter[str] = Counter()
    async with servers_on_etcd(place, partitions=can_partition(), stopped=given.stopped) as patient:
        for seed in seeds:
            began = time.monotonic()
            one = Round(seed, patient, given.fault)
            try:
                await one.run(given.operations)
            except Violation as violation:
                violations += 1
                print(f"{one}: {violation}")
            await one.clean()
            outcomes.update(f"{each.kind} {each.outcome}" for each in one.history.operations)
            exact = "" if one.history.is_exact else " (not exact)"
            print(f"{one}: {one.acknowledged} acknowledged writes, {time.monotonic() - began:.1f} s{exact}", flush=True)
    print(f"{len(seeds)} rounds, {violations} violations; {', '.join(f'{k} {n}' for k, n in sorted(outcomes.items()))}")
    return violations


def main() -> int:
    parser = argparse.ArgumentParser(description="Run rounds with faults against two server processes on etcd.")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--operations", type=int, default=400)
    parser.add_argument("--fault", default="", choices=["", *FAULTS, *PARTITIONS])
    parser.add_argument("--stopped", type=float, default=1.5, help="seconds for which a server is frozen")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # processes and networks are removed then
    with tempfile.TemporaryDirectory() as place:
        violations = asyncio.run(rounds(given, range(given.seed, given.seed + given.rounds), Path(place)))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
