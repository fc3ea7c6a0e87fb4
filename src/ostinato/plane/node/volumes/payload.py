"""Directories whose files change together: whoever reads sees all of the old or all of the new.

The files are in a directory of their own, `..data` is a link to it that is exchanged, and each file a link through it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec


class File(msgspec.Struct, frozen=True):
    content: bytes
    mode: int


def write(directory: Path, files: Mapping[str, File], name: str) -> bool:
    """Have these files there, by their paths; whether anything was changed. `name` is unique to this version."""
    current = directory / "..data"
    if _is_there(current, files):
        return False
    fresh = directory / f"..{name}"
    fresh.mkdir(mode=0o755)
    for path, file in files.items():
        target = fresh / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)
    old = os.readlink(current) if current.is_symlink() else None
    link = directory / "..data_tmp"
    with suppress(FileNotFoundError):
        link.unlink()
    link.symlink_to(fresh.name)
    link.replace(current)
    tops = {path.partition("/")[0] for path in files}
    for top in tops:
        if not (directory / top).is_symlink():
            (directory / top).symlink_to(f"..data/{top}")
    for each in directory.iterdir():
        if not each.name.startswith("..") and each.name not in tops:
            each.unlink()
    if old is not None:
        shutil.rmtree(directory / old, ignore_errors=True)
    return True


def _is_there(current: Path, files: Mapping[str, File]) -> bool:
    if not current.is_symlink():
        return False
    found = {str(each.relative_to(current)): each for each in current.rglob("*") if not each.is_dir()}
    return found.keys() == files.keys() and all(
        found[path].read_bytes() == file.content and found[path].stat().st_mode & 0o777 == file.mode
        for path, file in files.items()
    )
