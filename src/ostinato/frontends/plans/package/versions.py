"""Order of versions: semantic ones by their rules, others by text and before them."""

from __future__ import annotations

import re
from typing import Any, Final

_SEMANTIC: Final = re.compile(
    r"v?([0-9]+)(\.[0-9]+)?(\.[0-9]+)?(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)


def is_semantic(version: str) -> bool:
    return bool(_SEMANTIC.fullmatch(version))


def order(version: str) -> tuple[Any, ...]:
    """Return a key to sort versions by, the oldest first."""
    found = _SEMANTIC.fullmatch(version)
    if found is None:
        return (0, version)
    numbers = tuple(int((part or ".0").lstrip(".")) for part in found.groups()[:3])
    return (1, numbers, _prerelease(found[4]))


def _prerelease(text: str | None) -> tuple[Any, ...]:
    """A version without a prerelease is newer than those with one; numbers are older than words."""
    if text is None:
        return (1,)
    return (0, tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in text.split(".")))
