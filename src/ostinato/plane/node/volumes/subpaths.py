"""Open a part of a volume (subPath) by descriptor, so that no container can swap it for a link to elsewhere.

- Every step starts from a descriptor of the volume and never leaves the volume: `openat2` with RESOLVE_BENEATH and
  RESOLVE_NO_MAGICLINKS, or one O_NOFOLLOW step per component where the kernel has no `openat2` (also on macOS).
- Links inside the volume are followed; one that leads out of it raises `SubPathError`.
- The result is a descriptor. Bind or read it through the descriptor (`descriptor_path`); its name may mean another
  file a moment later (CVE-2017-1002101, CVE-2021-25741).

Standard library only: the shim, which runs without site packages, imports this file too.
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
    """A subPath that is not inside its volume; the message says why."""


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
    """The first bytes of a regular file of a volume; an `OSError` for anything else, which is not opened at all."""
    found = open_subpath(volume, path)
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):  # a pipe would wait for a writer, a device might act
            raise OSError(errno.EINVAL, "not a regular file", path)
        with open(descriptor_path(found) if sys.platform.startswith("linux") else os.dup(found), "rb") as file:
            return file.read(most)
    finally:
        os.close(found)


def descriptor_path(descriptor: int) -> str:
    """A path that means exactly the open file, whatever its name means now. Linux, this process alone."""
    return f"/proc/self/fd/{descriptor}"


def path_of(descriptor: int) -> str:
    """The present name of an open file: for display, and where nothing but a name can be used."""
    if sys.platform == "darwin":
        return os.fsdecode(fcntl.fcntl(descriptor, _GET_PATH, bytes(_LONGEST_PATH)).rstrip(b"\0"))
    return os.readlink(descriptor_path(descriptor))


def bind(descriptor: int, target: str | os.PathLike[str], *, recursive: bool) -> None:
    """Bind an open file or directory to another place of this mount namespace.

    `recursive`: with what is mounted below it.
    """
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
    """Whether this kernel has openat2, and its sandbox, if any, allows it."""
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
    """None if the kernel did not find it: it may be missing, or behind an absolute link into the volume."""
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
    """Open one component after the other, each from the descriptor of the one before."""
    todo = path.split("/")[::-1]
    opened = [os.dup(root)]  # the directories from the volume's own down to the present one
    links, made = 0, False
    try:
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            if part == "..":  # of a link's target
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
                links += 1  # a name that is created and removed in turn must not keep us here
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
    """A descriptor of a file or directory, or the target of a link."""
    for _ in range(_MOST_LINKS):  # a container may exchange the two all the time
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
            if error.errno != errno.EINVAL:  # not a link any more: look again
                raise
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)


def _set_mode(descriptor: int, mode: int) -> None:
    """Give a directory that was just made its full mode, of which the umask took some."""
    try:
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=descriptor)
    except NotADirectoryError:  # it was replaced meanwhile
        return
    try:
        os.fchmod(directory, mode)
    finally:
        os.close(directory)


def _relative(target: str, home: str) -> str | None:
    """An absolute path below the volume, as a path of the volume."""
    if home == "/":
        return target.lstrip("/")
    return target[len(home) :].lstrip("/") if target == home or target.startswith(f"{home}/") else None


def _outside(path: str) -> SubPathError:
    return SubPathError(f"subPath {path} leads out of its volume")
