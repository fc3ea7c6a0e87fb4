"""Bind parts of volumes to a directory of the node's own, for runtimes that take paths and not descriptors (CRI).

The part is opened inside its volume and bound by descriptor to `UID/CONTAINER/INDEX`, which no container can reach:
that path means the checked file or directory for as long as the bind is there. As kubelet's `volume-subpaths`.

- What is bound is only ever unmounted, never deleted: directories are removed with `rmdir` alone.
- Everything is found again by its path, so an agent that was restarted releases what the one before it had bound.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Final

from ostinato.plane.node.volumes.subpaths import bind, open_subpath

_DETACH, _NO_FOLLOW = 2, 8
_MOST_LAYERS: Final = 16  # binds on top of each other, after agents that were killed


class SubPathMounts:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def bind(self, uid: str, container: str, index: int, volume: Path, sub_path: str) -> Path:
        """The path at which a part of a volume is bound; what an earlier attempt had bound there is released.

        Raises `SubPathError` if it leads out of the volume, `OSError` if it does not exist or cannot be bound.
        """
        target = self._directory / uid / container / str(index)
        found = open_subpath(volume, sub_path)
        try:
            _release(target)
            for each in (self._directory, target.parent.parent, target.parent):
                each.mkdir(mode=0o700, exist_ok=True)
            if stat.S_ISDIR(os.fstat(found).st_mode):
                target.mkdir(mode=0o700)
            else:
                target.touch(mode=0o600, exist_ok=False)
            bind(found, target, recursive=False)  # releasing a recursive one would unmount the original's mounts too
        finally:
            os.close(found)
        return target

    def release(self, uid: str) -> None:
        """Unmount all parts that are bound for a Pod. Harmless when there are none."""
        home = self._directory / uid
        for container in _entries(home):
            for target in _entries(container):
                _release(target)
            with suppress(OSError):
                container.rmdir()
        with suppress(OSError):
            home.rmdir()

    def uids(self) -> list[str]:
        """Those of all Pods for which something is bound."""
        return [each.name for each in _entries(self._directory)]


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _release(target: Path) -> None:
    for _ in range(_MOST_LAYERS):
        if not _unmount(target):
            break
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        target.rmdir()
    elif os.path.getsize(target) == 0:
        target.unlink()


def _unmount(target: Path) -> bool:
    """Whether something was mounted there."""
    if _libc().umount2(os.fsencode(target), _DETACH | _NO_FOLLOW) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOENT):  # nothing is mounted there
        return False
    raise OSError(number, os.strerror(number), str(target))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
