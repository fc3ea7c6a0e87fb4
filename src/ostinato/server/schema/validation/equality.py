"""Equality of JSON values as in Go: true differs from 1, and 1 from 1.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def equal(one: Any, other: Any) -> bool:
    """Whether two values are equal, types included."""
    if type(one) is not type(other):
        return False
    if type(one) is dict:
        return one.keys() == other.keys() and all(equal(value, other[name]) for name, value in one.items())
    if type(one) is list:
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


def in_enum(value: Any, allowed: Sequence[Any]) -> bool:
    """Whether a value is in an enumeration.

    As in kube-apiserver, a number is converted to the type of the enumeration's value: 1.5 equals 1, and 65 equals "A".
    """
    return any(_is(value, choice) for choice in allowed)


def _is(value: Any, choice: Any) -> bool:
    if type(value) is float and type(choice) is int:
        return int(value) == choice
    if type(value) is int and type(choice) is float:
        return float(value) == choice
    if type(value) is int and type(choice) is str:
        return choice == (chr(value) if 0 <= value < 0x110000 and not 0xD800 <= value < 0xE000 else "\ufffd")
    return value is not None and equal(value, choice)
