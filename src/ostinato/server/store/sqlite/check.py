"""Check of a store before use: no acknowledged write may be missing.

Modifies no file, except that the creation of a store that was interrupted is undone.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from ostinato.server.store.records import UnusableStore
from ostinato.server.store.sqlite.contents import Contents, NotOurs, open_read_only, read
from ostinato.server.store.sqlite.files import DamagedStore, is_full, journal_of, no_space, size_of, unusable, wal_of
from ostinato.server.store.sqlite.mark import Mark, Reading
from ostinato.server.store.sqlite.wal import holds_transactions, is_damaged


def check(path: Path, mark: Mark) -> Contents:
    """Read and check a store; DamagedStore if it is incomplete, UnusableStore if it cannot be read."""
    reading = mark.reading
    acknowledged = 0 if reading is None else reading.version
    try:
        wal = wal_of(path).read_bytes() if size_of(wal_of(path)) else b""
        if size_of(path) == 0:
            return _nothing(path, acknowledged, wal)
    except OSError as error:
        raise unusable(path, error) from error
    if is_damaged(wal):
        raise DamagedStore(f"the store {path} is damaged: bad frame in the middle of {wal_of(path).name}")
    try:
        if not acknowledged and size_of(journal_of(path)):
            _undo_creation(path)
        with closing(open_read_only(path)) as database:
            contents = read(database, path)
    except NotOurs as error:
        if reading is None:
            raise
        raise DamagedStore(f"the store {path} is damaged: it has a mark, but is not a store database") from error
    except sqlite3.DatabaseError as error:
        raise (
            no_space(path) if is_full(path, error) else UnusableStore(f"cannot open the store {path}: {error}")
        ) from error
    _compare(path, contents, reading, is_unreadable=mark.is_unreadable)
    return contents


def _undo_creation(path: Path) -> None:
    """Let SQLite undo a transaction from before the write-ahead log was in use: a connection for reading cannot."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("SELECT count(*) FROM sqlite_schema").fetchone()


def _nothing(path: Path, acknowledged: int, wal: bytes) -> Contents:
    """The contents of a new store; DamagedStore if the mark shows that there was one."""
    state = "empty" if path.exists() else "missing"
    if acknowledged:
        raise DamagedStore(
            f"the store {path} is {state}, but writes up to resourceVersion {acknowledged} were acknowledged"
        )
    if holds_transactions(wal):
        raise DamagedStore(f"the store {path} is {state}, but its write-ahead log {wal_of(path).name} is not")
    return Contents()


def _compare(path: Path, contents: Contents, reading: Reading | None, *, is_unreadable: bool) -> None:
    """Compare the contents of a store with its mark."""
    if contents.summary is not None:
        if is_unreadable or reading is None:
            state = "cannot be read" if is_unreadable else "is missing"
            raise DamagedStore(f"{path}-mark {state}: cannot determine whether the store {path} is complete")
        if contents.summary.store != reading.store:
            raise DamagedStore(f"the store {path} does not match {path.name}-mark, which belongs to another store")
    if reading is not None and contents.version < reading.version:
        raise DamagedStore(
            f"the store {path} has lost writes: it ends at resourceVersion {contents.version}, "
            f"and writes up to {reading.version} were acknowledged"
        )
