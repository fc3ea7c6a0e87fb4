"""The state directory: what a server keeps between two starts. Nobody but its owner may look inside.

One server at a time uses a directory. Files are replaced as a whole: a crash leaves the old one or the new one.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path


class StateError(Exception):
    """The directory cannot be used; the message says why, and what to do."""


def cannot_use(path: Path, error: OSError) -> str:
    """Why a file or directory cannot be written; where the disk is full, which one, and what to do."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error.strerror or str(error)
    mount = path.absolute()
    while not mount.is_mount():
        mount = mount.parent
    return f"no space left on the file system at {mount}: free some, or choose another directory with --state"


class StateDirectory:
    """A directory, held until `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"cannot use the state directory {path}: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip()
            os.close(self._lock)
            who = f"process {holder}" if holder else "another server"
            raise StateError(f"the state directory {path} is in use by {who}; choose another with --state") from error
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        os.ftruncate(self._lock, 0)
        os.close(self._lock)


def write_private(path: Path, data: bytes) -> None:
    """Replace a file by one that only its owner can read."""
    new = path.with_name(f".{path.name}.new")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    new.replace(path)


def read_private(path: Path) -> bytes:
    """A file that only its owner should be able to read; StateError if others can, too."""
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if mode & 0o077:
            raise StateError(f"{path} can be read by others (mode {mode & 0o777:04o}): chmod 600 it, or remove it")
        return file.read()
