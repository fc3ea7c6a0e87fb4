"""The mark: how far writes were acknowledged, kept apart from the database and its write-ahead log.

- Written after each commit and before its requests are answered, so it is never ahead of what is durable. A store that
  ends before its mark has lost acknowledged writes.
- Not synced by each commit: that would cost as much as the commit itself. A killed process leaves it exact, as the
  kernel has it; after a power failure it can be behind by what the kernel had not written yet (about 30 seconds).
- Two slots, written in turn, each with a checksum: a torn write leaves the other one.
- Locked for as long as a process uses the store.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from ostinato.server.state import sync_directory
from ostinato.server.store.index import UnusableStore
from ostinato.server.store.sqlite.files import mark_of, unusable

_SLOT = 4096  # each in a sector of its own
_RECORD = struct.Struct(">8s16sQQ")
_MAGIC = b"OSTIMARK"


class StoreInUse(UnusableStore):
    """Another process holds the mark."""


class Reading(NamedTuple):
    """What a mark says."""

    store: str  # the id of the database that it belongs to, in hexadecimal
    version: int  # the last resourceVersion that was acknowledged; 0 before the first


class Mark:
    """The mark of the store at a path, locked; UnusableStore if another process uses the store."""

    def __init__(self, path: Path) -> None:
        self._path = mark_of(path)
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise unusable(path, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StoreInUse(f"the store {path} is in use by another process") from error
        except OSError as error:  # a file system without locks
            os.close(self._descriptor)
            raise unusable(path, error) from error
        os.fchmod(self._descriptor, 0o600)
        data = os.pread(self._descriptor, 2 * _SLOT, 0)
        self._sequence, self.reading = _newest(data)
        self.is_unreadable = bool(data) and self.reading is None

    def begin(self, store: str, version: int) -> None:
        """Belong to this store from now on, durably."""
        self._sequence += 1
        self._write(store, version)
        self._sequence += 1
        self._write(store, version)
        os.fsync(self._descriptor)
        sync_directory(self._path.parent)

    def advance(self, version: int) -> None:
        """Writes up to this resourceVersion are durable, and about to be acknowledged."""
        assert self.reading is not None
        self._sequence += 1
        self._write(self.reading.store, version)

    def _write(self, store: str, version: int) -> None:
        record = _RECORD.pack(_MAGIC, bytes.fromhex(store), self._sequence, version)
        slot = record + zlib.crc32(record).to_bytes(4, "big")
        os.pwrite(self._descriptor, slot, self._sequence % 2 * _SLOT)
        self.reading = Reading(store, version)

    def write_back(self) -> None:
        """Have the kernel write it to the disk soon, without waiting for that."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self, *, sync: bool = False) -> None:
        """Let another process use the store. `sync`: make it durable before."""
        if sync:
            os.fsync(self._descriptor)
        if os.fstat(self._descriptor).st_size == 0:  # nothing came of it
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def read_mark(path: Path) -> Reading | None:
    """What the mark of a store says, which another process may be using; None if there is none, or none readable."""
    try:
        return _newest(mark_of(path).read_bytes())[1]
    except FileNotFoundError:
        return None


def _newest(data: bytes) -> tuple[int, Reading | None]:
    found: list[tuple[int, Reading]] = []
    for start in (0, _SLOT):
        record = data[start : start + _RECORD.size]
        checksum = data[start + _RECORD.size : start + _RECORD.size + 4]
        if len(checksum) == 4 and zlib.crc32(record).to_bytes(4, "big") == checksum:
            magic, store, sequence, version = _RECORD.unpack(record)
            if magic == _MAGIC:
                found.append((sequence, Reading(store.hex(), version)))
    return max(found, default=(0, None))
