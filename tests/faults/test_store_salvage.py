"""`--accept-data-loss`: a damaged store starts with what can be read, and the damaged files are kept."""

from __future__ import annotations

import asyncio
import logging
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import UnusableStore, Write
from ostinato.server.store.sqlite.files import DamagedStore
from ostinato.server.store.sqlite.replace import VERSION_JUMP
from ostinato.world import World
from tests.faults.damaged_store import FILES, copy, data_of, expected, flip, killed, objects_of
from tests.unit.server.store.test_sqlite import OLD_FORMAT


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = World.real(workers=1)
    yield world
    world.executor.close()


@pytest.fixture
def path(tmp_path: Path, world: World) -> Path:
    return killed(tmp_path, world)


def salvaged(path: Path, world: World) -> dict[str, bytes]:
    """What a start that accepts data loss finds; the next start needs no such word, and can write."""
    damaged = {name: path.with_name(name).read_bytes() for name in FILES if path.with_name(name).exists()}
    found = objects_of(path, world, accept_data_loss=True)
    assert objects_of(path, world) == found
    kept = {name: path.with_name(name.replace("store.db", "store.db.damaged-1")) for name in damaged}
    assert {name: file.read_bytes() for name, file in kept.items() if file.exists()} == {
        name: data for name, data in damaged.items() if data
    } | {name: b"" for name, data in damaged.items() if not data and kept[name].exists()}
    with closing(SQLiteLog(path, world)) as log:
        version, _ = log.load()
        assert version >= 450 + VERSION_JUMP
        asyncio.run(log.append([Write("configmaps", "default/new", version + 1, b"new")]))
    assert objects_of(path, world) == found | {"default/new": b"new"}
    return found


def test_a_whole_store_is_left_as_it_is(path: Path, world: World) -> None:
    assert objects_of(path, world, accept_data_loss=True) == expected()
    assert not list(path.parent.glob("*damaged*"))


def test_transactions_behind_a_damaged_frame_are_not_lost(
    path: Path, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """A flipped bit in the stored checksum of a frame costs nothing: every row has its own."""
    flip(path.with_name("store.db-wal"), 32 + 4120 * 20 + 18, 1)
    assert salvaged(path, world) == expected()
    assert "damaged store rebuilt" in caplog.text
    assert "object lost" not in caplog.text


def test_a_damaged_row_is_lost_alone_and_named(tmp_path: Path, world: World, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a").mkdir()
    path = killed(tmp_path / "a", world, checkpointed=150)
    flip(path, path.read_bytes().index(data_of(77)) + 100, 0)
    assert salvaged(path, world) == {key: data for key, data in expected().items() if key != "default/77"}
    assert "object lost object='ConfigMap default/77 (resourceVersion 234)'" in caplog.text


def test_lost_objects_without_a_known_name_are_counted(
    path: Path, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        path.with_name("store.db-wal").unlink()
        assert salvaged(path, world) == {}
    assert "readable_up_to=0 acknowledged_up_to=450" in caplog.text


@pytest.mark.parametrize("database", [b"", None], ids=["empty", "missing"])
def test_a_write_ahead_log_without_its_database_is_read(path: Path, world: World, database: bytes | None) -> None:
    if database is None:
        path.unlink()
    else:
        path.write_bytes(database)
    assert salvaged(path, world) == expected()


@pytest.mark.parametrize("offset", [3, 23, 71, 62])
def test_a_damaged_header_of_the_database_costs_nothing(tmp_path: Path, world: World, offset: int) -> None:
    (tmp_path / "a").mkdir()
    path = killed(tmp_path / "a", world, checkpointed=150)
    path.with_name("store.db-wal").unlink()
    flip(path, offset, 1)
    with pytest.raises(UnusableStore) as refused:
        objects_of(path, world)
    if isinstance(refused.value, DamagedStore):
        assert salvaged(path, world) == expected()
    else:
        assert "is newer than this Ostinato reads" in str(refused.value)


def test_an_object_with_a_damaged_newest_state_is_recovered_in_an_older_one(
    tmp_path: Path, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a").mkdir()
    path = killed(tmp_path / "a", world, checkpointed=150)
    with closing(SQLiteLog(path, world)) as log:
        log.load()
        for version in (500, 501):
            asyncio.run(
                log.append([Write("configmaps", "default/7", version, b"new" * 50, 24 if version == 500 else 500)])
            )
            asyncio.run(log.append([Write("configmaps", f"default/more-{version}", version + 100, b"more")]))
        files = {name: path.with_name(name).read_bytes() for name in FILES}
    for name, data in files.items():
        path.with_name(name).write_bytes(data)
    log_file = path.with_name("store.db-wal")
    data = log_file.read_bytes()
    at = 0
    while (at := data.find(b"new" * 50, at)) >= 0:
        flip(log_file, at, 0)
        at += 1
    found = objects_of(path, world, accept_data_loss=True)
    assert found == expected() | {"default/more-500": b"more", "default/more-501": b"more"}
    assert (
        "object recovered at an older resourceVersion object='ConfigMap default/7 (resourceVersion 501)'" in caplog.text
    )


def test_a_lost_mark_is_made_again(path: Path, world: World) -> None:
    path.with_name("store.db-mark").unlink()
    assert objects_of(path, world, accept_data_loss=True) == expected()
    assert objects_of(path, world) == expected()


def test_whatever_is_damaged_a_start_that_accepts_it_has_only_true_objects(tmp_path: Path, world: World) -> None:
    (tmp_path / "a").mkdir()
    original = killed(tmp_path / "a", world, checkpointed=100)
    rng = random.Random(4)
    least = 150
    for number in range(60):
        directory = tmp_path / str(number)
        directory.mkdir()
        copy(original.parent, directory)
        victim = directory / ("store.db" if number % 2 else "store.db-wal")
        for _ in range(1 + number % 3):
            flip(victim, rng.randrange(victim.stat().st_size), rng.randrange(8))
        found = objects_of(directory / "store.db", world, accept_data_loss=True)
        assert all(data in (expected()[key], b"old") for key, data in found.items())
        least = min(least, len(found))
        assert objects_of(directory / "store.db", world) == found
    assert least > 0


def test_a_damaged_store_of_the_first_format_is_refused_and_can_be_salvaged(tmp_path: Path, world: World) -> None:
    """It has no checksums: what is JSON is taken for what was written."""
    (tmp_path / "a").mkdir()
    away, path = tmp_path / "away.db", tmp_path / "a" / "store.db"
    with closing(sqlite3.connect(away, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(OLD_FORMAT)
        database.execute("DELETE FROM object WHERE collection != ''")
        for number in range(20):
            row = ("configmaps", f"default/{number}", number + 8, b'{"metadata":{"name":"%d"}}' % number)
            database.execute("INSERT INTO object VALUES (?, ?, ?, ?)", row)
        database.execute("UPDATE object SET version = 30 WHERE key = ''")
        path.write_bytes(away.read_bytes())
        log = path.with_name("store.db-wal")
        log.write_bytes(away.with_name("away.db-wal").read_bytes())
    written = log.read_bytes()
    flip(log, written.index(b'{"metadata":{"name":"3"}}'), 0)
    with pytest.raises(DamagedStore, match=r"bad frame in the middle of store\.db-wal"):
        objects_of(path, world)
    flip(log, written.rindex(b'{"metadata":{"name":"3"}}'), 0)
    assert len(objects_of(path, world, accept_data_loss=True)) == 19
