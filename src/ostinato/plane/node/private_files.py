"""Directories and files of a node that only its own user may read: Pods' Secrets and start commands are among them."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

_DIRECTORY: Final = 0o700
_FILE: Final = 0o600
_OTHERS: Final = 0o077


def make_directory(path: Path) -> Path:
    """Have a directory there; it, and parents that are missing, with mode 0700. One that others may read is closed."""
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
    """Take the rights of group and others to a directory or file of this user's; links are left alone."""
    found = path.lstat()
    if found.st_uid == os.geteuid() and found.st_mode & _OTHERS and not stat.S_ISLNK(found.st_mode):
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def write_file(path: Path, data: bytes) -> None:
    """Replace a file, as a whole, by one with mode 0600."""
    part = path.with_name(f"{path.name}.part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, _FILE)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, _FILE)
        file.write(data)
    part.replace(path)
