"""Users and groups of a container, as its image's /etc/passwd and /etc/group define them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from ostinato.plane.node.volumes.subpaths import SubPathError, read_subpath

_MOST: Final = 4 << 20  # bytes of a file


class ImageUser(NamedTuple):
    """`groups`: those of which /etc/group makes the user a member. `home`: "/" for users without an entry."""

    user: int
    group: int
    groups: list[int]
    home: str


class UnknownUser(ValueError):  # noqa: N818 - names what is wrong
    """The image's files do not define a user or group; the message names it."""


def user_in(root: Path, wanted: str) -> ImageUser:
    """Return the user `NAME|UID[:GROUP|GID]`, root if it is empty; `UnknownUser` if a name is not defined."""
    who, _, group = wanted.partition(":")
    entries = _lines(root, "etc/passwd", 7)
    groups = _lines(root, "etc/group", 4)
    who = who or "0"
    found = next((each for each in entries if each[0] == who), None)
    if found is None:
        if not who.isdecimal():
            raise UnknownUser(f"unable to find user {who}: no matching entries in passwd file")
        found = next((each for each in entries if each[2] == who), None)
    user = int(who if found is None else found[2])
    name = "" if found is None else found[0]
    first = int(found[3]) if found is not None else 0
    if group:
        entry = next((each for each in groups if group in (each[0], each[2])), None)
        if entry is None and not group.isdecimal():
            raise UnknownUser(f"unable to find group {group}: no matching entries in group file")
        first = int(group if entry is None else entry[2])
    further = [] if group else [int(each[2]) for each in groups if name and name in each[3].split(",")]
    home = "/" if found is None else found[5] or "/"
    return ImageUser(user, first, sorted({*further} - {first}), home)


def _lines(root: Path, name: str, fields: int) -> list[list[str]]:
    """Read a colon-separated file of the image; malformed lines are left out."""
    try:
        text = read_subpath(root, name, _MOST).decode(errors="replace")
    except (OSError, SubPathError):  # the image has none, or a link leads out of it
        return []
    lines = (line.split(":") for line in text.splitlines())
    numbers = (2, 3) if fields == 7 else (2,)
    return [each for each in lines if len(each) == fields and all(each[number].isdecimal() for number in numbers)]


def own_user() -> ImageUser:
    """The user of this process, for containers without an image."""
    group = 0 if os.geteuid() == 0 else os.getegid()
    return ImageUser(os.geteuid(), group, [], "/")
