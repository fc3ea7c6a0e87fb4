"""JSON values: the absent value, and equality.

In Python `True == 1`; in JSON they differ. Numbers are equal by value: `1` and `1.0`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec


class Absent:
    """The type of ABSENT: no value, as opposed to null."""

    __slots__ = ()


ABSENT: Final = Absent()
NESTED: Final = (dict, list)


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal; booleans never equal numbers."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, str):
        return True
    # Fast path: equal JSON. Equal values may still have another number format, or another order of keys.
    return msgspec.json.encode(one) == msgspec.json.encode(other) or _same_kinds(one, other)


def _same_kinds(one: Any, other: Any) -> bool:
    """Whether equal values have booleans at the same paths."""
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, dict):
            pairs.extend((value, other[name]) for name, value in one.items())
        elif isinstance(one, list):
            pairs.extend(zip(one, other, strict=True))
        elif isinstance(one, bool) != isinstance(other, bool):
            return False
    return True


def shallow(value: Any, levels: int = 8) -> bool:
    """Whether a value is nested at most this deep."""
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (levels > 0 and all(shallow(inner, levels - 1) for inner in value))
