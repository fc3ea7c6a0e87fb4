"""Directory trees that containers have written: walked and removed without following a link.

- However deep a tree is nested, it takes one descriptor and no recursion.
- Nothing on another file system is visited, and what is mounted below is neither entered nor removed.
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
    """A file to read, unbuffered; an `OSError` for a link, which is not followed, a pipe, a device or a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
    return os.fdopen(descriptor, "rb", buffering=0)


def walk(root: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """All that is in a directory, and the directory itself last.

    Yields the descriptor of a directory, valid until the next step, with the name and status of each entry in it; and
    once its entries are done, with an empty name and its own status. Ends early if a container moves what is visited.
    """
    here = os.open(".", _DIRECTORY, dir_fd=root)
    known = os.fstat(here)
    names = os.listdir(here)
    above: list[tuple[os.stat_result, list[str]]] = []  # the directories on the way, and what is left of each
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
                except OSError:  # removed or exchanged meanwhile
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
    """The bytes that the contents of a directory take on disk; counting ends when it is more than enough."""
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
    """Remove a directory, and what is in it; of a link, the link alone. Harmless if there is nothing.

    What cannot be removed, because something is mounted there, stays.
    """
    try:
        root = os.open(path, _DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        return
    except OSError:  # a link or a file
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
    """Take each directory that is not empty to the top, so that none is ever deep; a mount point cannot be moved."""
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
    """Free names at the top of a tree that is being removed."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._last = 0

    def move(self, directory: int, name: str) -> str | None:
        """The new name of an entry at the top; None if it cannot be moved."""
        while True:
            self._last += 1
            to = f"..removed-{self._last}"
            try:
                os.rename(name, to, src_dir_fd=directory, dst_dir_fd=self._root)
            except OSError as error:
                if error.errno in _NOT_EMPTY or isinstance(error, NotADirectoryError | IsADirectoryError):
                    continue  # the name is taken
                return None
            return to
