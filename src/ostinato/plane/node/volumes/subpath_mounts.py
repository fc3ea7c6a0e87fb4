"""Bind mounts of subPaths, for runtimes that take paths instead of descriptors (CRI), as kubelet's `volume-subpaths`.

The subPath is opened inside its volume and bound by descriptor to `UID/CONTAINER/INDEX`, which containers cannot
access: that path refers to the checked file for as long as the bind exists.

- Bound files are only unmounted, never deleted: directories are removed with `rmdir`.
- Binds are found by their path, so that a restarted agent releases those of its predecessor.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from ostinato.plane.node.volumes.mounts import unmount
from ostinato.plane.node.volumes.subpaths import bind, open_subpath


class SubPathMounts:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def bind(self, uid: str, container: str, index: int, volume: Path, sub_path: str) -> Path:
        """Bind a subPath and return the path of the bind; releases the bind of an earlier attempt.

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
            bind(found, target, recursive=False)  # unmounting a recursive bind would propagate to the original's mounts
        finally:
            os.close(found)
        return target

    def release(self, uid: str) -> None:
        """Release all binds of a Pod."""
        home = self._directory / uid
        for container in _entries(home):
            for target in _entries(container):
                _release(target)
            with suppress(OSError):
                container.rmdir()
        with suppress(OSError):
            home.rmdir()

    def uids(self) -> list[str]:
        """Return the uids of all Pods with binds."""
        return [each.name for each in _entries(self._directory)]


def _entries(directory: Path) -> list[Path]:
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


def _release(target: Path) -> None:
    unmount(target)
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        target.rmdir()
    elif os.path.getsize(target) == 0:
        target.unlink()
