"""A log in one SQLite file: what is acknowledged survives a crash of the process and of the machine.

One table holds the newest version of every object, and, in a row without a key, the last version given out. Each
batch of writes is one transaction, synced to the disk once (WAL, `synchronous=FULL`), in a thread of its own so that
the event loop goes on. One process at a time uses the file; others may read it, which is how snapshots are made.

The file is checked for damage when it is opened: see `store/sqlite/check.py`.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from ostinato.server.state import sync_directory
from ostinato.server.store.index import NoSpace, UnusableStore, Write
from ostinato.server.store.sqlite.check import check
from ostinato.server.store.sqlite.contents import (
    Contents,
    Summary,
    checksum_of,
    create,
    last_row,
    upgrade,
)
from ostinato.server.store.sqlite.files import (
    DamagedStore,
    is_full,
    no_space,
    shm_of,
    unusable,
    wal_of,
)
from ostinato.server.store.sqlite.mark import Mark
from ostinato.world import World

_logger = logging.getLogger(__name__)

# The row keeps its place when it is written anew: a new place would move twice as many pages.
_PUT = """INSERT INTO object VALUES {} ON CONFLICT (collection, key)
          DO UPDATE SET version = excluded.version, data = excluded.data, checksum = excluded.checksum"""
_DELETE = "DELETE FROM object WHERE collection = ? AND key = ?"
_ROWS = 32  # of a statement; each number of them is one that SQLite compiles
_WRITE_BACK_SECONDS = 1.0  # between two times that the kernel is asked to write the mark to the disk


class SQLiteLog:
    def __init__(self, path: Path, world: World, *, accept_data_loss: bool = False) -> None:
        """Open the file, or make it.

        UnusableStore if it is in use, not ours, or of a newer format; DamagedStore if acknowledged writes are missing
        or unreadable, unless that is accepted: then the damaged files are kept under another name.
        """
        self._path = path = path.resolve()
        self._executor = world.executor
        self._clock = world.clock
        self._mark = Mark(path)
        try:
            contents = self._check(world, accept_data_loss=accept_data_loss)
            self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5.0)
            try:
                self._summary = self._open(contents, world)
            except BaseException:
                self._database.close()
                raise
        except sqlite3.DatabaseError as error:
            self._mark.close()
            raise _unusable(path, error) from error
        except OSError as error:
            self._mark.close()
            raise unusable(path, error) from error
        except BaseException:
            self._mark.close()
            raise
        self._contents: Contents | None = contents
        self._written_back = self._clock.monotonic()

    def _check(self, world: World, *, accept_data_loss: bool) -> Contents:
        try:
            return check(self._path, self._mark)
        except DamagedStore as damage:
            if not accept_data_loss:
                raise
            from ostinato.server.store.sqlite.salvage import salvage  # noqa: PLC0415 - the exception

            salvage(self._path, self._mark, damage, world)
            return check(self._path, self._mark)

    def _open(self, contents: Contents, world: World) -> Summary:
        database, path, mark = self._database, self._path, self._mark
        reading, summary = mark.reading, contents.summary
        if summary is None:
            store = world.ids.token(16).hex() if reading is None else reading.store
            mark.begin(store, contents.version)  # before the database has its format: such a one needs a mark
            path.touch(mode=0o600)
        path.chmod(0o600)  # which SQLite gives to its side files, too
        for file in (wal_of(path), shm_of(path)):
            if file.exists():
                file.chmod(0o600)
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA journal_mode = WAL")
        if summary is None:
            summary = upgrade(database, contents, store) if contents.format else create(database, 0, (), store)
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            sync_directory(path.parent)
        elif reading is None or contents.version != reading.version:
            mark.begin(summary.store, contents.version)  # from now on, this is seen
        return summary

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        assert self._contents is not None, "loaded twice"
        contents, self._contents = self._contents, None
        return contents.version, iter(contents.rows)

    async def append(self, writes: Sequence[Write]) -> None:
        await self._executor.run(self._append, writes)

    def _append(self, writes: Sequence[Write]) -> None:
        summary = self._summary.after(writes)
        last = last_row(writes[-1].version, summary)
        try:
            if len(writes) < _ROWS and all(write.data is not None for write in writes):
                self._put([*writes, last])  # one statement is a transaction by itself
            else:
                self._transaction([*writes, last])
        except sqlite3.OperationalError as error:
            if is_full(self._path, error):
                raise NoSpace(str(error)) from error
            raise
        self._summary = summary
        self._advance_mark(last.version)

    def _advance_mark(self, version: int) -> None:
        """What is durable is: that the mark stays behind is no reason to refuse it."""
        try:
            self._mark.advance(version)
            now = self._clock.monotonic()
            if now - self._written_back >= _WRITE_BACK_SECONDS:
                self._written_back = now
                self._mark.write_back()
        except OSError as error:
            _logger.error("cannot write the mark of the store; path=%s error=%s", self._path, error)

    def _transaction(self, writes: list[Write]) -> None:
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            for deletes, run in groupby(writes, lambda write: write.data is None):
                if deletes:
                    database.executemany(_DELETE, [(write.collection, write.key) for write in run])
                else:
                    self._put(list(run))
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # some failures have rolled back already
                database.execute("ROLLBACK")
            raise

    def _put(self, writes: list[Write]) -> None:
        """Many rows a statement: each statement gives up Python's lock, and then has to wait for it."""
        for start in range(0, len(writes), _ROWS):
            rows = writes[start : start + _ROWS]
            values: list[object] = []
            for write in rows:
                row = write.collection, write.key, write.version, write.data
                values += row
                values.append(checksum_of(*row))  # type: ignore[arg-type]  # it is not a deletion
            self._database.execute(_PUT.format(", ".join(["(?, ?, ?, ?, ?)"] * len(rows))), values)

    def close(self) -> None:
        self._database.close()
        self._mark.close(sync=True)


def _unusable(path: Path, error: sqlite3.DatabaseError) -> UnusableStore:
    if "locked" in str(error):
        return UnusableStore(f"the store {path} is in use by another process")
    if is_full(path, error):
        return no_space(path)
    return UnusableStore(f"cannot open the store {path}: {error}")
