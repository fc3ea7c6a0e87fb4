"""`requirements.lock`: the versions in an operator's image.

A new project gets the versions that are installed here: of Ostinato, and of what it needs. They have no hashes, which
only a package index knows; `make lock` adds them. Dependencies that are not installed here are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from typing import Final, NamedTuple

HEADER: Final = """\
# The versions in the image, as installed when this project was generated.
# `make lock` resolves them anew, for all platforms and with hashes.
"""
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^]]*)])?[^;]*(?:;(.*))?")
_EXTRA: Final = re.compile(r"""\s*(?:and\s+)?extra\s*==\s*['"]([^'"]*)['"]\s*(?:and\s+)?""")


def installed(name: str, extras: tuple[str, ...] = ()) -> str:
    """Return the text of a lock file for an installed distribution and what it needs."""
    found: set[_Pin] = set()
    _collect(_Pin(name, extras, frozenset()), found)
    lines = []
    for each in sorted({pin.name for pin in found}):
        marker = _joined({pin.markers for pin in found if pin.name == each})
        lines.append(f"{each}=={distribution(each).version}{f' ; {marker}' if marker else ''}\n")
    return HEADER + "".join(lines)


class _Pin(NamedTuple):
    name: str
    extras: tuple[str, ...]
    markers: frozenset[str]  # it is needed where all of them hold


def _collect(pin: _Pin, found: set[_Pin]) -> None:
    try:
        requirements = distribution(pin.name).requires or []
    except PackageNotFoundError:
        return
    if pin in found:
        return
    found.add(pin)
    for needed in _needed(requirements, pin.extras):
        _collect(needed._replace(markers=pin.markers | needed.markers), found)


def _joined(ways: set[frozenset[str]]) -> str:
    """Return the marker of a pin that is needed in several ways; "" if it is needed everywhere."""
    fewest = [way for way in ways if not any(other < way for other in ways)]
    return " or ".join(sorted(" and ".join(sorted(way)) for way in fewest))


def _needed(requirements: list[str], extras: tuple[str, ...]) -> Iterator[_Pin]:
    """Yield the requirements that apply with these extras."""
    for text in requirements:
        parsed = _REQUIREMENT.fullmatch(text)
        assert parsed is not None, f"metadata of an installed distribution: {text}"
        marker = (parsed[3] or "").strip()
        extra = _EXTRA.search(marker)
        if extra is None or extra[1] in extras:
            rest = _EXTRA.sub(" ", marker, count=1).strip() if extra else marker
            markers = frozenset({f"({rest})" if " or " in rest and not rest.startswith("(") else rest} - {""})
            name = re.sub(r"[-_.]+", "-", parsed[1]).lower()
            yield _Pin(name, tuple(filter(None, re.split(r"[\s,]+", parsed[2] or ""))), markers)
