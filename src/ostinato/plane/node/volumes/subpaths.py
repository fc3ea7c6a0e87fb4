"""Parts of volumes: paths that never lead out of the volume they are in."""

from __future__ import annotations

import os
from pathlib import Path


class SubPathError(ValueError):
    """A path that leads elsewhere, or nowhere; the message says why."""


def within(volume: Path, path: str) -> Path:
    """The file or directory at a relative path of a volume, without links; directories that are missing are made.

    A `SubPathError` if the path, or a link on the way, leads out of the volume.
    """
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
        if not place.exists():
            place.mkdir(mode=0o750)
    return place
