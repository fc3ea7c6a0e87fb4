"""Patterns: whether a server accepts a regular expression, which must be in RE2's syntax.

Exact with google-re2 (part of `ostinato[server]`); without it, only constructs that Python has and RE2 lacks are found.
"""

from __future__ import annotations

import re
from typing import Any, Final

_ONLY_IN_PYTHON: Final = re.compile(r"\(\?(?:[=!>(]|<[=!]|P=)|(?<!\\)(?:\\\\)*\\(?:[1-9]|Z)|[*+?}]\+")


def pattern_problem(text: str) -> str:
    """Return why a pattern is not in RE2's syntax; "" if it is, or cannot be determined."""
    return _compiled(text)[1]


def matches(text: str, value: str) -> bool:
    """Whether a pattern matches a value; True if it cannot be determined."""
    compiled = _compiled(text)[0]
    return compiled is None or compiled.search(value) is not None


def _compiled(text: str) -> tuple[Any, str]:
    try:
        import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - optional
    except ImportError:
        return None, _guess(text)
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(text, options), ""
    except re2.error as error:
        why = error.args[0]
        return None, why.decode(errors="replace") if isinstance(why, bytes) else str(why)


def _guess(text: str) -> str:
    if found := _ONLY_IN_PYTHON.search(text):
        return f"RE2 does not support {found[0]!r}"
    return ""
