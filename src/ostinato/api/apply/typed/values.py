"""JSON values: what is absent, and when two of them are the same.

Python takes `True` for `1`; a field that goes from one to the other has changed all the same. Numbers are the same
whether written `1` or `1.0`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec


class Absent:
    """No value at all, where null would be one."""

    __slots__ = ()


ABSENT: Final = Absent()
NESTED: Final = (dict, list)  # the types of values that hold others


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, booleans and numbers kept apart."""
    if one is other:
        return True
    if one != other:
        return False
    if isinstance(one, str):
        return True
    # Equal text is the usual case and quick to see. Equal values may still be spelled apart: 1.0, or another order.
    return msgspec.json.encode(one) == msgspec.json.encode(other) or _same_kinds(one, other)


def _same_kinds(one: Any, other: Any) -> bool:
    """Whether equal values have booleans in the same places."""
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
    """Whether a value nests no deeper than this."""
    if isinstance(value, dict):
        value = list(value.values())
    return not isinstance(value, list) or (levels > 0 and all(shallow(inner, levels - 1) for inner in value))
