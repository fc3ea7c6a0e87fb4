"""Input directories of ansible-runner: variables, inventory and artifacts of the runs for one object.

- Everything is created with mode 0700 or 0600: the variables hold the spec, the kubeconfig a token.
- The directory of an object is PLACE/GROUP/VERSION/KIND/NAMESPACE/NAME, as in ansible-operator; names of Kubernetes
  objects contain no separators. Its artifacts stay until `max_artifacts` newer runs, or the end of the operator.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from ostinato.api import accessors as access
from ostinato.api.gvk import GroupVersionKind, NamespacedName

Json = dict[str, Any]


class ArtifactsError(ValueError):
    """The directory for artifacts is not private."""


class RunnerDirectory:
    """The directory of all runs of an operator."""

    def __init__(self, place: Path | None = None) -> None:
        """`place`: kept at the end; must belong to this user alone. Defaults to None: a temporary directory."""
        self._is_temporary = place is None
        self.root = Path(tempfile.mkdtemp(prefix="ostinato-roles-")) if place is None else private_directory(place)

    def close(self) -> None:
        """Remove a temporary directory."""
        if self._is_temporary:
            shutil.rmtree(self.root, ignore_errors=True)

    def prepare(self, instance: Json, variables: Json, kubeconfig: str) -> Path:
        """Write the input of a run for an object, and return its directory."""
        home = self.home_of(access.gvk(instance), access.key(instance))
        for each in ("env", "inventory", "project"):
            _make(home / each, self.root)
        interpreter = sys.executable or "{{ansible_playbook_python}}"
        config = str(home / "kubeconfig")
        environment = {"K8S_AUTH_KUBECONFIG": config, "KUBECONFIG": config}
        _write(home / "kubeconfig", kubeconfig.encode())
        _write(home / "env" / "envvars", msgspec.json.encode(environment))
        _write(home / "env" / "extravars", msgspec.json.encode(variables))
        inventory = os.environ.get("ANSIBLE_INVENTORY", "")
        if not inventory:
            hosts = f"localhost ansible_connection=local ansible_python_interpreter={interpreter}\n"
            _write(home / "inventory" / "hosts", hosts.encode())
        elif Path(inventory).is_dir():
            shutil.copytree(inventory, home / "inventory", dirs_exist_ok=True)
        else:
            _write(home / "inventory" / "hosts", Path(inventory).read_bytes())
        return home

    def forget(self, home: Path, ident: str) -> None:
        """Remove the secrets of a run, and link its artifacts as the latest ones."""
        for each in (home / "kubeconfig", home / "env" / "extravars", home / "artifacts" / "latest"):
            each.unlink(missing_ok=True)
        if (home / "artifacts" / ident).is_dir():
            (home / "artifacts" / "latest").symlink_to(ident)

    def home_of(self, gvk: GroupVersionKind, key: NamespacedName) -> Path:
        """Return the directory of an object."""
        parts = (gvk.group or "core", gvk.version, gvk.kind, key.namespace or "_cluster", key.name)
        if any(not part or part in (".", "..") or "/" in part for part in parts):
            raise ValueError(f"{gvk.kind} {key}: not a name for a directory")
        return self.root.joinpath(*parts)

    def remove(self, gvk: GroupVersionKind, key: NamespacedName) -> None:
        """Remove the directory of an object that does not exist any more."""
        shutil.rmtree(self.home_of(gvk, key), ignore_errors=True)


def private_directory(place: Path) -> Path:
    """Return the directory, created if necessary. Raises `ArtifactsError` if others can read or replace it."""
    place.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise ArtifactsError(f"{place}: not a directory; name one that belongs to this user alone")
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ArtifactsError(f"{place}: other users have access; use a directory of this user with mode 0700")
    return place.absolute()


def _make(directory: Path, root: Path) -> None:
    missing = [each for each in (directory, *directory.parents) if each.is_relative_to(root) and not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700)


def _write(path: Path, content: bytes) -> None:
    """Replace a file. The old one is removed: it is never written through a link."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
