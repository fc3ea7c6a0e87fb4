"""Unpack the layers of an image into a directory, one over the other.

- Names are resolved inside of the directory, links included, step by step on descriptors: no layer writes outside.
- Whiteouts remove what lower layers have: `.wh.NAME` one entry, `.wh..wh..opq` all entries of its directory.
- Owners, modes, times and file capabilities are kept. Device files are left out: a container gets those of the runtime.
"""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol, Self, cast

from ostinato.plane.node.images.image import ImageError

_WHITEOUT: Final = ".wh."
_OPAQUE: Final = ".wh..wh..opq"
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS: Final = 40  # as the kernel's own limit
_XATTR: Final = "SCHILY.xattr."
_CHUNK: Final = 1 << 20


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def apply_layer(stream: Readable, root: Path) -> int:
    """Apply an uncompressed layer to a directory; return the size of its files. `ImageError` if it is malformed."""
    try:
        with tarfile.open(fileobj=cast("Any", stream), mode="r|") as archive, _Layer(root) as layer:
            return sum(layer.apply(member, archive) for member in archive)
    except tarfile.TarError as error:
        raise ImageError(f"the layer is not a tar archive: {error}") from None
    except UnicodeError as error:
        raise ImageError(f"the layer has a name that is not text: {error}") from None


class _Layer:
    def __init__(self, root: Path) -> None:
        self._root = os.open(root, _DIRECTORY)
        self._added: set[str] = set()  # by this layer: opaque whiteouts keep these

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)

    def apply(self, member: tarfile.TarInfo, archive: tarfile.TarFile) -> int:
        parts = _parts(member.name)
        if not parts:
            if member.isdir():
                _set_attributes(self._root, member)
            return 0
        *parents, name = parts
        parent = self._open(parents)
        try:
            if name == _OPAQUE:
                self._clear(parent, "/".join(parents))
                return 0
            if name.startswith(_WHITEOUT):
                _remove(parent, name.removeprefix(_WHITEOUT))
                return 0
            self._added.update("/".join(parts[: depth + 1]) for depth in range(len(parts)))
            return self._add(member, archive, parent, name)
        finally:
            os.close(parent)

    def _add(self, member: tarfile.TarInfo, archive: tarfile.TarFile, parent: int, name: str) -> int:
        if member.isdir():
            _make_directory(parent, name)
            found = os.open(name, _DIRECTORY, dir_fd=parent)
            try:
                _set_attributes(found, member)
            finally:
                os.close(found)
            return 0
        if member.ischr() or member.isblk():
            return 0
        if member.islnk():
            self._link(member, parent, name)
            return 0
        _remove(parent, name)
        if member.issym():
            os.symlink(member.linkname, name, dir_fd=parent)
            os.chown(name, member.uid, member.gid, dir_fd=parent, follow_symlinks=False)
            return 0
        if member.isfifo():
            os.mkfifo(name, 0o600, dir_fd=parent)
            os.chown(name, member.uid, member.gid, dir_fd=parent, follow_symlinks=False)
            os.chmod(name, stat.S_IMODE(member.mode), dir_fd=parent)
            return 0
        content = archive.extractfile(member)
        if content is None:
            raise ImageError(f"{member.name}: unknown type {member.type!r} in the layer")
        with os.fdopen(os.open(name, _NEW_FILE, 0o600, dir_fd=parent), "wb") as file:
            shutil.copyfileobj(content, file, _CHUNK)
            file.flush()
            _set_attributes(file.fileno(), member)
        return member.size

    def _link(self, member: tarfile.TarInfo, parent: int, name: str) -> None:
        *parents, target = _parts(member.linkname) or [""]
        place = self._open(parents)
        try:
            if (os.fstat(place).st_ino, target) == (os.fstat(parent).st_ino, name):
                return
            _remove(parent, name)
            os.link(target, name, src_dir_fd=place, dst_dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            message = f"{member.name}: the hard link's target {member.linkname} is not in the image"
            raise ImageError(message) from None
        finally:
            os.close(place)

    def _open(self, parts: list[str]) -> int:
        """Open a directory, which is created if it does not exist. Links lead to places inside of the root."""
        waiting = list(reversed(parts))
        opened = [os.dup(self._root)]  # the directories on the way, for ".." of links
        links = 0
        try:
            while waiting:
                part = waiting.pop()
                if part == "..":
                    if len(opened) > 1:
                        os.close(opened.pop())
                    continue
                try:
                    target = os.readlink(part, dir_fd=opened[-1])
                except FileNotFoundError:
                    os.mkdir(part, 0o755, dir_fd=opened[-1])
                except OSError:  # not a link
                    pass
                else:
                    links += 1
                    if links > _MOST_LINKS:
                        raise ImageError(f"{'/'.join(parts)}: too many symbolic links")
                    if target.startswith("/"):
                        while len(opened) > 1:
                            os.close(opened.pop())
                    waiting += [each for each in reversed(target.split("/")) if each not in ("", ".")]
                    continue
                opened.append(os.open(part, _DIRECTORY, dir_fd=opened[-1]))
            return opened.pop()
        except NotADirectoryError:
            raise ImageError(f"{'/'.join(parts)}: is not a directory in the image") from None
        finally:
            for each in opened:
                os.close(each)

    def _clear(self, parent: int, path: str) -> None:
        for name in os.listdir(parent):
            if f"{path}/{name}".lstrip("/") not in self._added:
                _remove(parent, name)


def _parts(name: str) -> list[str]:
    parts = [each for each in name.split("/") if each not in ("", ".")]
    if ".." in parts or "\0" in name:
        raise ImageError(f"{name}: the name leads out of the image")
    return parts


def _make_directory(parent: int, name: str) -> None:
    """Keep a directory, replace anything else."""
    with suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode):
            return
        os.unlink(name, dir_fd=parent)
    os.mkdir(name, 0o755, dir_fd=parent)


def _remove(parent: int, name: str) -> None:
    if name in ("", ".", "..") or "/" in name:
        raise ImageError(f"{name!r}: is not a name in a directory")
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        shutil.rmtree(name, dir_fd=parent)
    except FileNotFoundError:
        pass


def _set_attributes(descriptor: int, member: tarfile.TarInfo) -> None:
    os.fchown(descriptor, member.uid, member.gid)
    os.fchmod(descriptor, stat.S_IMODE(member.mode))  # after the owner, whose change clears setuid
    for key, value in member.pax_headers.items():
        if key.startswith((_XATTR + "security.capability", _XATTR + "user.")):
            with suppress(OSError):  # the file system has no such attributes
                os.setxattr(descriptor, key.removeprefix(_XATTR), value.encode("utf-8", "surrogateescape"))
    os.utime(descriptor, (member.mtime, member.mtime))
