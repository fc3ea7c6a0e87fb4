"""Private directories and files of a node, readable by its user only: they contain Secrets and commands of Pods."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_DIRECTORY: Final = 0o700
_FILE: Final = 0o600
_OTHERS: Final = 0o077


def make_directory(path: Path) -> Path:
    """Create a directory and missing parents with mode 0700; tighten the mode of an existing one."""
    missing = [path]
    while not missing[-1].parent.is_dir():
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        try:
            each.mkdir(mode=_DIRECTORY)
        except FileExistsError:
            close_to_others(each)
    return path


def close_to_others(path: Path) -> None:
    """Remove the permissions of group and others from a file or directory of this user; links are not changed."""
    found = path.lstat()
    if found.st_uid == os.geteuid() and found.st_mode & _OTHERS and not stat.S_ISLNK(found.st_mode):
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def write_file(path: Path, data: bytes) -> None:
    """Replace a file atomically, with mode 0600."""
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _FILE)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, _FILE)
        file.write(data)
    part.replace(path)
