"""The lower layer of every container's root file system: mount points, and the files of /etc that programs need.

A template is named by the hash of its content and immutable, because running containers have it mounted. A change of
/etc, or of the agent, creates a new one. Templates that no container uses are removed when the runtime starts.
"""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from ostinato.plane.node.private_files import make_directory

# Files for looking up users, hosts, libraries, certificates and time zones. Other files of /etc may be secret.
_FILES: Final = (
    *("passwd", "group", "nsswitch.conf", "host.conf", "gai.conf", "protocols", "services", "networks", "shells"),
    *("localtime", "timezone", "ld.so.cache", "ld.so.conf", "os-release", "debian_version", "mime.types", "inputrc"),
    *("profile", "bash.bashrc", "ssl/openssl.cnf", "ld-musl-*.path", "alternatives/*", "ld.so.conf.d/*", "terminfo/*"),
    *("java*/**", "python*/**", "crypto-policies/**"),
)
# These may change later: mounted, or copied when a container starts.
LIVE_DIRECTORIES: Final = (
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
)
_DIRECTORIES: Final = ("dev", "proc", "sys", "run", "home", "root", "tmp", "srv", "var/tmp", "var/lib", "var/log")
_MODES: Final = {"root": 0o700, "tmp": 0o1777, "var/tmp": 0o1777}


class Templates:
    def __init__(self, directory: Path, visible: Sequence[str]) -> None:
        """`visible`: host paths that are mounted into every container."""
        self._directory = directory
        self._visible = visible
        self._current: Path | None = None

    @property
    def is_built(self) -> bool:
        return self._current is not None

    @property
    def current(self) -> Path:
        """The template for new containers."""
        assert self._current is not None, "built before use"
        return self._current

    def build(self) -> None:
        """Build the current template. Blocks for some time."""
        self._current = self._build()

    def prune(self, used: Collection[str]) -> None:
        """Remove all templates except `used` ones."""
        for each in self._directory.glob("*"):
            if str(each) not in used and each != self._current:
                shutil.rmtree(each, ignore_errors=True)

    def _build(self) -> Path:
        make_directory(self._directory)
        part = self._directory / "part"
        shutil.rmtree(part, ignore_errors=True)
        for name in _DIRECTORIES:
            _make(part / name)
        for name, mode in _MODES.items():
            if not any(
                path.startswith(f"/{name}/") for path in self._visible
            ):  # otherwise every user must be able to traverse it
                (part / name).chmod(mode)
        (part / "var" / "run").symlink_to("../run")
        for pattern in _FILES:
            for path in glob.glob(f"/etc/{pattern}", recursive=True):
                with suppress(OSError):
                    _copy(path, part)
        for path in (*self._visible, *LIVE_DIRECTORIES):
            if os.path.islink(path):
                _make(_inside(part, path).parent)
                with suppress(FileExistsError):
                    _inside(part, path).symlink_to(os.readlink(path))
            elif os.path.isdir(path):
                _make(_inside(part, path))
        whole = self._directory / _digest(part)
        if whole.exists():
            shutil.rmtree(part)
        else:
            part.rename(whole)
        return whole


def _inside(root: Path, path: str) -> Path:
    return root / path.lstrip("/")


def _make(path: Path) -> None:
    """Create a directory and its parents, world-readable regardless of the umask."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir()
            each.chmod(0o755)


def _copy(path: str, root: Path) -> None:
    """Copy a world-readable file; a link into /usr, which containers see, stays a link."""
    to = _inside(root, path)
    real = os.path.realpath(path)
    if os.path.islink(path) and real.startswith("/usr/"):
        _make(to.parent)
        to.symlink_to(real)
        return
    mode = os.stat(path).st_mode
    if stat.S_ISREG(mode) and mode & stat.S_IROTH:
        _make(to.parent)
        shutil.copyfile(path, to)
        to.chmod(0o755 if mode & stat.S_IXOTH else 0o644)


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    for each in sorted(root.rglob("*")):
        digest.update(f"{each.relative_to(root)}\0{each.lstat().st_mode:o}\0".encode(errors="surrogateescape"))
        if each.is_symlink():
            digest.update(os.readlink(each).encode(errors="surrogateescape"))
        elif each.is_file():
            digest.update(each.read_bytes())
    return digest.hexdigest()[:32]
