"""R1: after a restore, resourceVersions do not go back, and whoever has one from before is told that it is too old."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import Log, Write
from ostinato.server.store.sqlite import snapshot
from ostinato.world import Rng, Simulation
from tests.faults.history.records import OK, WRITES, History
from tests.faults.history.truth import Truth
from tests.faults.history.versions import check_versions
from tests.faults.history.violation import Violation
from tests.faults.simulated.disk import Image
from tests.faults.simulated.run import Machine, bootstrapped
from tests.faults.workload.api import decode_event, path_of
from tests.faults.workload.clients import Shared
from tests.faults.workload.session import Pace, Session


class RestoredDisk:
    """A store that is replaced by its snapshot at each start but the first."""

    def __init__(self, place: Path, world: Simulation, image: Image) -> None:
        self._path = place / "store.db"
        self._file = place / "snapshot"
        self._world = world
        self._image: Image | None = image  # of the first start
        self._log: SQLiteLog | None = None

    def open(self) -> Log:
        if self._image is not None:
            made = SQLiteLog(self._path, self._world)
            made.load()
            writes = [Write(c, k, v, data) for (c, k), (v, data) in self._image.objects.items()]
            made._append(sorted(writes, key=lambda write: write.version))
            made.close()
            self._image = None
        else:
            self.close()
            snapshot.restore(self._file, self._path, self._world.ids)
        self._log = SQLiteLog(self._path, self._world)
        return self._log

    def save(self) -> None:
        snapshot.save(self._path, self._file, self._world.ids)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None


def _restored(place: Path, seed: int) -> History:
    """A history with a restore in its middle. Checks that resourceVersions from before are refused."""
    world, history = Simulation(f"restore {seed}", interleave=True, keep=1), History()
    disk = RestoredDisk(place, world, bootstrapped())
    rng = Rng(f"restore {seed}")

    async def main() -> None:
        delays = rng.fork("disk")
        machine = Machine(world, history, disk, lambda: delays.uniform(0.0005, 0.006))
        await machine.start()
        shared = Shared(history)
        pace = Pace(world.clock.sleep, world.clock.monotonic, world.clock.timeout)

        async def save() -> None:
            await world.clock.sleep(rng.uniform(0.2, 0.6))
            disk.save()

        async def nothing() -> None:
            pass

        async def settle(trouble: asyncio.Task[None]) -> None:
            await trouble

        await Session([machine], shared, rng.fork("before"), pace).run(150, save, settle)
        before = [each.version for each in history.operations if each.outcome == OK and each.kind in WRITES]
        await machine.restart()
        history.restores.append(history.tick())
        for version in {max(before), max(before) - 1, min(filter(None, before))}:
            await _expect_too_old(machine, version)
        shared.seen.clear()
        await Session([machine], shared, rng.fork("after"), pace).run(100, nothing, settle)
        await machine.server.close()

    try:
        world.run(main())
    finally:
        disk.close()
    history.commits.clear()  # the log of the first part is not that of the second
    return history


async def _expect_too_old(machine: Machine, version: int) -> None:
    chunks = machine.stream(path_of(""), f"watch=1&resourceVersion={version}", lambda status: None)
    event = decode_event(await anext(chunks))
    assert (event.type, event.object.reason) == ("ERROR", "Expired")
    await chunks.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(3))
def test_resource_versions_do_not_go_back_after_a_restore(tmp_path: Path, seed: int) -> None:
    history = _restored(tmp_path, seed)
    check_versions(history)
    Truth(history)


def test_a_restore_that_reuses_resource_versions_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "next_version", lambda path, mark, version: version)
    monkeypatch.setattr("tests.faults.test_restores._expect_too_old", _nothing)
    history = _restored(tmp_path, 0)
    with pytest.raises(Violation, match="R1"):
        check_versions(history)


async def _nothing(machine: Machine, version: int) -> None:
    """The broken restore does not tell."""
