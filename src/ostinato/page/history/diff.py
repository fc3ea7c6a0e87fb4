"""Differences between two states of an object: paths with old and new values, bounded.

- Fields that change with every write are left out: resourceVersion, generation, managedFields.
- Elements of lists with a `name` or `type` are compared by it: `status.conditions[Ready].status`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from ostinato.page.facts import Difference
from ostinato.page.masking import shown

Json = dict[str, Any]

MAX_DIFFERENCES: Final = 100
_MAX_VALUE: Final = 2_000  # characters of a value as JSON
_MAX_SUMMARY: Final = 200
_SUMMARIZED: Final = 3  # differences
_NOISE: Final = frozenset({"resourceVersion", "generation", "managedFields", "selfLink"})
_KEYS: Final = ("name", "type", "containerPort", "ip", "key")
_ABSENT: Final = object()


def differences(before: Json | None, after: Json) -> list[Difference]:
    """Return the first differing fields. `before`: None for an object that was created."""
    found = _differing(_content(before or {}), _content(after), "")
    is_secret = after.get("kind") == "Secret"
    return [_difference(*each, is_secret=is_secret) for each in islice(found, MAX_DIFFERENCES)]


def summary(found: list[Difference]) -> str:
    """Return differences as one line."""
    texts = [f"{each.path}: {_short(each.old)} → {_short(each.new)}" for each in found[:_SUMMARIZED]]
    if len(found) > _SUMMARIZED:
        texts.append(f"{len(found) - _SUMMARIZED} more")
    text = ", ".join(texts)
    return text if len(text) <= _MAX_SUMMARY else f"{text[:_MAX_SUMMARY]}…"


def _difference(path: str, old: Any, new: Any, *, is_secret: bool) -> Difference:
    values = [None if each is _ABSENT else _bounded(shown(each) if is_secret else each) for each in (old, new)]
    return Difference(path, *values)


def _bounded(value: Any) -> Any:
    """Return the value, or the beginning of its JSON if it is large."""
    if isinstance(value, bool | int | float) or value is None:
        return value
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    if len(text) <= _MAX_VALUE:
        return value
    return f"{text[:_MAX_VALUE]}…"


def _content(instance: Json) -> Json:
    metadata = instance.get("metadata")
    kept = {name: value for name, value in instance.items() if name not in ("apiVersion", "kind", "metadata")}
    if isinstance(metadata, dict):
        kept["metadata"] = {name: value for name, value in metadata.items() if name not in _NOISE}
    return kept


def _differing(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if before is after or (type(before) is type(after) and before == after):
        return
    old, new = _members(before, after)
    if old is None or new is None:
        yield path, before, after
        return
    for name in {**old, **new}:
        inner = f"{path}{name}" if name.startswith("[") else f"{path}.{name}" if path else name
        yield from _differing(old.get(name, _ABSENT), new.get(name, _ABSENT), inner)


def _members(before: Any, after: Any) -> tuple[Json | None, Json | None]:
    """Return the members of two values by name, to be compared one by one; None if they are compared as a whole."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before, after
    if isinstance(after, dict) and before is _ABSENT:
        return {}, after
    if isinstance(before, dict) and after is _ABSENT:
        return before, {}
    if isinstance(before, list) and isinstance(after, list):
        for key in _KEYS:
            old, new = _by(key, before), _by(key, after)
            if old is not None and new is not None:
                return old, new
        if len(before) == len(after):
            return (
                {f"[{at}]": each for at, each in enumerate(before)},
                {f"[{at}]": each for at, each in enumerate(after)},
            )
    return None, None


def _by(key: str, elements: list[Any]) -> Json | None:
    """Return the elements by a key that distinguishes them; None if it does not."""
    found = {f"[{each[key]}]": each for each in elements if isinstance(each, dict) and key in each}
    return found if len(found) == len(elements) else None


def _short(value: Any) -> str:
    if value is None:
        return "absent"
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return text if len(text) <= 40 else f"{text[:40]}…"
