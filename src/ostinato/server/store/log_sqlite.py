"""A log in one SQLite file: what is acknowledged survives a crash of the process and of the machine.

One table holds the newest version of every object. Each batch of writes is one transaction, synced to the disk once
(WAL, `synchronous=FULL`), in a thread of its own so that the event loop goes on.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from ostinato.server.store.index import Write
from ostinato.world import Executor

FORMAT = 1


class NewerFormat(Exception):  # noqa: N818
    """The file was written by a newer Ostinato."""


class SQLiteLog:
    def __init__(self, path: Path, executor: Executor) -> None:
        self._path = path
        self._executor = executor
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # SQLite gives its side files the mode of the file
        os.chmod(path, 0o600)
        self._database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._database.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;")
        self._open()

    def _open(self) -> None:
        (version,) = self._database.execute("PRAGMA user_version").fetchone()
        if version > FORMAT:
            raise NewerFormat(
                f"{self._path}: format {version} is newer than this Ostinato reads ({FORMAT}); "
                "use the version that wrote it, or another file"
            )
        if version == 0:
            self._database.executescript(
                """BEGIN;
                CREATE TABLE object (collection TEXT, key TEXT, version INTEGER NOT NULL, data BLOB NOT NULL,
                                     PRIMARY KEY (collection, key)) WITHOUT ROWID;
                CREATE TABLE counter (version INTEGER NOT NULL);
                INSERT INTO counter VALUES (0);
                PRAGMA user_version = 1;
                COMMIT;"""
            )

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        (version,) = self._database.execute("SELECT version FROM counter").fetchone()
        return version, self._database.execute("SELECT collection, key, version, data FROM object")

    async def append(self, writes: Sequence[Write]) -> None:
        await self._executor.run(self._append, writes)

    def _append(self, writes: Sequence[Write]) -> None:
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            for write in writes:
                if write.data is None:
                    database.execute(
                        "DELETE FROM object WHERE collection = ? AND key = ?", (write.collection, write.key)
                    )
                else:
                    database.execute(
                        "INSERT OR REPLACE INTO object VALUES (?, ?, ?, ?)",
                        (write.collection, write.key, write.version, write.data),
                    )
            database.execute("UPDATE counter SET version = ?", (writes[-1].version,))
            database.execute("COMMIT")
        except BaseException:
            database.execute("ROLLBACK")
            raise

    def close(self) -> None:
        self._database.close()
