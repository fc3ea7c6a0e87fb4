"""`make soak`: many faults and many acknowledged writes on real processes, and all checks of every history.

python -m tests.faults.real.soak                              # 500 kills, 1e6 acknowledged writes, 100 faults on etcd
python -m tests.faults.real.soak --kills 20 --writes 20000 --etcd-faults 5
python -m tests.faults.real.soak --only sqlite --seed 1000    # other seeds

Prints operations, faults, seeds and violations; the exit status is 1 if there is a violation.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Protocol

from tests.faults.disk.journal import Layer, can_compile
from tests.faults.history.records import History
from tests.faults.history.violation import Violation
from tests.faults.real import etcd_run, sqlite_run
from tests.faults.real.filled_store import fill
from tests.faults.real.networks import can_partition
from tests.faults.real.server_process import ServerProcess
from tests.faults.workload.clients import Mix

_HOSTILE_EVERY = 10  # rounds with few keys and many conflicts
_LONG_STOPS = 3  # rounds in which a server is frozen for `--stopped` seconds; the others are shorter
_SHORT_STOP = 1.5
_ACKNOWLEDGED_SHARE = 0.8  # of the operations of a productive round
_LARGE_ROUNDS = 3  # with many objects
_NOT_KILLS = ("none", "stop", "terminate", "full-disk", "read-only-disk", "failing-sync")


class Round(Protocol):
    seed: int
    fault: str
    history: History

    @property
    def acknowledged(self) -> int: ...
    async def run(self, operations: int) -> object: ...
    async def clean(self) -> None: ...


class Tally:
    """What a soak on one store has done."""

    def __init__(self, store: str, minutes: float) -> None:
        """`minutes`: after which no round is begun."""
        self._store = store
        self._began = time.monotonic()
        self._minutes = minutes
        self._seeds: list[int] = []
        self._faults: Counter[str] = Counter()
        self._operations = 0
        self._events = 0
        self.kills = 0
        self.acknowledged = 0
        self.violations = 0

    @property
    def has_time(self) -> bool:
        return time.monotonic() < self._began + 60 * self._minutes

    async def play(self, one: Round, operations: int, kills: int = 1) -> None:
        """Run one round, and count it."""
        try:
            await one.run(operations)
        except Violation as violation:
            self.violations += 1
            print(f"VIOLATION {self._store} seed {one.seed} fault={one.fault}: {violation}", flush=True)
            for note in violation.__notes__:
                print(f"  {note}", flush=True)
        await one.clean()
        self._seeds.append(one.seed)
        self._faults[one.fault] += 1
        self._operations += len(one.history.operations)
        self._events += sum(len(stream.frames) for stream in one.history.streams)
        self.acknowledged += one.acknowledged
        self.kills += kills
        if len(self._seeds) % 10 == 0:
            print(self, flush=True)

    def __str__(self) -> str:
        seeds = f"seeds {self._seeds[0]} to {self._seeds[-1]}" if self._seeds else "no seeds"
        faults = ", ".join(f"{name} {count}" for name, count in sorted(self._faults.items()))
        return (
            f"{self._store}: {len(self._seeds)} rounds ({seeds}), {self._operations} operations, "
            f"{self.acknowledged} acknowledged writes, {self._events} watch events, {self.kills} kills or faults, "
            f"{self.violations} violations, {time.monotonic() - self._began:.0f} s; {faults}"
        )


async def on_sqlite(given: argparse.Namespace, place: Path) -> Tally:
    tally = Tally("sqlite", given.minutes)
    kills, writes, seed = given.kills, given.writes, given.seed
    layer = sqlite_run.file_layer(place) if can_compile() else None
    operations = int(writes / max(1, kills) / _ACKNOWLEDGED_SHARE)
    async with sqlite_run.server_on_sqlite(place, layer=layer) as server:
        while (tally.kills < kills or tally.acknowledged < writes) and tally.has_time:
            is_hostile = seed % _HOSTILE_EVERY == 0
            one = sqlite_run.Round(seed, server, "", Mix.HOSTILE if is_hostile else Mix.PRODUCTIVE, layer)
            await tally.play(one, 300 if is_hostile else operations, one.fault not in _NOT_KILLS)
            seed += 1
        if given.objects:
            await server.kill()
            await fill(_store(server, layer), given.objects)
            await server.start()
            for _ in range(_LARGE_ROUNDS):
                await tally.play(sqlite_run.Round(seed, server, "kill", layer=layer), 300)
                seed += 1
    return tally


def _store(server: ServerProcess, layer: Layer | None) -> Path:
    return (server.state if layer is None else layer.root) / "store.db"


async def on_etcd(given: argparse.Namespace, place: Path) -> Tally:
    tally = Tally("etcd", given.minutes)
    long_stops, seed = 0, given.seed
    async with etcd_run.servers_on_etcd(place, partitions=can_partition()) as patient:
        while tally.kills < given.etcd_faults and tally.has_time:
            one = etcd_run.Round(seed, patient)
            is_long = one.fault.startswith("server-stop") and long_stops < _LONG_STOPS
            long_stops += is_long
            patient.stopped = given.stopped if is_long else _SHORT_STOP
            await tally.play(one, 600, one.fault != "none")
            seed += 1
    return tally


async def soak(given: argparse.Namespace) -> int:
    tallies = []
    for store in ("sqlite", "etcd"):
        if given.only in ("", store):
            with tempfile.TemporaryDirectory() as place:
                run = on_sqlite if store == "sqlite" else on_etcd
                tallies.append(await run(given, Path(place)))
    print("\n".join(map(str, tallies)))
    return sum(tally.violations for tally in tallies)


def main() -> int:
    parser = argparse.ArgumentParser(description="Soak server processes with faults, and check every history.")
    parser.add_argument("--kills", type=int, default=500, help="of the server on SQLite (default: %(default)s)")
    parser.add_argument("--writes", type=int, default=1_000_000, help="acknowledged, on SQLite (default: %(default)s)")
    parser.add_argument(
        "--objects", type=int, default=100_000, help="in the store at the last kills on SQLite (default: %(default)s)"
    )
    parser.add_argument("--etcd-faults", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument(
        "--stopped", type=float, default=60.0, help="seconds for which a server is frozen (default: %(default)s)"
    )
    parser.add_argument("--minutes", type=float, default=math.inf, help="of each store, at most (default: no limit)")
    parser.add_argument("--seed", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--only", default="", choices=["", "sqlite", "etcd"], help="one store alone")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # processes and networks are removed then
    return 1 if asyncio.run(soak(given)) else 0


if __name__ == "__main__":
    sys.exit(main())
