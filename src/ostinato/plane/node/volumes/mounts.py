"""File systems in memory that the node mounts: for `emptyDir: {medium: Memory}`, and for /dev/shm of processes."""

from __future__ import annotations

import ctypes
import errno
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

_SYS_ADMIN: Final = 21  # number of the capability
_NO_SUID, _NO_DEVICES = 2, 4
_DETACH, _NO_FOLLOW = 2, 8
_MOST_LAYERS: Final = 16  # stacked mounts, left by killed agents


@cache
def can_mount() -> bool:
    """Return whether this process may mount file systems (CAP_SYS_ADMIN)."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("CapEff:"):
                return bool(int(line.split()[1], 16) >> _SYS_ADMIN & 1)
    return False


def is_mount_point(path: Path) -> bool:
    """Return whether something is mounted at a path, also a directory of the same file system (a bind mount)."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except FileNotFoundError:  # not Linux
        return path.is_mount()
    wanted = os.fsencode(path)
    return any(_unescaped(line.split(b" ", 5)[4]) == wanted for line in lines)


def _unescaped(path: bytes) -> bytes:
    """Decode the octal codes of blanks and backslashes in a path of the mount table."""
    return re.sub(rb"\\([0-7]{3})", lambda code: bytes((int(code[1], 8),)), path)


def mount_tmpfs(directory: Path, size: int, mode: int = 0o755) -> None:
    """Mount a tmpfs of `size` bytes at an existing directory; does nothing if one is mounted there already."""
    if directory.is_mount():
        return
    options = f"mode={mode:o},size={size}".encode()
    target = os.fsencode(directory)
    if _libc().mount(b"tmpfs", target, b"tmpfs", _NO_SUID | _NO_DEVICES, options) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), f"tmpfs at {directory}")


def unmount(target: Path) -> None:
    """Unmount everything that is mounted at a path; a symbolic link is not followed."""
    for _ in range(_MOST_LAYERS):
        if _libc().umount2(os.fsencode(target), _DETACH | _NO_FOLLOW) == 0:
            continue
        number = ctypes.get_errno()
        if number in (errno.EINVAL, errno.ENOENT):  # not a mount point
            return
        raise OSError(number, os.strerror(number), str(target))


def unmount_entries(directory: Path) -> None:
    """Unmount everything that is mounted at an entry of a directory; it may not exist."""
    if not can_mount():
        return
    try:
        entries = sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return
    for entry in entries:
        unmount(entry)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
