"""Patterns: whether a server will take a regular expression, which must be one of RE2.

With google-re2 at hand (it comes with `ostinato[server]`) the answer is exact; without it, what Python knows and RE2
does not is found, and the rest is left to the server.
"""

from __future__ import annotations

import re
from typing import Any, Final

_ONLY_IN_PYTHON: Final = re.compile(r"\(\?(?:[=!>(]|<[=!]|P=)|(?<!\\)(?:\\\\)*\\(?:[1-9]|Z)|[*+?}]\+")


def pattern_problem(text: str) -> str:
    """Why a text is no regular expression in RE2's syntax; "" if it is one, as far as can be known."""
    return _compiled(text)[1]


def matches(text: str, value: str) -> bool:
    """Whether a pattern is found in a value; true where that cannot be known."""
    compiled = _compiled(text)[0]
    return compiled is None or compiled.search(value) is not None


def _compiled(text: str) -> tuple[Any, str]:
    try:
        import re2  # type: ignore[import-untyped]  # noqa: PLC0415 - where it is installed
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
        return f"RE2 does not know {found[0]!r}"
    return ""
