"""Equality of JSON values, which differs from Python's: `True == 1`, but a boolean is not a number.

- `equal`: numbers by value, so that 1 equals 1.0.
- `identical`: types must be the same too, so that 1 and 1.0 differ.
"""

from __future__ import annotations

from typing import Any

import msgspec


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal; numbers are compared by value."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, str):
        return True
    # Fast path: equal JSON. Equal values may still have another number format, or another order of keys.
    return msgspec.json.encode(one) == msgspec.json.encode(other) or _have_same_booleans(one, other)


def _have_same_booleans(one: Any, other: Any) -> bool:
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


def identical(left: Any, right: Any) -> bool:
    """Whether two values have equal types and values.

    Loops instead of generators: a generator takes a second frame per level, and objects may be nested to half the depth
    of Python's stack.
    """
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is dict:
        if left.keys() != right.keys():
            return False
        for key, value in left.items():  # noqa: SIM110
            if not identical(value, right[key]):
                return False
        return True
    if kind is list:
        if len(left) != len(right):
            return False
        for a, b in zip(left, right, strict=True):  # noqa: SIM110
            if not identical(a, b):
                return False
        return True
    return bool(left == right)
