"""Open a subPath of a volume by descriptor, so that a container cannot replace it with a link to elsewhere.

- Resolution starts at a descriptor of the volume and stays inside: `openat2` with RESOLVE_BENEATH and
  RESOLVE_NO_MAGICLINKS, or one O_NOFOLLOW step per component where `openat2` is not available (also on macOS).
- Links inside the volume are followed; a link out of it raises `SubPathError`.
- The result is a descriptor. Bind or read through it (`descriptor_path`): the name may refer to another file later
  (CVE-2017-1002101, CVE-2021-25741).

Standard library only: the shim, which runs without site packages, also imports this file.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import sys
from contextlib import suppress
from functools import cache
from typing import Final

_PATH_ONLY: Final = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)
_STEP: Final = _PATH_ONLY | os.O_NOFOLLOW | os.O_CLOEXEC

_OPENAT2: Final = 437  # the same number on every architecture that CPython supports
_NO_MAGIC_LINKS, _BENEATH = 0x02, 0x08
_MOST_LINKS: Final = 40  # as the kernel's own limit
_KERNEL_TRIES: Final = 3  # openat2 answers EAGAIN while something is renamed

_BIND, _RECURSIVE = 4096, 16384
_GET_PATH: Final = 50  # F_GETPATH of macOS
_LONGEST_PATH: Final = 1024


class SubPathError(ValueError):
    """A subPath is not inside its volume."""


def open_subpath(volume: str | os.PathLike[str], path: str, *, make: bool = False) -> int:
    """Open a file or directory of a volume; returns a descriptor that the caller closes.

    - On Linux the descriptor is O_PATH: good for binding, `fstat`, and for opening what it names again.
    - `make`: create missing directories, with the mode of the volume's own directory.
    - Raises `SubPathError` if the path, or a link on the way, leads out of the volume; `OSError` if it does not exist.
    """
    if path.startswith("/"):
        raise SubPathError(f"error SubPath `{path}` must not be an absolute path")
    if ".." in path.split("/"):
        raise SubPathError(f"unable to provision SubPath `{path}`: must not contain '..'")
    home = os.path.realpath(volume)
    root = os.open(home, _STEP)
    try:
        found = _open_in_kernel(root, path)
        return _walk(root, home, path, make) if found is None else found
    finally:
        os.close(root)


def read_subpath(volume: str | os.PathLike[str], path: str, most: int) -> bytes:
    """Read up to `most` bytes of a regular file of a volume; `OSError` for other files, which are not opened."""
    found = open_subpath(volume, path)
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):  # opening a pipe blocks, opening a device may have effects
            raise OSError(errno.EINVAL, "not a regular file", path)
        with open(descriptor_path(found) if sys.platform.startswith("linux") else os.dup(found), "rb") as file:
            return file.read(most)
    finally:
        os.close(found)


def descriptor_path(descriptor: int) -> str:
    """Return a path to the open file itself, independent of its name. Linux, for this process."""
    return f"/proc/self/fd/{descriptor}"


def path_of(descriptor: int) -> str:
    """Return the current name of an open file, for display and for interfaces that need a name."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(descriptor, _GET_PATH, bytes(_LONGEST_PATH)).rstrip(b"\0"))
    return os.readlink(descriptor_path(descriptor))


def bind(descriptor: int, target: str | os.PathLike[str], *, recursive: bool) -> None:
    """Bind-mount an open file or directory. `recursive`: include mounts below it."""
    source, to = os.fsencode(descriptor_path(descriptor)), os.fsencode(target)
    flags = _BIND | (_RECURSIVE if recursive else 0)
    if _libc().mount(source, to, None, flags, None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fspath(target))


# Resolving


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _openat2(root: int, path: str) -> int:
    how = _OpenHow(_PATH_ONLY | os.O_CLOEXEC, 0, _BENEATH | _NO_MAGIC_LINKS)
    result: int = _libc().syscall(_OPENAT2, root, os.fsencode(path), ctypes.byref(how), ctypes.sizeof(how))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return result


@cache
def _kernel_resolves() -> bool:
    """Return whether openat2 is available and not blocked by seccomp."""
    if not sys.platform.startswith("linux"):
        return False
    root = os.open("/", _STEP)
    try:
        os.close(_openat2(root, "."))
    except OSError:
        return False
    finally:
        os.close(root)
    return True


def _open_in_kernel(root: int, path: str) -> int | None:
    """Resolve with openat2; None if that fails: missing, or behind an absolute link into the volume."""
    if not _kernel_resolves():
        return None
    for _ in range(_KERNEL_TRIES):
        try:
            return _openat2(root, path or ".")
        except OSError as error:
            if error.errno != errno.EAGAIN:
                return None
    return None


def _walk(root: int, home: str, path: str, make: bool) -> int:
    """Open the path component by component, each from the descriptor of its parent."""
    todo = path.split("/")[::-1]
    opened = [os.dup(root)]  # descriptors from the volume's root to the current directory
    links, made = 0, False
    try:
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":  # from the target of a link
                if len(opened) == 1:
                    raise _outside(path)
                os.close(opened.pop())
                continue
            try:
                found = _step(opened[-1], part)
            except FileNotFoundError:
                if not make:
                    raise
                with suppress(FileExistsError):
                    os.mkdir(part, os.fstat(root).st_mode & 0o7777, dir_fd=opened[-1])
                    made = True
                todo.append(part)
                links += 1  # bounds the loop if a name is created and removed repeatedly
            else:
                if isinstance(found, int):
                    opened.append(found)
                    continue
                links += 1
                if found.startswith("/"):
                    inside = _relative(found, home)
                    if inside is None:
                        raise _outside(path)
                    found = inside
                    while len(opened) > 1:
                        os.close(opened.pop())
                todo.extend(found.split("/")[::-1])
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        if made:
            _set_mode(opened[-1], os.fstat(root).st_mode & 0o7777)
        return opened.pop()
    finally:
        for each in opened:
            os.close(each)


def _step(directory: int, name: str) -> int | str:
    """Return the descriptor of a file or directory, or the target of a link."""
    for _ in range(_MOST_LINKS):  # a container may swap the two repeatedly
        try:
            found = os.open(name, _STEP, dir_fd=directory)
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
        else:
            if not stat.S_ISLNK(os.fstat(found).st_mode):
                return found
            os.close(found)
        try:
            return os.readlink(name, dir_fd=directory)
        except OSError as error:
            if error.errno != errno.EINVAL:  # no longer a link: retry
                raise
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)


def _set_mode(descriptor: int, mode: int) -> None:
    """Set the mode of a created directory, regardless of the umask."""
    try:
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
    except NotADirectoryError:  # replaced meanwhile
        return
    try:
        os.fchmod(directory, mode)
    finally:
        os.close(directory)


def _relative(target: str, home: str) -> str | None:
    """Convert an absolute path to one relative to the volume; None if it is outside."""
    if home == "/":
        return target.lstrip("/")
    return target[len(home) :].lstrip("/") if target == home or target.startswith(f"{home}/") else None


def _outside(path: str) -> SubPathError:
    return SubPathError(f"subPath {path} leads out of its volume")
