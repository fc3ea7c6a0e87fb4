"""Regular expressions in Go's syntax, with linear time: RE2."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

# Errors of RE2, and of Go.
_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "invalid repetition size": "invalid repeat count",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
}

_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # supported by RE2, but not by Go

_DEEPEST: Final = 1000  # nested groups
_GROUPS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]", re.DOTALL)


def _depth(text: str) -> int:
    """Return the nesting depth of groups."""
    deepest = depth = 0
    for found in _GROUPS.finditer(text):
        depth += {"(": 1, ")": -1}.get(found.group(), 0)
        deepest = max(deepest, depth)
    return deepest


@lru_cache(maxsize=4096)
def _compiled(text: str) -> tuple[Any, str]:
    if _ANY_BYTE.search(text):
        return None, "error parsing regexp: invalid escape sequence: `\\C`"
    if text.count("(") >= _DEEPEST and _depth(text) >= _DEEPEST:
        return None, f"error parsing regexp: expression nests too deeply: `{text}`"
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options), ""
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
    name, _, part = why.partition(": ")
    return None, f"error parsing regexp: {_WORDS.get(name, name)}: `{part}`"


def pattern(text: str) -> Any:
    """Return the compiled regular expression, which has a `search` method; None if it is invalid."""
    return _compiled(text)[0]


def pattern_problem(text: str) -> str:
    """Return Go's error for an invalid regular expression; "" if it is valid."""
    return _compiled(text)[1]
