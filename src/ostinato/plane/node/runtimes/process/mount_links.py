"""Symbolic links in place of volume mounts, for containers without a mount namespace (the agent does not run as root).

A link is created at each mountPath that does not exist. Two containers cannot use one mountPath for different volumes.
Mounts that every container requests by default are skipped on conflict; otherwise no two containers could run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ostinato.plane.node.private_files import write_file
from ostinato.plane.node.runtimes import Mount, StartError
from ostinato.plane.node.runtimes.process.isolation import target_of
from ostinato.plane.node.volumes.subpaths import SubPathError, open_subpath, path_of

# Requested by every container by default; skipped if they cannot be linked.
OPTIONAL_TARGETS: Final = frozenset({"/var/run/secrets/kubernetes.io/serviceaccount", "/dev/termination-log"})
_JOURNAL: Final = "mount_links.json"


class MountLinks:
    def __init__(self, directory: Path) -> None:
        self._file = directory / "mount_links.json"
        self._made: list[str] = _read(self._file)  # created paths, in order
        self._users: dict[str, set[Path]] = {}  # directories of the containers that use each mountPath
        for journal in directory.glob(f"pods/*/containers/*/*/{_JOURNAL}"):
            for target in _read(journal):
                self._users.setdefault(target, set()).add(journal.parent)

    def add(self, container: Path, mounts: Sequence[Mount]) -> None:
        """Create the links of a container's mounts; `StartError` if a mountPath is in use."""
        targets = [target_of(each) for each in mounts]
        write_file(container / _JOURNAL, msgspec.json.encode(targets))
        made = len(self._made)
        try:
            for mount, target in zip(mounts, targets, strict=True):
                self._users.setdefault(target, set()).add(container)
                self._link(container, target, _path_of(mount))
        except SubPathError as error:
            raise StartError("CreateContainerConfigError", str(error)) from None
        except OSError as error:
            raise StartError("CreateContainerError", f"mountPath {error.filename}: {error.strerror}") from None
        finally:
            if len(self._made) != made:
                self._save()

    def remove(self, container: Path) -> None:
        """Remove the links that only this container used."""
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

    def _link(self, container: Path, target: str, source: Path) -> None:
        if os.path.islink(target) and os.readlink(target) == str(source):
            return
        if os.path.lexists(target):
            others = self._users[target] - {container}
            if others or target not in self._made:
                if target in OPTIONAL_TARGETS:
                    return
                who = "another container" if others else "this machine"
                message = f"mountPath {target} is in use by {who}: without root, containers share all paths"
                raise StartError("CreateContainerError", message)
            os.unlink(target)
            self._made.remove(target)
        try:
            self._make_directories(os.path.dirname(target))
            os.symlink(source, target)
        except PermissionError:
            if target in OPTIONAL_TARGETS:
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
        write_file(self._file, msgspec.json.encode(self._made))


def _path_of(mount: Mount) -> Path:
    """Return the target of the link.

    Without root a container already has the agent's permissions: it gains nothing by replacing a subPath with a link.
    """
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
