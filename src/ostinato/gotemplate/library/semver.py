"""Semantic versions and constraints, as github.com/Masterminds/semver reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.strings import quote
from ostinato.gotemplate.values import Object, Uint64

SEMVER: Final = Registry()
_register = SEMVER

_LONGEST_VERSION: Final = 256
_LONGEST_CONSTRAINT: Final = 512
_MOST_GROUPS: Final = 32
_EXTRA: Final = (
    r"(?:-(?P<pre>[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?(?:\+(?P<meta>[0-9A-Za-z\-]+(?:\.[0-9A-Za-z\-]+)*))?"
)
_VERSION: Final = re.compile(rf"v?(?P<major>[0-9]+)(?:\.(?P<minor>[0-9]+))?(?:\.(?P<patch>[0-9]+))?{_EXTRA}")
_OPERATORS: Final = r"(?:!=|>=|=>|<=|=<|~>|=|>|<|~|\^|)"
_NUMBERS: Final = r"v?(?P<major>[0-9|xX*]+)(?P<minor>\.[0-9|xX*]+)?(?P<patch>\.[0-9|xX*]+)?"
_PLAIN: Final = re.sub(r"\?P<\w+>", "?:", _NUMBERS + _EXTRA)
_ONE: Final = re.compile(rf"\s*(?P<operator>{_OPERATORS})\s*(?P<version>{_NUMBERS}{_EXTRA})\s*")
_EACH: Final = re.compile(rf"{_OPERATORS}\s*{_PLAIN}")
_GROUP: Final = re.compile(rf"\s*{_OPERATORS}\s*{_PLAIN}\s*(?:(?:\s+|,\s*){_OPERATORS}\s*{_PLAIN}\s*)*")
_RANGE: Final = re.compile(rf"\s*({_PLAIN})\s+-\s+({_PLAIN})\s*")


class SemverError(PanicError):
    """A version or a constraint is invalid."""


class Version(Object):
    """A version. Templates call its methods."""

    go_type = "*semver.Version"

    def __init__(self, numbers: tuple[int, int, int], pre: str = "", metadata: str = "", original: str = "") -> None:
        self.numbers = numbers
        self.pre = pre
        self.metadata = metadata
        self.original = original or str(self)
        super().__init__(methods=self._methods())

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        return text + (f"-{self.pre}" if self.pre else "") + (f"+{self.metadata}" if self.metadata else "")

    def text(self) -> str:
        return str(self)

    def compare(self, other: Version) -> int:
        """Return -1, 0 or 1; metadata is ignored, and a pre-release is before its release."""
        if self.numbers != other.numbers:
            return 1 if self.numbers > other.numbers else -1
        if self.pre == other.pre:
            return 0
        if not self.pre or not other.pre:
            return -1 if self.pre else 1
        return _compare_pre(self.pre, other.pre)

    def _next(self, major: int, minor: int, patch: int) -> Version:
        prefix = "v" if self.original.startswith("v") else ""
        return Version((major, minor, patch), original=f"{prefix}{major}.{minor}.{patch}")

    def _methods(self) -> dict[str, Callable[..., Any]]:
        major, minor, patch = self.numbers
        return {
            "String": self.text,
            "Original": lambda: self.original,
            "Major": lambda: Uint64(major),
            "Minor": lambda: Uint64(minor),
            "Patch": lambda: Uint64(patch),
            "Prerelease": lambda: self.pre,
            "Metadata": lambda: self.metadata,
            "Compare": self.compare,
            "Equal": lambda other: self.compare(other) == 0,
            "LessThan": lambda other: self.compare(other) < 0,
            "LessThanEqual": lambda other: self.compare(other) <= 0,
            "GreaterThan": lambda other: self.compare(other) > 0,
            "GreaterThanEqual": lambda other: self.compare(other) >= 0,
            "IncPatch": lambda: self._next(major, minor, patch if self.pre else patch + 1),
            "IncMinor": lambda: self._next(major, minor + 1, 0),
            "IncMajor": lambda: self._next(major + 1, 0, 0),
        }


def _compare_pre(left: str, right: str) -> int:
    ours, theirs = left.split("."), right.split(".")
    for at in range(max(len(ours), len(theirs))):
        a = ours[at] if at < len(ours) else ""
        b = theirs[at] if at < len(theirs) else ""
        if a == b:
            continue
        if not a or not b:
            return -1 if not a else 1
        if a.isdigit() and b.isdigit():
            return 1 if int(a) > int(b) else -1
        if a.isdigit() or b.isdigit():
            return -1 if a.isdigit() else 1
        return 1 if a > b else -1
    return 0


@lru_cache(maxsize=1024)
def parse_version(text: str) -> Version:
    """Parse a version; `v1`, `1.2` and leading zeros are accepted. Raises SemverError."""
    if len(text) > _LONGEST_VERSION:
        raise SemverError(f"version string is too long (max {_LONGEST_VERSION} bytes)")
    found = _VERSION.fullmatch(text)
    if found is None:
        raise SemverError("invalid semantic version")
    numbers = [int(found[part] or 0) for part in ("major", "minor", "patch")]
    for part, number in zip(("major", "minor", "patch"), numbers, strict=True):
        if number >= 2**64:
            problem = f"strconv.ParseUint: parsing {quote(found[part])}: value out of range"
            raise SemverError(f"error parsing version segment: {problem}")
    for part in (found["pre"] or "").split("."):
        if len(part) > 1 and part[0] == "0" and part.isdigit():
            raise SemverError("version segment starts with 0")
    return Version((numbers[0], numbers[1], numbers[2]), found["pre"] or "", found["meta"] or "", text)


@dataclass(frozen=True, slots=True)
class _Constraint:
    operator: str
    version: Version
    dirty: bool = False  # a part of the version is missing or x
    minor_dirty: bool = False
    patch_dirty: bool = False


@lru_cache(maxsize=1024)
def _constraints(text: str) -> tuple[tuple[_Constraint, ...], ...]:
    if len(text) > _LONGEST_CONSTRAINT:
        raise SemverError(f"constraint string is too long (max {_LONGEST_CONSTRAINT} bytes)")
    for found in list(_RANGE.finditer(text)):
        text = text.replace(found[0], f">= {found[1]}, <= {found[2]} ", 1)
    groups = text.split("||")
    if len(groups) > _MOST_GROUPS:
        raise SemverError(f"too many constraint groups (max {_MOST_GROUPS})")
    return tuple(_group(each) for each in groups)


def _group(text: str) -> tuple[_Constraint, ...]:
    if not _GROUP.fullmatch(text):
        raise SemverError(f"improper constraint: {quote(text)}")
    return tuple(_constraint(each) for each in _EACH.findall(text))


def _constraint(text: str) -> _Constraint:
    found = _ONE.fullmatch(text)
    if found is None:
        raise SemverError(f"improper constraint: {quote(text)}")
    major, minor, patch = (found[part] or "" for part in ("major", "minor", "patch"))
    extra = f"-{found['pre']}" if found["pre"] else ""
    unknown = ("", ".x", ".X", ".*")
    dirty = minor_dirty = patch_dirty = True
    if f".{major}" in unknown:
        version, minor_dirty, patch_dirty = f"0.0.0{extra}", False, False
    elif minor in unknown:
        version, patch_dirty = f"{major}.0.0{extra}", False
    elif patch in unknown:
        version, minor_dirty = f"{major}{minor}.0{extra}", False
    else:
        version, dirty, minor_dirty, patch_dirty = found["version"], False, False, False
    try:
        return _Constraint(found["operator"], parse_version(version), dirty, minor_dirty, patch_dirty)
    except SemverError:
        raise SemverError("constraint parser error") from None


def satisfies(constraint: str, version: str) -> bool:
    """Whether a version is in a range. Raises SemverError."""
    groups = _constraints(constraint)
    given = parse_version(version)
    return any(_holds_all(group, given) for group in groups)


def _holds_all(group: tuple[_Constraint, ...], version: Version) -> bool:
    if version.pre and not any(each.version.pre for each in group):
        return False  # a range that names no pre-release has none
    return all(_holds(each, version) for each in group)


def _holds(constraint: _Constraint, version: Version) -> bool:
    against = constraint.version
    order = version.compare(against)
    match constraint.operator:
        case "" | "=":
            return _tilde(constraint, version) if constraint.dirty else order == 0
        case "!=":
            return _differs(constraint, version)
        case ">":
            if not constraint.dirty or version.numbers[0] != against.numbers[0]:
                return order > 0 if not constraint.dirty else version.numbers[0] > against.numbers[0]
            if constraint.minor_dirty:
                return False
            return version.numbers[1] > against.numbers[1] if constraint.patch_dirty else order > 0
        case "<":
            return order < 0
        case ">=" | "=>":
            return order >= 0
        case "<=" | "=<":
            if not constraint.dirty:
                return order <= 0
            same = version.numbers[0] == against.numbers[0]
            return version.numbers[0] < against.numbers[0] or (
                same and (version.numbers[1] <= against.numbers[1] or constraint.minor_dirty)
            )
        case "^":
            return _caret(constraint, version)
        case _:
            return _tilde(constraint, version)


def _differs(constraint: _Constraint, version: Version) -> bool:
    against = constraint.version
    if constraint.dirty:
        if against.numbers[0] != version.numbers[0]:
            return True
        if constraint.minor_dirty:
            return False
        if against.numbers[1] != version.numbers[1]:
            return True
        if constraint.patch_dirty:
            return version.pre != against.pre
        if against.numbers[2] != version.numbers[2]:
            return True
    return version.compare(against) != 0


def _tilde(constraint: _Constraint, version: Version) -> bool:
    against = constraint.version
    if version.compare(against) < 0:
        return False
    zero = (against.numbers[0], against.numbers[1], against.numbers[2]) == (0, 0, 0)
    if zero and not constraint.minor_dirty and not constraint.patch_dirty:
        return True
    return version.numbers[0] == against.numbers[0] and (
        version.numbers[1] == against.numbers[1] or constraint.minor_dirty
    )


def _caret(constraint: _Constraint, version: Version) -> bool:
    against = constraint.version
    if version.compare(against) < 0:
        return False
    if against.numbers[0] > 0 or constraint.minor_dirty:
        return version.numbers[0] == against.numbers[0]
    if version.numbers[0] > 0:
        return False
    if against.numbers[1] > 0 or constraint.patch_dirty:
        return version.numbers[1] == against.numbers[1]
    return version.numbers[1] == 0 and version.numbers[2] == against.numbers[2]


@_register("semver", "string")
def semver(text: str) -> Version:
    return parse_version(text)


@_register("semverCompare", "string, string")
def semver_compare(constraint: str, version: str) -> bool:
    return satisfies(constraint, version)
