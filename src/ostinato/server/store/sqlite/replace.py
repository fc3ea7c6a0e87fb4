"""Replacement of a store's database. The old files are kept under another name.

After a crash in between, the old files are behind the mark: the next start fails, and the replacement can be repeated.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from ostinato.server.state import sync_directory
from ostinato.server.store.sqlite.contents import open_read_only
from ostinato.server.store.sqlite.files import free_name, mark_of, shm_of, size_of, wal_of
from ostinato.server.store.sqlite.mark import Mark

# Added to the last resourceVersion. Clients may have seen resourceVersions that the replacement lacks, and must not see
# them again for other writes: all that they hold are below the new ones, so every watch has to relist.
VERSION_JUMP = 1_000_000_000


def next_version(path: Path, mark: Mark, version: int) -> int:
    """The last resourceVersion of a replacement whose objects end at `version`."""
    acknowledged = 0 if mark.reading is None else mark.reading.version
    return max(version, acknowledged, _version_of(path)) + VERSION_JUMP


def _version_of(path: Path) -> int:
    """The last resourceVersion in the files, whatever their state; 0 if there is none."""
    if not size_of(path):
        return 0
    try:
        with closing(open_read_only(path)) as database:
            query = "SELECT max(version) FROM object"
            return int(database.execute(query).fetchone()[0] or 0)
    except (sqlite3.DatabaseError, TypeError, ValueError):
        return 0


def new_name(path: Path) -> Path:
    """The path for writing the replacement, on the same file system. Remains of an earlier attempt are removed."""
    new = path.with_name(f".{path.name}.new")
    for file in (new, new.with_name(f"{new.name}-journal")):
        file.unlink(missing_ok=True)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    return new


def replace(path: Path, mark: Mark, new: Path, store: str, version: int, reason: str) -> Path | None:
    """Replace the store with `new`; return where the old files are, None if there were none."""
    kept = None
    if any(size_of(file) for file in (path, wal_of(path))) or mark.reading is not None:
        kept = free_name(path, reason)
        shutil.copyfile(mark_of(path), mark_of(kept))
        mark_of(kept).chmod(0o600)
    mark.begin(store, version)
    shm_of(path).unlink(missing_ok=True)
    for of in (wal_of, lambda file: file):
        if of(path).exists():
            if kept is None:
                of(path).unlink()  # empty
            else:
                of(path).rename(of(kept))
    new.rename(path)
    sync_directory(path.parent)
    return kept
