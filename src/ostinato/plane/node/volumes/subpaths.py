"""Parts of volumes: paths that never lead out of the volume they are in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


class SubPathError(ValueError):
    """A path that leads elsewhere, or nowhere; the message says why."""


def within(volume: Path, path: str) -> Path:
    """The file or directory at a relative path of a volume, without links; directories that are missing are made.

    A `SubPathError` if the path, or a link on the way, leads out of the volume.
    """
    place = Path(os.path.realpath(volume))
    for place in _steps(volume, path):
        if not place.exists():
            place.mkdir(mode=0o750)
    return place


def existing_within(volume: Path, path: str) -> Path:
    """The same, but nothing is made: there may be nothing there."""
    return [Path(os.path.realpath(volume)), *_steps(volume, path)][-1]


def _steps(volume: Path, path: str) -> Iterator[Path]:
    """Each file or directory on the way, the last included."""
    if path.startswith("/"):
        raise SubPathError(f"error SubPath `{path}` must not be an absolute path")
    parts = [each for each in path.split("/") if each not in ("", ".")]
    if ".." in parts:
        raise SubPathError(f"unable to provision SubPath `{path}`: must not contain '..'")
    root = Path(os.path.realpath(volume))
    place = root
    for part in parts:
        place = Path(os.path.realpath(place / part))
        if place != root and root not in place.parents:
            raise SubPathError(f"subPath {path} leads out of its volume")
        yield place
