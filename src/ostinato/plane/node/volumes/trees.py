"""Walk and remove directory trees written by containers, without following links.

- Any depth takes one descriptor and no recursion.
- Other file systems are not visited; mounts below are neither entered nor removed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import BinaryIO, Final

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_EMPTY: Final = (errno.ENOTEMPTY, errno.EEXIST)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file unbuffered; `OSError` for a link, pipe, device or directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return os.fdopen(descriptor, "rb", buffering=0)


def walk(root: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """Yield (directory descriptor, name, status) for each entry below `root`, and for each directory last.

    A directory itself is yielded after its entries with an empty name. The descriptor is valid until the next step.
    Ends early if a container moves a visited directory.
    """
    here = os.open(".", _DIRECTORY, dir_fd=root)
    known = os.fstat(here)
    names = os.listdir(here)
    above: list[tuple[os.stat_result, list[str]]] = []  # parent directories, and their remaining names
    try:
        while True:
            if names:
                name = names.pop()
                try:
                    status = os.stat(name, dir_fd=here, follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        if status.st_dev == known.st_dev:
                            below = os.open(name, _DIRECTORY, dir_fd=here)
                            os.close(here)
                            here = below
                            above.append((known, names))
                            known, names = os.fstat(here), os.listdir(here)
                        continue
                except OSError:  # removed or replaced meanwhile
                    continue
                yield here, name, status
                continue
            yield here, "", known
            if not above:
                return
            up = os.open("..", _DIRECTORY, dir_fd=here)
            os.close(here)
            here = up
            known, names = above.pop()
            if not os.path.samestat(os.fstat(here), known):
                return
    finally:
        os.close(here)


def size_of(path: str | os.PathLike[str], enough: int) -> int:
    """Return the disk usage of a directory in bytes; counting stops above `enough`."""
    size = 0
    try:
        root = os.open(path, _DIRECTORY)
    except OSError:
        return 0
    try:
        with suppress(OSError):
            own = os.fstat(root)
            for _, _, status in walk(root):
                size += 0 if os.path.samestat(status, own) else status.st_blocks * 512
                if size > enough:
                    break
    finally:
        os.close(root)
    return size


def remove_tree(path: str | os.PathLike[str], directory: int | None = None) -> None:
    """Remove a directory recursively, a file or a link; does nothing if it does not exist.

    Mount points cannot be removed and stay.
    """
    try:
        root = os.open(path, _DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        return
    except OSError:  # a link or file
        with suppress(OSError):
            os.unlink(path, dir_fd=directory)
        return
    try:
        _empty(root)
    finally:
        os.close(root)
    with suppress(OSError):
        os.rmdir(path, dir_fd=directory)


def _empty(root: int) -> None:
    """Move each non-empty directory to the top, so that paths stay short; mount points cannot be moved."""
    names = _Names(root)
    stuck: set[str] = set()
    while todo := [each for each in os.listdir(root) if each not in stuck]:
        for name in todo:
            if _is_removed(root, name):
                continue
            moved = names.move(root, name)
            if moved is None:
                stuck.add(name)
                continue
            try:
                here = os.open(moved, _DIRECTORY, dir_fd=root)
            except OSError:
                stuck.add(moved)
                continue
            try:
                for each in os.listdir(here):
                    if not _is_removed(here, each):
                        names.move(here, each)
            finally:
                os.close(here)
            if not _is_removed(root, moved):
                stuck.add(moved)


def _is_removed(directory: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=directory)
    except FileNotFoundError:
        return True
    except OSError:
        with suppress(OSError):
            os.rmdir(name, dir_fd=directory)
            return True
        return False
    return True


class _Names:
    """Unused names at the top of a tree that is being removed."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._last = 0

    def move(self, directory: int, name: str) -> str | None:
        """Move an entry to the top and return its new name; None if it cannot be moved."""
        while True:
            self._last += 1
            to = f"..removed-{self._last}"
            try:
                os.rename(name, to, src_dir_fd=directory, dst_dir_fd=self._root)
            except OSError as error:
                if error.errno in _NOT_EMPTY or isinstance(error, NotADirectoryError | IsADirectoryError):
                    continue  # the name exists
                return None
            return to
