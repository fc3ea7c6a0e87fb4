"""Rounds of a workload against one server process on SQLite, each with one fault and keys of its own.

A round's seed decides the operations, the fault and its moment. The order in which processes and threads run is the
machine's, so a seed repeats the scenario, not each step of it.

python -m tests.faults.real.sqlite_run --seed 17 --rounds 1
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from ostinato.world import Rng
from tests.faults.disk.journal import Layer, can_compile
from tests.faults.history.check import check
from tests.faults.history.records import History
from tests.faults.history.violation import Violation
from tests.faults.real.https import OneByteApi
from tests.faults.real.server_process import ServerProcess
from tests.faults.real.sqlite_faults import DISK_FAULTS, FAULTS, Fault, Victim
from tests.faults.workload.api import NAMESPACES, Api, decode_list, path_of
from tests.faults.workload.clients import Mix, Shared
from tests.faults.workload.session import Pace, Session, delete_all
from tests.faults.workload.watchers import SORTS, Sort

PRODUCTIVE_SORTS = (SORTS[0], SORTS[1], Sort("slow", pause=0.2, seconds=5))


class Round:
    """One fault under load, then all checks."""

    def __init__(
        self,
        seed: int,
        server: ServerProcess,
        fault: str = "",
        mix: Mix = Mix.HOSTILE,
        layer: Layer | None = None,
    ) -> None:
        self.seed = seed
        self.rng = Rng(f"real {seed}")
        self.faults: dict[str, Fault] = {**FAULTS, **(DISK_FAULTS if layer is not None else {})}
        drawn = self.rng.choice(sorted({**FAULTS, **DISK_FAULTS}))
        self.fault = fault or (drawn if drawn in self.faults else "kill")
        self.server = server
        self.mix = mix
        self.history = History()
        keys, padding = (8, 0) if mix is Mix.HOSTILE else (300, 200)
        self.shared = Shared(self.history, keys, padding, prefix=f"r{seed}-")
        self.victim = Victim(server, self.history, layer)

    def __str__(self) -> str:
        return f"seed {self.seed} fault={self.fault}"

    async def run(self, operations: int) -> Round:
        """Raise a Violation with a note that has the seed."""
        await self._read_newest()
        is_hostile, api = self.mix is Mix.HOSTILE, self.server.api
        pace = Pace(asyncio.sleep, time.monotonic, asyncio.timeout, 0.02 if is_hostile else 0.0)
        session = Session([api], self.shared, self.rng, pace, self.mix)
        fault, rng = self.faults[self.fault], self.rng.fork("fault")
        watchers: list[tuple[Sort, Api]] = [(sort, api) for sort in (SORTS if is_hostile else PRODUCTIVE_SORTS)]
        if self.seed % 4 == 0 and is_hostile:
            watchers.append((Sort("bytes", seconds=1), OneByteApi(self.server.address, self.server.up)))
        try:
            await session.run(
                operations,
                lambda: fault(self.victim, rng),
                _settled,
                clients=8 if is_hostile else 32,
                watchers=watchers,
                outlast=0,
            )
            check(self.history)
        except Violation as violation:
            how = f"--seed {self.seed} --fault {self.fault} --operations {operations}"
            how += "" if is_hostile else " --productive"
            violation.add_note(f"replay: python -m tests.faults.real.sqlite_run {how}")
            raise
        return self

    async def _read_newest(self) -> None:
        """Know the newest resourceVersion: what this round writes is later."""
        status, data = await self.server.api.call("GET", path_of(""), "limit=1")
        assert status == 200, data
        self.shared.newest = int(decode_list(data).metadata.resource_version)

    async def clean(self) -> None:
        """Delete the objects of the round."""
        await delete_all(self.server.api, self.shared)

    @property
    def acknowledged(self) -> int:
        return self.history.acknowledged


async def _settled(trouble: asyncio.Task[None]) -> None:
    await trouble


def file_layer(place: Path) -> Layer:
    """A layer below an empty directory."""
    (place / "disk").mkdir(mode=0o700)
    layer = Layer(place / "disk", place / "layer")
    layer.begin()
    return layer


@asynccontextmanager
async def server_on_sqlite(
    place: Path, *options: str, environment: Mapping[str, str] | None = None, layer: Layer | None = None
) -> AsyncIterator[ServerProcess]:
    """A server with the namespaces of the workload. `layer`: below its store."""
    if layer is not None:
        options = (*options, "--store", f"sqlite:{layer.root / 'store.db'}")
        environment = {**(environment or {}), **layer.environment}
    server = ServerProcess(place / "state", *options, environment=environment)
    try:
        await server.start()
        body = b'{"metadata":{"name":"%s"}}' % NAMESPACES[1].encode()
        status, data = await server.api.call("POST", "/api/v1/namespaces", "", body)
        assert status == 201, data
        yield server
    finally:
        await server.close()


async def rounds(given: argparse.Namespace, seeds: Sequence[int], place: Path) -> int:
    violations = 0
    outcomes: Counter[str] = Counter()
    layer = file_layer(place) if can_compile() else None
    async with server_on_sqlite(place, layer=layer) as server:
        for seed in seeds:
            began = time.monotonic()
            one = Round(seed, server, given.fault, Mix.PRODUCTIVE if given.productive else Mix.HOSTILE, layer)
            try:
                await one.run(given.operations)
            except Violation as violation:
                violations += 1
                print(f"{one}: {violation}")
            await one.clean()
            outcomes.update(f"{each.kind} {each.outcome}" for each in one.history.operations)
            print(f"{one}: {one.acknowledged} acknowledged writes, {time.monotonic() - began:.1f} s", flush=True)
    print(f"{len(seeds)} rounds, {violations} violations; {', '.join(f'{k} {n}' for k, n in sorted(outcomes.items()))}")
    return violations


def main() -> int:
    parser = argparse.ArgumentParser(description="Run rounds with faults against a server process on SQLite.")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--operations", type=int, default=300)
    parser.add_argument("--fault", default="", choices=["", *FAULTS, *DISK_FAULTS])
    parser.add_argument("--productive", action="store_true", help="more writes, fewer conflicts")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the server is ended then
    with tempfile.TemporaryDirectory() as place:
        violations = asyncio.run(rounds(given, range(given.seed, given.seed + given.rounds), Path(place)))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
