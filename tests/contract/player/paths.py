"""Paths into JSON: `a.b`, `a[key.with/dots]`, `a[0]`, `a[*]` (of each), `a[type=Ready]` (the first such), and a last
`|modifier`. Where a path leads nowhere, there is `ABSENT`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

Json = Any  # decoded JSON: scenarios and answers are data of any shape, not kinds of ours
Object = dict[str, Any]

ABSENT: Final = "<absent>"

_TOKEN: Final = re.compile(r"([^.\[\]]+)|\[([^\]]+)\]")
_Tokens = Sequence[tuple[str | None, str | None]]  # of each, either a plain name or what stood in brackets


def pick(value: Json, path: str) -> Json:
    path, _, modifier = path.partition("|")
    value = _walk(value, [(match[1], match[2]) for match in _TOKEN.finditer(path)])
    if not modifier or (value == ABSENT and modifier != "present"):
        return value
    return _MODIFIERS[modifier](value)


def by_json(value: Json) -> str:
    """What values without an order of their own are sorted by."""
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
    """Conditions without their times, and whatever their order."""
    return {c["type"]: [c["status"], c.get("reason", ""), c.get("message", "")] for c in conditions}


def _reasons(conditions: list[Object]) -> Object:
    return {c["type"]: [c["status"], c.get("reason", "")] for c in conditions}


def _containers(statuses: list[Object]) -> Object:
    """The statuses of containers without what depends on the image and the machine."""
    fields = ("ready", "started", "restartCount", "state", "lastState")
    return {status["name"]: {field: status.get(field, ABSENT) for field in fields} for status in statuses}


_MODIFIERS: Final[dict[str, Callable[[Json], Json]]] = {
    "sort": lambda value: value,  # sorted once it is normalised
    "count": len,
    "keys": sorted,
    "present": lambda value: value != ABSENT,
    "brief": _brief,
    "reasons": _reasons,
    "containers": _containers,
}
