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
    if isinstance(one, dict):
        return all(_same_kinds(value, other[name]) for name, value in one.items())
    if isinstance(one, list):
        return all(_same_kinds(value, against) for value, against in zip(one, other, strict=True))
    return isinstance(one, bool) == isinstance(other, bool)
