"""Where containers that share this machine's files see their volumes.

As root, each container has a mount namespace of its own, in which volumes are bound to their places: only the places
themselves, empty directories and files, are made on this machine, and taken away when no container uses them any more.
Otherwise a symbolic link is put at each place, if that is free; two containers cannot see different things at one. What
all containers ask for is left out where it cannot be put: else no two of them could run.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.node.runtimes import Mount, StartError
from ostinato.plane.node.volumes.subpaths import SubPathError, open_subpath, path_of

# Every container asks for these, unless it says otherwise; who does not find them there has done without.
ASKED_FOR_BY_ALL: Final = frozenset({"/var/run/secrets/kubernetes.io/serviceaccount", "/dev/termination-log"})
_JOURNAL: Final = "places.json"


class Places:
    def __init__(self, directory: Path, own_mounts: bool) -> None:
        self._own_mounts = own_mounts
        self._file = directory / "places.json"
        self._made: list[str] = _read(self._file)  # paths that were made, in this order
        self._users: dict[str, set[Path]] = {}  # of each place, the directories of the containers that use it
        for journal in directory.glob(f"pods/*/containers/*/*/{_JOURNAL}"):
            for target in _read(journal):
                self._users.setdefault(target, set()).add(journal.parent)

    def take(self, container: Path, mounts: Sequence[Mount]) -> list[tuple[str, str, str, bool]]:
        """Make the places of a container's mounts; what is left for it to bind. A `StartError` if one is taken.

        A bind is volume, subPath, target, and whether it is read-only.
        """
        targets = [_normal(each) for each in mounts]
        (container / _JOURNAL).write_bytes(msgspec.json.encode(targets))
        made = len(self._made)
        binds = []
        try:
            for mount, target in zip(mounts, targets, strict=True):
                self._users.setdefault(target, set()).add(container)
                if self._own_mounts:
                    self._make(target, mount)
                    binds.append((str(mount.source), mount.sub_path, target, mount.read_only))
                else:
                    self._link(container, target, _path_of(mount))
        except SubPathError as error:
            raise StartError("CreateContainerConfigError", str(error)) from None
        except OSError as error:
            raise StartError("CreateContainerError", f"mountPath {error.filename}: {error.strerror}") from None
        finally:
            if len(self._made) != made:
                self._save()
        return binds

    def leave(self, container: Path) -> None:
        """The container has ended."""
        for target in _read(container / _JOURNAL):
            users = self._users.get(target, set())
            users.discard(container)
            if not users:
                self._users.pop(target, None)
        (container / _JOURNAL).unlink(missing_ok=True)
        free = [path for path in self._made if not any(_is_in(target, path) for target in self._users)]
        for path in reversed(free):
            with suppress(OSError):
                _remove(path)
        if free:
            self._made = [path for path in self._made if path not in set(free)]
            self._save()

    def _make(self, target: str, mount: Mount) -> None:
        self._make_directories(os.path.dirname(target))
        if os.path.lexists(target):
            return
        if _is_directory(mount):
            os.mkdir(target)
        else:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        self._made.append(target)

    def _link(self, container: Path, target: str, source: Path) -> None:
        if os.path.islink(target) and os.readlink(target) == str(source):
            return
        if os.path.lexists(target):
            others = self._users[target] - {container}
            if others or target not in self._made:
                if target in ASKED_FOR_BY_ALL:
                    return
                who = "another container" if others else "this machine"
                message = f"mountPath {target} is taken by {who}: without root, containers share all paths"
                raise StartError("CreateContainerError", message)
            os.unlink(target)
            self._made.remove(target)
        try:
            self._make_directories(os.path.dirname(target))
            os.symlink(source, target)
        except PermissionError:
            if target in ASKED_FOR_BY_ALL:
                return
            raise
        self._made.append(target)

    def _make_directories(self, path: str) -> None:
        missing = []
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for each in reversed(missing):
            os.mkdir(each)
            self._made.append(each)

    def _save(self) -> None:
        part = self._file.with_suffix(".part")
        part.write_bytes(msgspec.json.encode(self._made))
        part.replace(self._file)


def _normal(mount: Mount) -> str:
    target = os.path.normpath(mount.target)
    if not target.startswith("/") or target in ("/", "//"):
        raise StartError("CreateContainerError", f"mountPath {mount.target}: want an absolute path below the root")
    return target


def _is_directory(mount: Mount) -> bool:
    if not mount.sub_path:
        return mount.source.is_dir()
    found = open_subpath(mount.source, mount.sub_path)
    try:
        return stat.S_ISDIR(os.fstat(found).st_mode)
    finally:
        os.close(found)


def _path_of(mount: Mount) -> Path:
    """What a link leads to. Without root a container has the agent's own rights: it gains nothing by an exchange."""
    if not mount.sub_path:
        return mount.source
    found = open_subpath(mount.source, mount.sub_path)
    try:
        return Path(path_of(found))
    finally:
        os.close(found)


def _is_in(target: str, path: str) -> bool:
    return target == path or target.startswith(f"{path}/")


def _remove(path: str) -> None:
    if os.path.islink(path):
        os.unlink(path)
    elif os.path.isdir(path):
        os.rmdir(path)
    elif os.path.getsize(path) == 0:
        os.unlink(path)


def _read(file: Path) -> list[str]:
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[str])
    except (FileNotFoundError, msgspec.DecodeError):
        return []
