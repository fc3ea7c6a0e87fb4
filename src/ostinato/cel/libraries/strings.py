"""String functions, and regular expressions (RE2 syntax, linear time)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.api.text.patterns import pattern, pattern_problem
from ostinato.cel.libraries.formatting import formatted
from ostinato.cel.values import CelError, CostExceededError

_UPPER: Final = {lower: lower - 32 for lower in range(ord("a"), ord("z") + 1)}
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
_LONGEST: Final = 20_000_000  # characters
# White space in Go.
_SPACE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029"
    "\u202f\u205f\u3000"
)
_QUOTED: Final = {
    ord(character): f"\\{letter}" for character, letter in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)
}


def expression(text: str, wrong: str = "") -> Any:
    found = pattern(text)
    if found is None:
        raise CelError(wrong + pattern_problem(text))
    return found


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise CelError(f"index out of range: {index}")
    return text[index : index + 1]


def _index_of(text: str, part: str, start: int | None = None) -> int:
    if not part:
        return start or 0
    if start is not None and start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start or 0)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if not part:
        return len(text) if start is None else start
    if start is not None and start < 0:
        raise CelError(f"index out of range: {start}")
    if start is not None and start >= len(text):
        return -1
    return text.rfind(part) if start is None else text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is not None and start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start,) if end is None else (start, end):
        if not 0 <= index <= len(text):
            raise CelError(f"index out of range: {index}")
    return text[start:end]


def _split(text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    if separator:
        return text.split(separator, most - 1 if most > 0 else -1)
    parts = list(text)
    return parts if most < 0 or len(parts) <= most else [*parts[: most - 1], "".join(parts[most - 1 :])]


def _replace(text: str, old: str, new: str, most: int = -1) -> str:
    count = text.count(old)
    count = count if most < 0 else min(count, most)
    _bounded(len(text) + count * len(new))
    return text.replace(old, new, most)


def _join(texts: list[str], separator: str = "") -> str:
    _bounded(sum(map(len, texts)) + len(texts) * len(separator))
    return separator.join(texts)


def _bounded(size: int) -> None:
    """Limit the length of results: longer strings would exceed the cost limit when traversed."""
    if size > _LONGEST:
        raise CostExceededError


def _find(text: str, regex: str) -> str:
    found = expression(regex, "Illegal regex: ").search(text)
    return found.group() if found is not None else ""


def _find_all(text: str, regex: str, most: int = -1) -> list[str]:
    found: list[str] = []
    for match in expression(regex, "Illegal regex: ").finditer(text):
        if most >= 0 and len(found) >= most:
            break
        found.append(match.group())
    return found


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "contains_string": lambda text, part: part in text,
    "starts_with_string": lambda text, part: text.startswith(part),
    "ends_with_string": lambda text, part: text.endswith(part),
    "matches": lambda text, regex: expression(regex).search(text) is not None,
    "matches_string": lambda text, regex: expression(regex).search(text) is not None,
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
    "string_char_at_int": _char_at,
    "string_index_of_string": _index_of,
    "string_index_of_string_int": _index_of,
    "string_last_index_of_string": _last_index_of,
    "string_last_index_of_string_int": _last_index_of,
    "string_lower_ascii": lambda text: text.translate(_LOWER),
    "string_upper_ascii": lambda text: text.translate(_UPPER),
    "string_replace_string_string": _replace,
    "string_replace_string_string_int": _replace,
    "string_split_string": _split,
    "string_split_string_int": _split,
    "string_substring_int": _substring,
    "string_substring_int_int": _substring,
    "string_trim": lambda text: text.strip(_SPACE),
    "string_format": formatted,
    "strings_quote": lambda text: f'"{text.translate(_QUOTED)}"',
    "list_join": _join,
    "list_join_string": _join,
    "string_jsonpatch_escapeKey_string": lambda text: text.replace("~", "~0").replace("/", "~1"),
}
