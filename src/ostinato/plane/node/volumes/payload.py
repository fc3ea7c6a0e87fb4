"""Atomic update of projected volumes, as kubelet's AtomicWriter: readers see the old files or the new ones.

- Each version has its own directory; the link `..data` points to the current one and is replaced atomically. Each file
  is a link through `..data`.
- Files are accessed through a descriptor of the volume without following links: whatever a container has put there is
  replaced or removed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.node.volumes.trees import remove_tree, walk

_DATA: Final = "..data"
_NEXT: Final = "..data_tmp"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READABLE_BY_GROUP: Final = 0o440
_DIRECTORY_OF_GROUP: Final = 0o2550


class File(msgspec.Struct, frozen=True):
    """A projected file. `user`: its owner. Defaults to the agent's user."""

    content: bytes
    mode: int
    user: int | None = None


def write(directory: Path, files: Mapping[str, File], name: str, group: int | None = None) -> bool:
    """Write files by path; return whether anything changed.

    - `name`: unique name of this version.
    - `group`: fsGroup, which can read all files.
    """
    with _opened(os.fspath(directory)) as home:
        current = _version(home)
        if current is not None and _is_there(home, current, files, group):
            return False
        fresh = f"..{name}"
        os.mkdir(fresh, 0o755, dir_fd=home)
        with _opened(fresh, home) as version:
            for path, file in files.items():
                _write(version, path.split("/"), file, group)
            _give_directory(version, group)
        _give_directory(home, group)
        _discard(home, _NEXT)
        os.symlink(fresh, _NEXT, dir_fd=home)
        if current is None:
            _discard(home, _DATA)
        os.replace(_NEXT, _DATA, src_dir_fd=home, dst_dir_fd=home)
        tops = {path.partition("/")[0] for path in files}
        for top in tops:
            _link(home, top)
        for each in os.listdir(home):
            if each not in tops and each not in (_DATA, fresh):
                _discard(home, each)
    return True


def _version(home: int) -> str | None:
    """Return the directory that `..data` points to; None if it is not a version of this volume."""
    try:
        target = os.readlink(_DATA, dir_fd=home)
    except OSError:
        return None
    is_version = target.startswith("..") and len(target) > 2 and "/" not in target and target not in (_DATA, _NEXT)
    return target if is_version else None


def _is_there(home: int, version: str, files: Mapping[str, File], group: int | None) -> bool:
    try:
        with _opened(version, home) as root:
            return sum(1 for _, name, _ in walk(root) if name) == len(files) and all(
                _is_equal(root, path.split("/"), file, group) for path, file in files.items()
            )
    except OSError:  # replaced by a link or another type of file
        return False


def _is_equal(directory: int, parts: list[str], file: File, group: int | None) -> bool:
    if len(parts) > 1:
        with _opened(parts[0], directory) as below:
            return _is_equal(below, parts[1:], file, group)
    descriptor = os.open(parts[0], _READ, dir_fd=directory)
    with os.fdopen(descriptor, "rb") as opened:
        known = os.fstat(descriptor)
        return (
            stat.S_ISREG(known.st_mode)
            and stat.S_IMODE(known.st_mode) == _mode(file, group)
            and (group is None or known.st_gid == group)
            and (file.user is None or known.st_uid == file.user)
            and known.st_size == len(file.content)
            and opened.read(len(file.content) + 1) == file.content
        )


def _write(directory: int, parts: list[str], file: File, group: int | None) -> None:
    if len(parts) > 1:
        with suppress(FileExistsError):
            os.mkdir(parts[0], 0o755, dir_fd=directory)
        with _opened(parts[0], directory) as below:
            _write(below, parts[1:], file, group)
            _give_directory(below, group)
        return
    descriptor = os.open(parts[0], _CREATE, 0o600, dir_fd=directory)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(file.content)
        if group is not None or file.user is not None:
            os.fchown(descriptor, -1 if file.user is None else file.user, -1 if group is None else group)
        os.fchmod(descriptor, _mode(file, group))


def _mode(file: File, group: int | None) -> int:
    return file.mode | (0 if group is None else _READABLE_BY_GROUP)


def _give_directory(directory: int, group: int | None) -> None:
    if group is not None:
        os.fchown(directory, -1, group)
        os.fchmod(directory, stat.S_IMODE(os.fstat(directory).st_mode) | _DIRECTORY_OF_GROUP)


def _link(home: int, top: str) -> None:
    target = f"{_DATA}/{top}"
    with suppress(OSError):
        if os.readlink(top, dir_fd=home) == target:
            return
    _discard(home, top)
    os.symlink(target, top, dir_fd=home)


def _discard(home: int, name: str) -> None:
    """Remove a file, link or directory of the volume, if it exists."""
    remove_tree(name, home)


@contextmanager
def _opened(name: str, directory: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, _DIRECTORY, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
