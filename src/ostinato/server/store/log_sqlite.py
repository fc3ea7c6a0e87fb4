"""SQLite log: acknowledged writes survive a crash of the process and of the machine.

- One table holds the newest state of every object; a row without a key holds the last resourceVersion.
- Each batch of writes is one transaction, synced to disk once (write-ahead log, `synchronous=FULL`), in a thread of its
  own, so that the event loop is not blocked. Without `durable` they are not synced: they survive only the process.
- One process at a time uses the file; others may read it, which is how snapshots are taken.
- The file is checked for damage when it is opened: see `store/sqlite/check.py`.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ostinato.server.state import sync_directory
from ostinato.server.store.records import NoSpace, UnusableStore, Write
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

# An update keeps the row's rowid: a new one would modify twice as many pages.
_PUT = """INSERT INTO object VALUES {} ON CONFLICT (collection, key)
          DO UPDATE SET version = excluded.version, data = excluded.data, checksum = excluded.checksum"""
# Batches with deletions are inserted into a view, to be one statement, too. Puts alone are faster without it.
_CHANGE = "INSERT INTO change VALUES {}"
_VIEW = "CREATE TEMP VIEW change AS SELECT * FROM object"
_TRIGGERS = [
    """CREATE TEMP TRIGGER change_deletes INSTEAD OF INSERT ON change WHEN new.data IS NULL BEGIN
       DELETE FROM object WHERE collection = new.collection AND key = new.key; END""",
    f"""CREATE TEMP TRIGGER change_puts INSTEAD OF INSERT ON change WHEN new.data IS NOT NULL BEGIN
        {_PUT.format("(new.collection, new.key, new.version, new.data, new.checksum)")}; END""",
]
_ROWS = 32  # per statement; SQLite compiles a statement for each row count
_ROW_COUNTS = [", ".join(["(?, ?, ?, ?, ?)"] * rows) for rows in range(_ROWS + 1)]
_PUTS = [_PUT.format(rows) for rows in _ROW_COUNTS]
_CHANGES = [_CHANGE.format(rows) for rows in _ROW_COUNTS]
_WRITE_BACK_SECONDS = 1.0  # minimum interval between requests to the kernel to write back the mark


class SQLiteLog:
    def __init__(self, path: Path, world: World, *, durable: bool = True, accept_data_loss: bool = False) -> None:
        """Open the file, or create it.

        UnusableStore if it is in use, not a store, or of a newer format. DamagedStore if acknowledged writes are
        missing or unreadable, unless `accept_data_loss`: then the damaged files are kept under another name.
        """
        self._path = path = path.resolve()
        self._executor = world.executor
        self._clock = world.clock
        self._durable = durable
        self._mark = Mark(path, durable=durable)
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
            from ostinato.server.store.sqlite.salvage import salvage  # noqa: PLC0415 - only for damaged stores

            salvage(self._path, self._mark, damage, world)
            return check(self._path, self._mark)

    def _open(self, contents: Contents, world: World) -> Summary:
        database, path, mark = self._database, self._path, self._mark
        reading, summary = mark.reading, contents.summary
        if summary is None:
            store = world.ids.token(16).hex() if reading is None else reading.store
            mark.begin(store, contents.version)  # before the database is formatted: then a mark is required
            path.touch(mode=0o600)
        path.chmod(0o600)  # SQLite uses the same mode for its side files
        for file in (wal_of(path), shm_of(path)):
            if file.exists():
                file.chmod(0o600)
        database.execute(f"PRAGMA synchronous = {'FULL' if self._durable else 'OFF'}")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA temp_store = MEMORY")
        if summary is None:
            summary = upgrade(database, contents, store) if contents.format else create(database, 0, (), store)
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if self._durable:
                sync_directory(path.parent)
        elif reading is None or contents.version != reading.version:
            mark.begin(summary.store, contents.version)  # missing data is detected from now on
        for statement in (_VIEW, *_TRIGGERS):
            database.execute(statement)
        return summary

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        assert self._contents is not None, "loaded twice"
        contents, self._contents = self._contents, None
        return contents.version, iter(contents.rows)

    async def append(self, writes: Sequence[Write]) -> None:
        await self._executor.run(self._append, writes)
        # Here, where no other thread waits for the GIL: in the thread, this short call would wait for the event loop.
        self._advance_mark(writes[-1].version)

    def _append(self, writes: Sequence[Write]) -> None:
        summary = self._summary.after(writes)
        last = last_row(writes[-1].version, summary)
        try:
            if len(writes) < _ROWS:
                self._write([*writes, last])  # a single statement is a transaction
            else:
                self._transaction([*writes, last])
        except sqlite3.OperationalError as error:
            if is_full(self._path, error):
                raise NoSpace(str(error)) from error
            raise
        self._summary = summary

    def _advance_mark(self, version: int) -> None:
        """Advance the mark. The writes are durable already, so a failure is only logged."""
        try:
            self._mark.advance(version)
            now = self._clock.monotonic()
            if now - self._written_back >= _WRITE_BACK_SECONDS:
                self._written_back = now
                self._mark.write_back()
        except OSError as error:
            _logger.error("store mark not written path=%s error=%s", self._path, error)

    def _transaction(self, writes: list[Write]) -> None:
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            for start in range(0, len(writes), _ROWS):
                self._write(writes[start : start + _ROWS])
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # some failures have rolled back already
                database.execute("ROLLBACK")
            raise

    def _write(self, writes: list[Write]) -> None:
        """Write many rows with one statement, since each statement releases and reacquires the GIL."""
        values: list[object] = []
        statements = _PUTS
        for write in writes:
            collection, key, version, data = write.collection, write.key, write.version, write.data
            if data is None:
                statements = _CHANGES
                values += (collection, key, version, None, None)
            else:
                values += (collection, key, version, data, checksum_of(collection, key, version, data))
        self._database.execute(statements[len(writes)], values)

    def is_outdated(self, collection: str, key: str) -> bool:
        return False

    def close(self) -> None:
        self._database.close()
        self._mark.close(sync=True)


def _unusable(path: Path, error: sqlite3.DatabaseError) -> UnusableStore:
    if "locked" in str(error):
        return UnusableStore(f"the store {path} is in use by another process")
    if is_full(path, error):
        return no_space(path)
    return UnusableStore(f"cannot open the store {path}: {error}")
