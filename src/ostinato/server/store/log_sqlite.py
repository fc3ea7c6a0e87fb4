"""A log in one SQLite file: what is acknowledged survives a crash of the process and of the machine.

One table holds the newest version of every object, and, in a row without a name, the last version given out. Each
batch of writes is one transaction, synced to the disk once (WAL, `synchronous=FULL`), in a thread of its own so that
the event loop goes on. The file belongs to one process at a time, and nobody but its owner may read it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path

from ostinato.server.store.index import UnusableStore, Write
from ostinato.world import Executor

FORMAT = 1
_APPLICATION = 0x4F535449  # "OSTI": the file is one of ours

_SCHEMA = """BEGIN;
CREATE TABLE object (collection TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, data BLOB NOT NULL,
                     PRIMARY KEY (collection, key));
INSERT INTO object VALUES ('', '', 0, x'');
PRAGMA application_id = 0x4F535449;
PRAGMA user_version = 1;
COMMIT;"""
# The row keeps its place when it is written anew: a new place would move twice as many pages.
_PUT = """INSERT INTO object VALUES {}
          ON CONFLICT (collection, key) DO UPDATE SET version = excluded.version, data = excluded.data"""
_DELETE = "DELETE FROM object WHERE collection = ? AND key = ?"
_ROWS = 32  # of a statement; each number of them is one that SQLite compiles


class SQLiteLog:
    def __init__(self, path: Path, executor: Executor) -> None:
        """Open the file, or make it; UnusableStore if it is broken, locked, not ours, or of a newer format."""
        self._path = path
        self._executor = executor
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise UnusableStore(f"cannot open the store {path}: {error.strerror}") from error
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.2)
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._database.close()
            if "locked" in str(error):
                raise UnusableStore(f"the store {path} is in use by another process") from error
            raise UnusableStore(f"cannot open the store {path}: {error}") from error
        except UnusableStore:
            self._database.close()
            raise

    def _open(self) -> None:
        database = self._database
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA synchronous = FULL")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        if tables and application != _APPLICATION:
            raise UnusableStore(f"{self._path} is a database of another program; use another file")
        if version > FORMAT:
            raise UnusableStore(
                f"{self._path}: format {version} is newer than this Ostinato reads ({FORMAT}); "
                "use the version that wrote it, or another file"
            )
        self._path.chmod(0o600)  # which SQLite gives to its side files, too
        database.execute("PRAGMA journal_mode = WAL")
        if version == 0:
            database.executescript(_SCHEMA)
        database.execute("BEGIN EXCLUSIVE")  # takes the lock, which this process then keeps
        database.execute("COMMIT")

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        (version,) = self._database.execute("SELECT version FROM object WHERE collection = '' AND key = ''").fetchone()
        return version, self._database.execute("SELECT collection, key, version, data FROM object WHERE key != ''")

    async def append(self, writes: Sequence[Write]) -> None:
        await self._executor.run(self._append, writes)

    def _append(self, writes: Sequence[Write]) -> None:
        last = Write("", "", writes[-1].version, b"")
        if len(writes) < _ROWS and all(write.data is not None for write in writes):
            self._put([*writes, last])  # one statement is a transaction by itself
            return
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            for deletes, run in groupby([*writes, last], lambda write: write.data is None):
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
            values = [value for write in rows for value in (write.collection, write.key, write.version, write.data)]
            self._database.execute(_PUT.format(", ".join(["(?, ?, ?, ?)"] * len(rows))), values)

    def close(self) -> None:
        self._database.close()
