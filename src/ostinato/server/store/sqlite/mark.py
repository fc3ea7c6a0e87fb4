"""Mark: the last acknowledged resourceVersion, kept apart from the database and its write-ahead log.

- Written after each commit and before its requests are answered, so it is never ahead of the durable state. A store
  that is behind its mark has lost acknowledged writes.
- Not synced with each commit: that would cost as much as the commit itself. It is exact after a killed process; after a
  power failure it may be behind by what the kernel had not written back yet (about 30 seconds).
- Two slots, written alternately, each with a checksum: a torn write leaves the other one.
- Locked while a process uses the store.
"""

from __future__ import annotations

import fcntl
import os
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

from ostinato.server.state import sync_directory
from ostinato.server.store.records import UnusableStore
from ostinato.server.store.sqlite.files import mark_of, unusable

_SLOT = 4096  # each in a page of its own
_RECORD = struct.Struct(">8s16sQQ")
_MAGIC = b"OSTIMARK"


class StoreInUse(UnusableStore):
    """Another process holds the mark."""


class Reading(NamedTuple):
    """The content of a mark."""

    store: str  # the id of its database, in hexadecimal
    version: int  # the last acknowledged resourceVersion; 0 before the first


class Mark:
    """The locked mark of the store at a path; UnusableStore if another process uses the store.

    `durable`: `begin` and `close` sync it to disk.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self._path = mark_of(path)
        self._durable = durable
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
        self._sequence, self.reading = _newest(data)  # `reading`: as found, or as of `begin`
        self._store = b"" if self.reading is None else bytes.fromhex(self.reading.store)
        self.is_unreadable = bool(data) and self.reading is None

    def begin(self, store: str, version: int) -> None:
        """Assign the mark to a store, durably."""
        self._store = bytes.fromhex(store)
        self.reading = Reading(store, version)
        self.advance(version)
        self.advance(version)
        if self._durable:
            os.fsync(self._descriptor)
            sync_directory(self._path.parent)

    def advance(self, version: int) -> None:
        """Record that writes up to this resourceVersion are durable and about to be acknowledged."""
        self._sequence += 1
        record = _RECORD.pack(_MAGIC, self._store, self._sequence, version)
        slot = record + zlib.crc32(record).to_bytes(4, "big")
        os.pwrite(self._descriptor, slot, self._sequence % 2 * _SLOT)

    def write_back(self) -> None:
        """Ask the kernel to write the mark back soon, without waiting."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self, *, sync: bool = False) -> None:
        """Release the lock. `sync`: make the mark durable first."""
        if sync and self._durable:
            os.fsync(self._descriptor)
        if os.fstat(self._descriptor).st_size == 0:  # never written
            self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def read_mark(path: Path) -> Reading | None:
    """Read the mark of a store that may be in use; None if there is none, or it is unreadable."""
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
