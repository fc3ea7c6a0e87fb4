"""Steps of JSON pointers (RFC 6901): look up, insert and remove an entry of a container.

A negative index counts from the end of the list; for `insert` from the position after the end.
"""

from __future__ import annotations

import re
from typing import Any

from ostinato.api.patch.errors import InapplicablePatch
from ostinato.api.text.go_format import quote

_INDEX = re.compile(r"[+-]?[0-9]+")
_INDEX_LIMIT = 1 << 63


class MissingError(Exception):
    """The pointer refers to nothing; the operation defines the consequence."""


class BadIndexError(Exception):
    """The step is not a valid index of the list."""


def unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def entry(container: Any, key: str) -> Any:
    """Return the key or index of an existing entry."""
    if isinstance(container, dict):
        if key in container:
            return key
    elif isinstance(container, list):
        try:
            return existing_index(container, key)
        except BadIndexError:
            pass
    raise MissingError


def existing_index(items: list[Any], key: str) -> int:
    return _bounded(_parsed_index(key), len(items))


def _parsed_index(key: str) -> int:
    if not _INDEX.fullmatch(key):
        raise BadIndexError(f"strconv.Atoi: parsing {quote(key)}: invalid syntax")
    index = int(key) if len(key) < 25 else _INDEX_LIMIT  # too many digits
    if not -_INDEX_LIMIT <= index < _INDEX_LIMIT:
        raise BadIndexError(f"strconv.Atoi: parsing {quote(key)}: value out of range")
    return index


def _bounded(index: int, length: int) -> int:
    if not -length <= index < length:
        raise BadIndexError(f"Unable to access invalid index: {index}: invalid index referenced")
    return index if index >= 0 else index + length


def insert(container: Any, key: str, value: Any, failed: str) -> None:
    """Set a key of a map, or insert a value into a list; `failed` is the prefix of errors."""
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        try:
            container.insert(_bounded(_insertion_index(key), len(container) + 1), value)
        except BadIndexError as error:
            raise InapplicablePatch(f"{failed}: {error}") from error


def _insertion_index(key: str) -> int:
    try:
        return _parsed_index(key)
    except BadIndexError as error:
        raise BadIndexError(f"value was not a proper array index: '{key}': {error}") from error


def take(container: Any, key: str, failed: str) -> Any:
    """Remove an entry and return it; `failed` is the prefix of errors."""
    if isinstance(container, dict):
        if key not in container:
            raise InapplicablePatch(f"{failed}: Unable to remove nonexistent key: {key}: missing value")
        return container.pop(key)
    try:
        return container.pop(existing_index(container, key))
    except BadIndexError as error:
        raise InapplicablePatch(f"{failed}: {error}") from error
