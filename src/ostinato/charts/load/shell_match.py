"""Shell patterns as Go's path.Match reads them: `*`, `?`, `[a-z]`, `[^a]`, `\\`; `*` and `?` do not match a slash."""

from __future__ import annotations

import re
from functools import lru_cache


class BadPatternError(ValueError):
    """The pattern is malformed."""


def shell_match(pattern: str, text: str) -> bool:
    """Whether the pattern matches the whole text."""
    return _compiled(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Only classes, single characters and one level of stars: no nesting, and a star never meets a slash.
    made: list[str] = []
    at = 0
    while at < len(pattern):
        c = pattern[at]
        at += 1
        if c == "*":
            if not made or made[-1] != "[^/]*":
                made.append("[^/]*")
        elif c == "?":
            made.append("[^/]")
        elif c == "\\":
            if at == len(pattern):
                raise BadPatternError(pattern)
            made.append(re.escape(pattern[at]))
            at += 1
        elif c == "[":
            text, at = _character_class(pattern, at)
            made.append(text)
        else:
            made.append(re.escape(c))
    return re.compile("".join(made), re.DOTALL)


def _character_class(pattern: str, at: int) -> tuple[str, int]:
    negated = pattern.startswith("^", at)
    at += negated
    ranges: list[str] = []
    while not (pattern.startswith("]", at) and ranges):
        low, at = _class_character(pattern, at)
        high = low
        if pattern.startswith("-", at):
            high, at = _class_character(pattern, at + 1)
        if low <= high:
            ranges.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            ranges.append("")
    inner = "".join(ranges)
    if not inner:
        return (r"[\s\S]" if negated else r"(?!)"), at + 1
    return f"(?!/)[{'^' if negated else ''}{inner}]" if negated else f"[{inner}]", at + 1


def _class_character(pattern: str, at: int) -> tuple[str, int]:
    if at >= len(pattern) or pattern[at] in "-]":
        raise BadPatternError(pattern)
    if pattern[at] == "\\":
        at += 1
    if at + 1 >= len(pattern):
        raise BadPatternError(pattern)
    return pattern[at], at + 1
