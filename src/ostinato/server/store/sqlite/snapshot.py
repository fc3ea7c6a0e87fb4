"""Snapshots of a SQLite store: a copy in one file, taken while a server may be running.

A snapshot is a database of the store's format without a write-ahead log. It has the objects, but not the keys and
certificates of the state directory.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from ostinato.server.state import sync_directory
from ostinato.server.store.records import UnusableStore
from ostinato.server.store.sqlite.check import check
from ostinato.server.store.sqlite.contents import (
    Contents,
    Summary,
    format_of,
    open_read_only,
    read,
    set_version,
    upgrade,
)
from ostinato.server.store.sqlite.files import (
    DamagedStore,
    is_full,
    no_space,
    size_of,
    unusable,
    wal_of,
)
from ostinato.server.store.sqlite.mark import Mark, StoreInUse, read_mark
from ostinato.server.store.sqlite.replace import VERSION_JUMP, new_name, next_version, replace
from ostinato.world import Ids

__all__ = ["VERSION_JUMP", "Status", "restore", "save", "snapshot_status", "status"]

_WAIT_SECONDS = 5.0


class Status(NamedTuple):
    """Facts about a complete store or snapshot."""

    path: Path
    format: int
    objects: int
    version: int  # the last resourceVersion
    size: int  # bytes, with the write-ahead log
    in_use: bool


def status(path: Path) -> Status:
    """Read and check a store; DamagedStore or UnusableStore if it is not complete."""
    path = path.resolve()
    contents, in_use = _checked(path)
    size = size_of(path) + size_of(wal_of(path))
    return Status(path, contents.format, len(contents.rows), contents.version, size, in_use)


def snapshot_status(path: Path) -> Status:
    """Read and check a snapshot; UnusableStore if it is not complete."""
    path = path.resolve()
    with _of_a_snapshot(path), closing(open_read_only(path)) as database:
        contents = read(database, path)
        if contents.format == 0:
            raise UnusableStore(f"{path} is not a store")
        _check_integrity(database, path)
    return Status(path, contents.format, len(contents.rows), contents.version, size_of(path), in_use=False)


def save(path: Path, target: Path, ids: Ids) -> Status:
    """Copy a store to a new file."""
    path, target = path.resolve(), target.resolve()
    if target.exists():
        raise UnusableStore(f"{target} exists already; choose another name")
    in_use = _checked(path, whole=False)[1]
    reading = read_mark(path)
    try:
        new = new_name(target)
        try:
            contents = _copy(path, new, ids)
            if reading is not None and contents.version < reading.version:
                raise DamagedStore(
                    f"the store {path} has lost writes: it ends at resourceVersion {contents.version}, "
                    f"and writes up to {reading.version} were acknowledged"
                )
            new.rename(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        sync_directory(target.parent)
    except OSError as error:
        raise unusable(target, error) from error
    return Status(target, contents.format, len(contents.rows), contents.version, size_of(target), in_use)


def restore(source: Path, path: Path, ids: Ids) -> tuple[Status, Path | None]:
    """Replace a store that no server uses with a snapshot; return where the old files are."""
    source, path = source.resolve(), path.resolve()
    mark = Mark(path)
    try:
        new = new_name(path)
        try:
            with _of_a_snapshot(source):
                contents = _copy(source, new, ids)
            version = next_version(path, mark, contents.version)
            summary = (contents.summary or Summary(""))._replace(store=ids.token(16).hex())
            with closing(sqlite3.connect(new, isolation_level=None)) as database:
                set_version(database, version, summary)
            kept = replace(path, mark, new, summary.store, version, "replaced")
        except BaseException:
            new.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise unusable(path, error) from error
    finally:
        mark.close(sync=True)
    return Status(path, contents.format, len(contents.rows), version, size_of(path), in_use=False), kept


def _checked(path: Path, *, whole: bool = True) -> tuple[Contents, bool]:
    """Check a store; return whether a server uses it. `whole`: read all objects in any case.

    The write-ahead log of a store in use changes constantly; its server checked the store at start.
    """
    if not path.exists() and read_mark(path) is None:
        raise UnusableStore(f"there is no store at {path}")
    try:
        mark = Mark(path)
    except StoreInUse:
        if not whole:
            return Contents(), True
        with closing(open_read_only(path, _WAIT_SECONDS)) as database:
            database.execute("BEGIN")
            return read(database, path), True
    try:
        return check(path, mark), False
    finally:
        mark.close()


@contextmanager
def _of_a_snapshot(path: Path) -> Iterator[None]:
    """Report errors of the store as errors of the snapshot."""
    try:
        if not path.exists():
            raise UnusableStore(f"there is no snapshot at {path}")
        yield
    except DamagedStore as damage:
        raise UnusableStore(f"{damage.what}; use another snapshot") from damage
    except sqlite3.DatabaseError as error:
        raise UnusableStore(f"cannot read the snapshot {path}: {error}") from error


def _check_integrity(database: sqlite3.Connection, path: Path) -> None:
    (word,) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if word != "ok":
        raise DamagedStore(f"{path} is damaged: {word}")


def _copy(source: Path, new: Path, ids: Ids) -> Contents:
    """Copy a database at one point in time and check the copy; it is durable, and has the current format."""
    try:
        with (
            closing(open_read_only(source, _WAIT_SECONDS)) as from_,
            closing(sqlite3.connect(new, isolation_level=None)) as into,
        ):
            if format_of(from_, source) == 0:
                raise UnusableStore(f"{source} is not a store")
            from_.backup(into)
            into.execute("PRAGMA journal_mode = DELETE")
            contents = read(into, source)
            _check_integrity(into, source)
            if contents.summary is None:
                upgrade(into, contents, ids.token(16).hex())
                contents = read(into, source)
    except sqlite3.DatabaseError as error:
        raise no_space(new) if is_full(new, error) else UnusableStore(f"cannot copy {source}: {error}") from error
    descriptor = os.open(new, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return contents
