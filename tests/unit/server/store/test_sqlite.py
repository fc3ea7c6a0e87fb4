"""The SQLite log, and faults of its file."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ostinato.server.store.local import LocalIndex
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.server.store.records import Entry, StoreFailed, UnusableStore, Write
from ostinato.world import World

SOURCE = Path(__file__).parents[4] / "src"


@pytest.fixture
def world() -> Iterator[World]:
    world = World.real(workers=1)
    yield world
    world.executor.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def objects(path: Path, world: World) -> tuple[int, dict[str, bytes]]:
    """The objects in the file."""
    with closing(SQLiteLog(path, world)) as log:
        version, rows = log.load()
        return version, {f"{collection}/{key}": data for collection, key, _, data in rows}


def append(path: Path, world: World, *batches: list[Write]) -> None:
    with closing(SQLiteLog(path, world)) as log:
        for batch in batches:
            asyncio.run(log.append(batch))


def test_writes_survive_reopening_the_file(path: Path, world: World) -> None:
    append(
        path,
        world,
        [Write("things", "a", 2, b"1"), Write("things", "b", 3, b"2")],
        [Write("things", "a", 4, b"3", 2), Write("others", "a", 5, b"4"), Write("things", "b", 6, None, 3)],
    )
    assert objects(path, world) == (6, {"things/a": b"3", "others/a": b"4"})


def test_a_batch_stores_the_last_state_of_each_object(path: Path, world: World) -> None:
    append(path, world, [Write("things", key, 2 + n, b"1") for n, key in enumerate("abc")])
    batch = [
        Write("things", "a", 5, None, 2),  # deleted and created again
        Write("things", "a", 6, b"2"),
        Write("things", "b", 7, b"2", 3),  # updated and deleted
        Write("things", "b", 8, None, 7),
        Write("others", "c", 9, b"2"),  # created and deleted
        Write("others", "c", 10, None, 9),
    ]
    append(path, world, batch)
    assert objects(path, world) == (10, {"things/a": b"2", "things/c": b"1"})


@pytest.mark.parametrize(("size", "statements"), [(31, 1), (100, 6)])  # 100: begin, four, commit
def test_a_batch_takes_few_statements(path: Path, world: World, size: int, statements: int) -> None:
    created = [Write(["things", "others"][n % 2], str(n), 2 + n, b"1") for n in range(size)]
    mixed = [
        Write(each.collection, each.key, 200 + n, None if n % 3 else b"2", each.version)
        for n, each in enumerate(created)
    ]
    with closing(SQLiteLog(path, world)) as log:
        traced: list[str] = []
        log._database.set_trace_callback(traced.append)
        for batch in (created, mixed):
            traced.clear()
            asyncio.run(log.append(batch))
            assert len(set(traced)) == statements, traced  # triggers repeat the statement
        log._database.set_trace_callback(None)
    _, found = objects(path, world)
    assert found == {f"{each.collection}/{each.key}": b"2" for each in mixed if each.data is not None}


def test_the_file_and_its_side_files_are_for_their_owner_alone(path: Path, world: World) -> None:
    path.touch(mode=0o644)
    with closing(SQLiteLog(path, world)) as log:
        asyncio.run(log.append([Write("things", "a", 2, b"1")]))
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_every_commit_is_synced(path: Path, world: World) -> None:
    with closing(SQLiteLog(path, world)) as log:
        assert log._database.execute("PRAGMA synchronous").fetchone() == (2,)
        assert log._database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_newer_format_is_refused_and_left_alone(path: Path, world: World) -> None:
    append(path, world, [Write("things", "a", 2, b"1")])
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 3")
    before = path.read_bytes()
    with pytest.raises(UnusableStore, match=r"format 3 is newer than this Ostinato reads \(2\); use the version that"):
        SQLiteLog(path, world)
    assert path.read_bytes() == before


OLD_FORMAT = """BEGIN;
CREATE TABLE object (collection TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, data BLOB NOT NULL,
                     PRIMARY KEY (collection, key));
INSERT INTO object VALUES ('', '', 7, x'');
INSERT INTO object VALUES ('things', 'a', 3, x'31');
INSERT INTO object VALUES ('things', 'b', 7, x'32');
PRAGMA application_id = 0x4F535449;
PRAGMA user_version = 1;
COMMIT;"""


def old_store(path: Path, *, clean: bool) -> None:
    """A store of format 1, after a clean stop, or with everything in the write-ahead log."""
    away = path.with_name("away.db")
    with closing(sqlite3.connect(away, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(OLD_FORMAT)
        if not clean:
            path.write_bytes(away.read_bytes())
            path.with_name("store.db-wal").write_bytes(away.with_name("away.db-wal").read_bytes())
    if clean:
        path.write_bytes(away.read_bytes())


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_a_store_of_the_first_format_is_upgraded_when_it_is_opened(path: Path, world: World, clean: bool) -> None:
    old_store(path, clean=clean)
    assert objects(path, world) == (7, {"things/a": b"1", "things/b": b"2"})
    append(path, world, [Write("things", "a", 8, b"3", 3)])
    assert objects(path, world) == (8, {"things/a": b"3", "things/b": b"2"})
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (2,)


def test_an_upgrade_that_did_not_end_is_made_again(path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    old_store(path, clean=True)

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr("ostinato.server.store.log_sqlite.upgrade", fail)
        with pytest.raises(UnusableStore, match="disk I/O error"):
            SQLiteLog(path, world)
    assert objects(path, world) == (7, {"things/a": b"1", "things/b": b"2"})


def test_a_store_that_was_not_finished_is_made_again(path: Path, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    with monkeypatch.context() as patched:
        patched.setattr("ostinato.server.store.log_sqlite.create", fail)
        with pytest.raises(UnusableStore, match="disk I/O error"):
            SQLiteLog(path, world)
    assert path.with_name("store.db-mark").exists()
    assert objects(path, world) == (0, {})


def test_a_write_succeeds_if_the_mark_cannot_be_written(
    path: Path, world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with closing(SQLiteLog(path, world)) as log:
        monkeypatch.setattr(log._mark, "advance", fail)
        asyncio.run(log.append([Write("things", "a", 2, b"1")]))
    assert "store mark not written" in caplog.text
    assert objects(path, world) == (2, {"things/a": b"1"})


def test_a_database_of_another_program_is_refused_and_left_alone(path: Path, world: World) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE mine (x)")
        database.commit()
    path.chmod(0o644)
    with pytest.raises(UnusableStore, match="is a database of another program"):
        SQLiteLog(path, world)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644


def test_a_file_that_is_not_a_database_is_rejected(path: Path, world: World) -> None:
    path.write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(UnusableStore, match="file is not a database"):
        SQLiteLog(path, world)


def test_a_missing_directory_is_reported(tmp_path: Path, world: World) -> None:
    with pytest.raises(UnusableStore, match=r"cannot open the store .*/nowhere/store.db: No such file or directory"):
        SQLiteLog(tmp_path / "nowhere" / "store.db", world)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_directory_is_reported(tmp_path: Path, world: World) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(UnusableStore, match="Permission denied"):
            SQLiteLog(tmp_path / "store.db", world)
    finally:
        tmp_path.chmod(0o700)


def test_one_process_at_a_time_uses_the_file(path: Path, world: World) -> None:
    with closing(SQLiteLog(path, world)), pytest.raises(UnusableStore, match="in use by another process"):
        SQLiteLog(path, world)
    objects(path, world)


@pytest.mark.parametrize("before", [[], [Write("things", "z", 1, None)]], ids=["one statement", "several"])
def test_a_batch_that_fails_in_the_middle_leaves_nothing(path: Path, world: World, before: list[Write]) -> None:
    broken = Write("things", None, 3, b"2")  # type: ignore[arg-type]
    with closing(SQLiteLog(path, world)) as log:
        with pytest.raises(sqlite3.Error):
            asyncio.run(log.append([*before, Write("things", "a", 2, b"1"), broken]))
        asyncio.run(log.append([Write("things", "c", 4, b"3")]))
    assert objects(path, world) == (4, {"things/c": b"3"})


def test_a_full_disk_refuses_writes_keeps_serving_reads_and_mends_itself(path: Path, world: World) -> None:
    async def main() -> None:
        log = SQLiteLog(path, world)
        index = LocalIndex(log, world.clock)
        things = index.collection("things", lambda data: ({}, {}, ""))

        async def put(key: str, data: bytes) -> Entry:
            return await index.put(things, Entry(key, 0, b"", {}, {}, ""), things.newest(key), lambda version: data)

        await put("a", b"1")
        (pages,) = log._database.execute("PRAGMA page_count").fetchone()
        log._database.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreFailed, match="the store cannot write: database or disk is full"):
            await put("b", b"x" * 100_000)
        assert [entry.data for entry in things.select()] == [b"1"]
        assert index.failure == "database or disk is full"
        log._database.execute("PRAGMA max_page_count = 1000000")
        await put("b", b"2")
        assert index.failure is None
        await index.close()

    asyncio.run(main())
    assert objects(path, world)[1] == {"things/a": b"1", "things/b": b"2"}


WRITER = """
import asyncio, sys
from pathlib import Path
from ostinato.server.store.local import LocalIndex
from ostinato.server.store.records import Entry
from ostinato.server.store.log_sqlite import SQLiteLog
from ostinato.world import World

async def main():
    world = World.real(workers=1)
    index = LocalIndex(SQLiteLog(Path(sys.argv[1]), world), world.clock)
    things = index.collection("things", lambda data: ({}, {}, ""))

    async def write(worker):
        for number in range(100_000):
            key = f"{worker}/{number % 50}"
            text = b"%d:%d" % (worker, number)
            await index.put(things, Entry(key, 0, b"", {}, {}, ""), things.newest(key), lambda version: text)
            sys.stdout.write(f"{key} {number}\\n")
            sys.stdout.flush()

    await asyncio.gather(*(write(worker) for worker in range(8)))

asyncio.run(main())
"""


@pytest.mark.parametrize("after", [50, 400])
def test_acknowledged_writes_survive_a_kill(path: Path, world: World, after: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(SOURCE)}
    )
    assert process.stdout is not None
    with process.stdout:
        lines = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)  # its output before it was killed
    process.wait()
    last: dict[str, int] = {}
    for line in lines:
        if line.endswith(b"\n"):
            key, _, number = line.decode().partition(" ")
            last[key] = int(number)
    version, found = objects(path, world)
    assert version > after
    for key, number in last.items():
        worker, _, written = found[f"things/{key}"].decode().partition(":")
        assert key.startswith(worker + "/")
        assert int(written) >= number  # unacknowledged writes may be there, too


def crashed(path: Path, world: World, copy: Path) -> Path:
    """A copy of the files after a crash: of three batches in the write-ahead log, two were acknowledged."""
    copy.mkdir()
    with closing(SQLiteLog(path, world)) as log:
        for number in range(3):
            mark = path.with_name("store.db-mark").read_bytes()
            asyncio.run(log.append([Write("things", str(number), number + 2, b"x" * 3000)]))
        for name in ("store.db", "store.db-wal"):
            (copy / name).write_bytes(path.with_name(name).read_bytes())
        (copy / "store.db-mark").write_bytes(mark)
    return copy / "store.db"


@pytest.mark.parametrize(
    "tear",
    [
        lambda wal: wal + b"\x00" * 5000,
        lambda wal: wal + os.urandom(5000),
        lambda wal: wal[:-100],
        lambda wal: wal[:-4096] + os.urandom(4096),
        lambda wal: wal[:-1],
    ],
    ids=["zeros after it", "noise after it", "cut", "noise in the last page", "one byte less"],
)
def test_a_torn_write_ahead_log_loses_the_torn_batch_and_no_other(path: Path, world: World, tear: object) -> None:
    copy = crashed(path, world, path.parent / "copy")
    wal = copy.with_name("store.db-wal")
    whole = wal.read_bytes()
    torn = tear(whole)  # type: ignore[operator]
    wal.write_bytes(torn)
    version, found = objects(copy, world)
    expected = 3 if len(torn) > len(whole) else 2
    assert list(found) == [f"things/{number}" for number in range(expected)]
    assert version == expected + 1
    append(copy, world, [Write("things", "new", 9, b"y")])
    assert objects(copy, world)[0] == 9


def test_the_event_loop_runs_while_the_disk_is_written(path: Path, world: World) -> None:
    async def main() -> None:
        log = SQLiteLog(path, world)
        threads: list[str] = []
        plain = log._append
        log._append = lambda writes: (threads.append(threading.current_thread().name), plain(writes))[1]  # type: ignore[method-assign,func-returns-value]
        await log.append([Write("things", "a", 2, b"1")])
        log.close()
        assert threads[0] != threading.main_thread().name

    asyncio.run(main())
