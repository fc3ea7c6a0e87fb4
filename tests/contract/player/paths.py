"""Paths into JSON: `a.b`, `a[key.with/dots]`, `a[0]`, `a[*]` (of each), `a[type=Ready]` (the first match), and a final
`|modifier`. A path that does not resolve yields `ABSENT`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

Json = Any  # decoded JSON of any shape
Object = dict[str, Any]

ABSENT: Final = "<absent>"

_TOKEN: Final = re.compile(r"([^.\[\]]+)|\[([^\]]+)\]")
_Tokens = Sequence[tuple[str | None, str | None]]  # each either a plain name or the text in brackets


def pick(value: Json, path: str) -> Json:
    path, _, modifier = path.partition("|")
    value = _walk(value, [(match[1], match[2]) for match in _TOKEN.finditer(path)])
    if not modifier or (value == ABSENT and modifier != "present"):
        return value
    return _MODIFIERS[modifier](value)


def by_json(value: Json) -> str:
    """Sort key for values without an order."""
    return json.dumps(value, sort_keys=True)


def _walk(value: Json, tokens: _Tokens) -> Json:
    for i, (plain, bracket) in enumerate(tokens):
        if bracket == "*":
            if not isinstance(value, dict | list):
                return ABSENT
            return [_walk(item, tokens[i + 1 :]) for item in (value.values() if isinstance(value, dict) else value)]
        key = plain or bracket or ""
        if isinstance(value, list):
            value = _item(value, key, by_field=bracket is not None and "=" in bracket)
        elif isinstance(value, dict):
            value = value.get(key, ABSENT)
        else:
            return ABSENT
    return value


def _item(items: list[Json], key: str, *, by_field: bool) -> Json:
    if by_field:
        field, wanted = key.split("=", 1)
        return next((item for item in items if str(item.get(field)) == wanted), ABSENT)
    return items[int(key)] if key.isdigit() and int(key) < len(items) else ABSENT


def _brief(conditions: list[Object]) -> Object:
    """Conditions without their times, in any order."""
    return {c["type"]: [c["status"], c.get("reason", ""), c.get("message", "")] for c in conditions}


def _reasons(conditions: list[Object]) -> Object:
    return {c["type"]: [c["status"], c.get("reason", "")] for c in conditions}


def _containers(statuses: list[Object]) -> Object:
    """Container statuses without fields that depend on the image and the machine."""
    fields = ("ready", "started", "restartCount", "state", "lastState")
    return {status["name"]: {field: status.get(field, ABSENT) for field in fields} for status in statuses}


_MODIFIERS: Final[dict[str, Callable[[Json], Json]]] = {
    "sort": lambda value: value,  # sorted after normalisation
    "count": len,
    "keys": sorted,
    "present": lambda value: value != ABSENT,
    "brief": _brief,
    "reasons": _reasons,
    "containers": _containers,
}
