"""State directory: the files that a server keeps between runs, accessible to its owner only.

- One server at a time uses a directory.
- Files are replaced atomically: after a crash either the old or the new one exists.
- A directory that others can read is closed to them if it belongs to this server or is empty, and rejected otherwise.
  One that others can write, or that another user owns, is rejected: its keys may have been replaced.
- Keys are regular files with mode 0600 in the directory itself. Symbolic links in their place are rejected.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

_logger = logging.getLogger(__name__)

_KEYS = ("ca.key", "front-proxy-ca.key", "sa.key")  # rejected if others can read them: they may have been copied
_PRIVATE = ("*.json", "*.kubeconfig", "*.crt", "store.db*", "lock")


class StateError(Exception):
    """The directory cannot be used; the message has the reason and the remedy."""


class StateInUse(StateError):  # noqa: N818
    """Another process uses the directory. `holder`: its pid, or 0."""

    def __init__(self, message: str, holder: int) -> None:
        super().__init__(message)
        self.holder = holder


def cannot_use(path: Path, error: OSError) -> str:
    """Why a file or directory cannot be written; for a full disk, which one, and the remedy."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return error.strerror or str(error)
    mount = path.absolute()
    while not mount.is_mount():
        mount = mount.parent
    return f"no space left on the file system at {mount}; free some, or choose another directory with --state"


class StateDirectory:
    """A state directory, locked until `release`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_shared = False  # another process releases the lock
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _close_to_others(path)
            flags = os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
            self._lock = os.open(path / "lock", flags, 0o600)
        except OSError as error:
            raise StateError(f"cannot use the state directory {path}: {cannot_use(path, error)}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(self._lock, 32, 0).decode(errors="replace").strip()
            os.close(self._lock)
            who = f"process {holder}" if holder else "another server"
            problem = f"the state directory {path} is in use by {who}; choose another directory with --state"
            raise StateInUse(problem, int(holder) if holder.isdecimal() else 0) from error
        try:
            os.ftruncate(self._lock, 0)
            os.pwrite(self._lock, f"{os.getpid()}\n".encode(), 0)
        except OSError as error:
            os.close(self._lock)
            raise StateError(f"cannot use the state directory {path}: {cannot_use(path, error)}") from error

    @classmethod
    def shared(cls, path: Path, lock: int) -> Self:
        """Share a lock with the process that this one has inherited it from: it is held until both have ended.

        `lock`: the descriptor.
        """
        os.set_inheritable(lock, False)  # noqa: FBT003
        shared = cls.__new__(cls)
        shared.path, shared._lock, shared._is_shared = path, lock, True
        return shared

    @property
    def lock(self) -> int:
        """The descriptor of the lock, for `shared` in another process."""
        return self._lock

    def release(self) -> None:
        if not self._is_shared:
            os.ftruncate(self._lock, 0)
        os.close(self._lock)


@contextmanager
def writing_files(path: Path) -> Iterator[None]:
    """Let one of the processes that share a state directory write its certificates at a time."""
    try:
        descriptor = os.open(path / "files.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise StateError(f"cannot use the state directory {path}: {cannot_use(path, error)}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _close_to_others(path: Path) -> None:
    """Make a directory and its files accessible to the owner only."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise StateError(
            f"the state directory {path} is owned by uid {found.st_uid}, but this process runs as uid {os.geteuid()}; "
            "change its owner, or choose another directory with --state"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & 0o077:
        _close_directory(path, mode)
    for name in _KEYS:
        if os.path.lexists(path / name):
            read_private(path / name)
    for pattern in _PRIVATE:
        for file in path.glob(pattern):
            _close_file(file)


def _close_directory(path: Path, mode: int) -> None:
    names = {entry.name for entry in path.iterdir()} - {"lost+found"}
    is_ours = bool(names & {"lock", "ca.key"})
    if names and (mode & 0o022 or not is_ours):
        done = "written" if mode & 0o022 else "read"
        raise StateError(
            f"the state directory {path} can be {done} by others (mode {mode:04o}) and is not empty; "
            "inspect its files and chmod 700 it, or choose another directory with --state"
        )
    path.chmod(0o700)
    if names:
        _logger.warning("state directory was accessible to others, restricted path=%s mode=%04o", path, mode)


def _close_file(path: Path) -> None:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        return
    if found.st_uid != os.geteuid():
        raise StateError(f"{path} is owned by uid {found.st_uid}; remove it, or change its owner")
    if found.st_mode & 0o077:
        path.chmod(0o600)
        mode = stat.S_IMODE(found.st_mode)
        _logger.warning("file was accessible to others, restricted path=%s mode=%04o", path, mode)


def is_private(path: Path) -> bool:
    """Whether a path is a regular file that only this user can read."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def sync_directory(path: Path) -> None:
    """Make creations, renames and removals in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_private(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace a file with one that only its owner can read; StateError on failure.

    `durable`: it survives a crash of the machine.
    """
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.write(data)
            file.flush()
            if durable:
                os.fsync(descriptor)
        new.replace(path)
        if durable:
            sync_directory(path.parent)
    except OSError as error:
        raise StateError(f"cannot write {path}: {cannot_use(path, error)}") from error


def read_private(path: Path) -> bytes:
    """Read a file that must be accessible to its owner only; StateError if others can read it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise StateError(f"{path} is a symbolic link; replace it with the key file, or remove it") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if found.st_mode & 0o077:
            mode = stat.S_IMODE(found.st_mode)
            raise StateError(f"{path} can be read by others (mode {mode:04o}); chmod 600 it, or remove it")
        if found.st_uid != os.geteuid():
            raise StateError(f"{path} is owned by uid {found.st_uid}; remove it, or change its owner")
        return file.read()
