"""Power failures of a store: at every moment, whichever of the un-synced pages reach the disk.

A writer's system calls are recorded once (`disk.c`). Each prefix of them is a moment; what is not synced by then is
kept or lost at random. Every acknowledged batch must be there, and each batch wholly or not at all.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from ostinato.server.store.records import UnusableStore
from ostinato.world import World
from tests.faults.damaged_store import objects_of
from tests.faults.disk import writer
from tests.faults.disk.journal import Layer, can_compile, write

_ROOT = Path(__file__).parents[3]
BATCHES = 16
pytestmark = pytest.mark.skipif(not can_compile(), reason="no C compiler")


@pytest.fixture
def world() -> World:
    return World.real(workers=1)


def _recorded(tmp_path: Path, seed: int) -> Layer:
    """A writer that ran to its end below a recording layer."""
    root = tmp_path / "disk"
    root.mkdir()
    layer = Layer(root, tmp_path / "layer")
    layer.begin()
    environment = {**os.environ, "PYTHONPATH": f"{_ROOT}:{_ROOT / 'src'}", **layer.environment}
    command = [sys.executable, "-m", "tests.faults.disk.writer", str(root / "store.db"), str(seed), str(BATCHES)]
    subprocess.run(command, check=True, env=environment, timeout=120)
    return layer


def _some(rng: random.Random) -> Callable[[], bool]:
    share = rng.choice([0.1, 0.5, 0.9])
    return lambda: rng.random() < share


@pytest.mark.parametrize("seed", range(int(os.environ.get("OSTINATO_SEEDS", "1"))))
def test_a_power_failure_at_any_moment_loses_nothing_acknowledged(tmp_path: Path, world: World, seed: int) -> None:
    layer = _recorded(tmp_path, seed)
    print(f"seed {seed}")
    expected = writer.states(seed, BATCHES)
    rng = random.Random(seed)
    disk, acknowledged, lost = layer.disk(), 0, 0
    seen = set()
    memory = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    for moment, record in enumerate(layer.records()):
        disk.take(record)
        if record.path == "acknowledged" and record.type == "w":
            acknowledged = int(record.data)
        for name, keeps in (("none", lambda: False), ("some", _some(rng))):
            here = memory / f"{moment}-{name}"
            write(here, disk.left(keeps))
            lost += disk.lost
            try:
                found = objects_of(here / "store.db", world)
            except UnusableStore as error:
                pytest.fail(f"seed {seed}, moment {moment}, {name} kept: {error}")
            finally:
                _remove(here)
            allowed = expected[acknowledged : acknowledged + 2]
            assert found in allowed, f"seed {seed}, moment {moment}, {name} kept: not the state of batch {acknowledged}"
            seen.add((acknowledged, allowed.index(found)))
    memory.rmdir()
    assert acknowledged == BATCHES
    assert lost > 100
    assert any(late for _, late in seen), "no batch was durable before it was acknowledged"


def test_a_disk_that_ignores_syncs_is_noticed(tmp_path: Path, world: World) -> None:
    """The model loses acknowledged batches if a sync does nothing: so the test above can fail."""
    layer = _recorded(tmp_path, 0)
    records = layer.records()
    last = max(number for number, record in enumerate(records) if record.path == "acknowledged")
    disk = layer.disk()
    disk.replay(each for each in records[: last + 1] if (each.type, each.path) != ("s", "store.db-wal"))
    here = tmp_path / "left"
    write(here, disk.left(lambda: False))
    try:
        found = objects_of(here / "store.db", world)
    except UnusableStore:
        return
    assert found != writer.states(0, BATCHES)[BATCHES]


def _remove(here: Path) -> None:
    for file in here.iterdir():
        file.unlink()
    here.rmdir()
