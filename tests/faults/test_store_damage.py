"""Damage to the files of the store: every acknowledged object is there, or the start is refused. Never silent loss."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import Write
from ostinato.server.store.sqlite.files import DamagedStore
from ostinato.server.store.sqlite.wal import is_damaged
from ostinato.world import World
from tests.faults.damaged_store import copy, data_of, expected, flip, killed, objects_of, refusal, write
from tests.unit.server.store.test_sqlite import SOURCE, WRITER

WAL_HEADER, FRAME_HEADER, PAGE = 32, 24, 4096
FRAME = FRAME_HEADER + PAGE
REMEDY = (
    "; restore a snapshot with `ostinato snapshot restore`, "
    "or start with --accept-data-loss to continue with its readable part"
)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = World.real(workers=1)
    yield world
    world.executor.close()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, world: World) -> Path:
    return killed(tmp_path_factory.mktemp("store"), world)


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    copy(original.parent, tmp_path)
    return tmp_path / "store.db"


def wal_of(path: Path) -> Path:
    return path.with_name("store.db-wal")


def mark_of(path: Path) -> Path:
    return path.with_name("store.db-mark")


def test_a_killed_server_leaves_everything_it_acknowledged(path: Path, world: World) -> None:
    assert wal_of(path).stat().st_size > 50 * FRAME
    assert refusal(path, world) is None


def test_a_flipped_bit_in_any_frame_of_the_write_ahead_log_is_detected(
    path: Path, original: Path, world: World
) -> None:
    rng = random.Random(1)
    regions = [(0, 4), (4, 4), (8, 8), (16, 8), (FRAME_HEADER, 100), (FRAME_HEADER + 100, PAGE - 100)]
    outcomes: Counter[bool] = Counter()
    for number, start in enumerate(range(WAL_HEADER, wal_of(original).stat().st_size, FRAME)):
        for region in (regions[number % 6], regions[(number + 3) % 6]):
            copy(original.parent, path.parent)
            flip(wal_of(path), start + region[0] + rng.randrange(region[1]), rng.randrange(8))
            outcomes[refusal(path, world) is None] += 1
    assert outcomes[False] > 50  # the frames behind the last checksum of a commit may not matter; most do


@pytest.mark.parametrize("offset", range(0, WAL_HEADER, 4))
def test_a_flipped_bit_in_the_header_of_the_write_ahead_log_is_detected(path: Path, world: World, offset: int) -> None:
    flip(wal_of(path), offset + 2, 3)
    assert refusal(path, world) is not None


def test_a_damaged_write_ahead_log_is_found_without_a_mark(path: Path, world: World) -> None:
    """After a power failure the mark may be behind: then the log itself tells."""
    frames = wal_of(path).stat().st_size // FRAME
    whole = wal_of(path).read_bytes()
    assert not is_damaged(whole)
    for number in range(frames // 2):
        damaged = bytearray(whole)
        damaged[WAL_HEADER + number * FRAME + FRAME_HEADER + 17 * number % PAGE] ^= 4
        assert is_damaged(bytes(damaged)), number


def test_a_missing_write_ahead_log_is_refused(path: Path, world: World) -> None:
    wal_of(path).unlink()
    assert refusal(path, world) == (
        f"the store {path} has lost writes: it ends at resourceVersion 0, "
        f"and writes up to 450 were acknowledged{REMEDY}"
    )


@pytest.mark.parametrize("part", [0, 1, 40, 300_000, -1, -FRAME, -5000])
def test_a_truncated_write_ahead_log_is_refused(path: Path, world: World, part: int) -> None:
    wal_of(path).write_bytes(wal_of(path).read_bytes()[:part])
    assert refusal(path, world) is not None


@pytest.mark.parametrize("wal", [True, False])
def test_an_empty_database_is_refused(path: Path, world: World, wal: bool) -> None:
    path.write_bytes(b"")
    if not wal:
        wal_of(path).unlink()
    assert refusal(path, world) == (
        f"the store {path} is empty, but writes up to resourceVersion 450 were acknowledged{REMEDY}"
    )


@pytest.mark.parametrize("wal", [True, False])
def test_a_missing_database_is_refused(path: Path, world: World, wal: bool) -> None:
    path.unlink()
    if not wal:
        wal_of(path).unlink()
    assert refusal(path, world) == (
        f"the store {path} is missing, but writes up to resourceVersion 450 were acknowledged{REMEDY}"
    )


def test_an_empty_database_with_a_write_ahead_log_is_refused_though_the_mark_is_gone(path: Path, world: World) -> None:
    path.write_bytes(b"")
    mark_of(path).unlink()
    message = refusal(path, world)
    assert message is not None
    assert "is empty, but its write-ahead log store.db-wal is not" in message


@pytest.mark.parametrize("damage", [lambda mark: b"", lambda mark: bytes(len(mark)), lambda mark: mark[:50]])
def test_a_lost_mark_is_refused(path: Path, world: World, damage: Callable[[bytes], bytes]) -> None:
    mark_of(path).write_bytes(damage(mark_of(path).read_bytes()))
    if mark_of(path).stat().st_size == 50:  # one slot is left, which may be the newest
        refusal(path, world)
        return
    message = refusal(path, world)
    assert message is not None
    assert "whether the store" in message


def test_one_flipped_bit_in_the_mark_never_loses_or_refuses_anything(path: Path, original: Path, world: World) -> None:
    for slot in (0, 4096):
        for offset in (0, 9, 30, 39, 41):
            copy(original.parent, path.parent)
            flip(mark_of(path), slot + offset, 2)
            assert refusal(path, world) is None


def test_an_older_copy_is_refused(tmp_path: Path, world: World) -> None:
    (tmp_path / "older").mkdir()
    older = killed(tmp_path / "older", world, objects=100)
    (tmp_path / "newer").mkdir()
    newer = killed(tmp_path / "newer", world)
    mark = mark_of(newer).read_bytes()
    copy(older.parent, newer.parent)
    mark_of(newer).write_bytes(mark)
    message = refusal(newer, world)
    assert message is not None
    assert "does not match store.db-mark, which belongs to another store" in message


def test_an_older_copy_of_the_same_store_is_refused(tmp_path: Path, world: World) -> None:
    older = killed(tmp_path, world, objects=100)
    (tmp_path / "kept").mkdir()
    copy(older.parent, tmp_path / "kept")
    with closing(SQLiteLog(older, world)) as log:
        log.load()
        write(log, 100, 150)
    mark = mark_of(older).read_bytes()
    copy(tmp_path / "kept", older.parent)
    mark_of(older).write_bytes(mark)
    assert refusal(older, world) == (
        f"the store {older} has lost writes: it ends at resourceVersion 300, "
        f"and writes up to 450 were acknowledged{REMEDY}"
    )


def test_an_older_database_under_a_newer_write_ahead_log_is_refused(tmp_path: Path, world: World) -> None:
    """The last resourceVersion is in the log, so only the summary shows that objects are missing."""
    (tmp_path / "a").mkdir()
    path = killed(tmp_path / "a", world, checkpointed=100)
    whole = path.read_bytes()
    for size in (PAGE, 8 * PAGE, len(whole) // 2 // PAGE * PAGE):
        path.write_bytes(whole[:size] + bytes(len(whole) - size))
        assert refusal(path, world) is not None


def test_a_flipped_bit_in_the_database_is_detected(tmp_path: Path, world: World) -> None:
    (tmp_path / "a").mkdir()
    original = killed(tmp_path / "a", world, checkpointed=150)
    (tmp_path / "b").mkdir()
    path = tmp_path / "b" / "store.db"
    rng = random.Random(2)
    outcomes: Counter[bool] = Counter()
    for start in range(0, original.stat().st_size, 256):
        copy(original.parent, path.parent)
        flip(path, start + rng.randrange(256), rng.randrange(8))
        outcomes[refusal(path, world) is None] += 1
    assert outcomes[False] > 20


def test_a_damaged_row_names_its_object(tmp_path: Path, world: World) -> None:
    path = killed(tmp_path, world, checkpointed=150)
    data = path.read_bytes()
    at = data.index(data_of(77))
    flip(path, at + 100, 0)
    assert refusal(path, world) == (
        f"ConfigMap default/77 (resourceVersion 234): damaged in the store {path}: wrong checksum{REMEDY}"
    )


def test_a_torn_tail_after_a_kill_starts(path: Path, original: Path, world: World) -> None:
    """What came after the acknowledged writes may be cut anywhere, or be noise, or have holes."""
    acknowledged = wal_of(original).stat().st_size
    log = SQLiteLog(path, world)
    log.load()
    log._mark.advance = lambda version: None  # type: ignore[method-assign]  # killed before it is acknowledged
    log._append([Write("configmaps", f"late/{number}", 1000 + number, os.urandom(3000)) for number in range(20)])
    whole = wal_of(path).read_bytes()
    mark = mark_of(original).read_bytes()
    database = path.read_bytes()
    log.close()
    assert len(whole) > acknowledged + 10 * FRAME
    rng = random.Random(3)
    for attempt in range(80):
        copy(original.parent, path.parent)
        path.write_bytes(database)
        mark_of(path).write_bytes(mark)
        torn = bytearray(whole)
        cut = rng.randrange(acknowledged, len(whole))
        match attempt % 4:
            case 0:
                del torn[cut:]
            case 1:
                torn[cut:] = bytes(len(torn) - cut)
            case 2:
                torn[cut:] = rng.randbytes(len(torn) - cut)
            case 3:  # one page of the transaction did not reach the disk, later ones did
                start = acknowledged + (cut - acknowledged) // FRAME * FRAME
                torn[start : start + FRAME] = bytes(FRAME)
        wal_of(path).write_bytes(torn)
        found = objects_of(path, world)
        assert {key: data for key, data in found.items() if not key.startswith("late/")} == expected()
        assert len(found) in (150, 170)


@pytest.mark.parametrize("after", [40, 300, 700])
def test_a_server_killed_under_load_starts_wherever_its_unacknowledged_tail_is_cut(
    tmp_path: Path, world: World, after: int
) -> None:
    """Every cut behind the acknowledged writes starts with all of them; every cut before is refused."""
    path = tmp_path / "store.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    assert writer.stdout is not None
    with writer.stdout:
        lines = [writer.stdout.readline() for _ in range(after)]
        writer.kill()
        lines += writer.stdout.read().splitlines(keepends=True)
    writer.wait()
    acknowledged = dict(line.decode().split() for line in lines if line.endswith(b"\n"))
    (tmp_path / "original").mkdir()
    copy(tmp_path, tmp_path / "original")
    whole = wal_of(path).read_bytes()
    rng = random.Random(after)
    frames = (len(whole) - WAL_HEADER) // FRAME
    cuts = {rng.randrange(len(whole)) for _ in range(30)}
    cuts |= {len(whole) - rng.randrange(1, 8 * FRAME) for _ in range(30) if frames > 8} | {len(whole)}
    started = []
    for cut in sorted(cuts):
        copy(tmp_path / "original", tmp_path)
        wal_of(path).write_bytes(whole[:cut])
        try:
            found = objects_of(path, world)
        except DamagedStore:
            assert not started, "a longer log is refused, and a shorter one is not"
            continue
        started.append(cut)
        for key, number in acknowledged.items():
            assert int(found[key].decode().partition(":")[2]) >= int(number)
    assert started


def test_frames_of_an_earlier_use_of_the_write_ahead_log_are_not_taken_for_damage(path: Path, world: World) -> None:
    """After a checkpoint the log is written from its beginning, and ends in the middle of what was there before."""
    data = bytearray(wal_of(path).read_bytes())
    frames = (len(data) - WAL_HEADER) // FRAME
    for number in range(frames // 2, frames):
        start = WAL_HEADER + number * FRAME
        salt, other = struct.unpack_from(">2I", data, start + 8)
        struct.pack_into(">2I", data, start + 8, salt - 1, other ^ 0xABCDEF)
    assert not is_damaged(bytes(data))


def test_a_damaged_store_is_a_kind_of_its_own(path: Path, world: World) -> None:
    wal_of(path).unlink()
    with pytest.raises(DamagedStore):
        objects_of(path, world)
