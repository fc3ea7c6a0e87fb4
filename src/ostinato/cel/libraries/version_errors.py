"""Kubernetes' messages for invalid semantic versions. Only for versions that were rejected."""

from __future__ import annotations

import re
from typing import Final

from ostinato.api.text.go_format import quote

_NUMBER: Final = re.compile(r"[0-9]*")
_WORD: Final = re.compile(r"[0-9A-Za-z-]*")
_MOST: Final = (1 << 64) - 1


def version_error(text: str) -> str:
    """Return the first error of an invalid version."""
    if not text:
        return "Version string empty"
    parts = text.split(".", 2)
    if len(parts) < 3:
        return "No Major.Minor.Patch elements found"
    rest, plus, build = parts[2].partition("+")
    patch, minus, before = rest.partition("-")
    named = (("Major", parts[0]), ("Minor", parts[1]), ("Patch", patch))
    faults = [_number_fault(f"{name} number", f"{name.lower()} number", part) for name, part in named]
    faults += [_before_fault(part) for part in before.split(".")] if minus else []
    faults += [_build_fault(part) for part in build.split(".")] if plus else []
    return next((fault for fault in faults if fault), "invalid version")


def _number_fault(title: str, name: str, part: str) -> str:
    if _NUMBER.fullmatch(part) is None:
        return f"Invalid character(s) found in {name} {quote(part)}"
    if len(part) > 1 and part.startswith("0"):
        return f"{title} must not contain leading zeroes {quote(part)}"
    if not part:
        return 'strconv.ParseUint: parsing "": invalid syntax'
    return f"strconv.ParseUint: parsing {quote(part)}: value out of range" if int(part[:21]) > _MOST else ""


def _before_fault(part: str) -> str:
    if not part:
        return "Prerelease is empty"
    if _NUMBER.fullmatch(part):
        return _number_fault("Numeric PreRelease version", "prerelease", part)
    return "" if _WORD.fullmatch(part) else f"Invalid character(s) found in prerelease {quote(part)}"


def _build_fault(part: str) -> str:
    if not part:
        return "Build meta data is empty"
    return "" if _WORD.fullmatch(part) else f"Invalid character(s) found in build meta data {quote(part)}"
