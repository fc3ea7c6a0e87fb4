"""File names of a store, and errors about the store as a whole."""

from __future__ import annotations

import errno
import os
import sqlite3
from pathlib import Path

from ostinato.server.state import cannot_use
from ostinato.server.store.records import UnusableStore

_MAPPED = 64 * 1024  # bytes that SQLite maps at a time


class DamagedStore(UnusableStore):
    """Acknowledged writes are missing or unreadable. The files are unchanged."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}; restore a snapshot with `ostinato snapshot restore`, "
            "or start with --accept-data-loss to continue with its readable part"
        )
        self.what = what


def wal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def journal_of(path: Path) -> Path:
    """The rollback journal, which SQLite uses until the write-ahead log is enabled."""
    return path.with_name(f"{path.name}-journal")


def shm_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-shm")


def mark_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-mark")


def size_of(path: Path) -> int:
    """The size of a file; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def free_name(path: Path, reason: str) -> Path:
    """A name beside `path` that is not in use: `store.db.damaged-1`, or the next number."""
    number = 1
    while any(
        os.path.lexists(of(path.with_name(f"{path.name}.{reason}-{number}")))
        for of in (lambda p: p, wal_of, shm_of, mark_of)
    ):
        number += 1
    return path.with_name(f"{path.name}.{reason}-{number}")


def unusable(path: Path, error: OSError) -> UnusableStore:
    return UnusableStore(f"cannot open the store {path}: {cannot_use(path, error)}")


def is_full(path: Path, error: sqlite3.DatabaseError) -> bool:
    """Whether SQLite failed for lack of space, which it reports as an I/O error for mapped files."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_IOERR:
        disk = os.statvfs(path.parent)
        return disk.f_bavail * disk.f_frsize < _MAPPED
    return code == sqlite3.SQLITE_FULL


def no_space(path: Path) -> UnusableStore:
    return unusable(path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
