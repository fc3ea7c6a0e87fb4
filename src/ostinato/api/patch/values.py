"""Equality of JSON values. Python takes True, 1 and 1.0 for equal; in JSON they are a truth, an integer and a float."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ostinato.api.patch.errors import MalformedPatch
from ostinato.api.patch.go_values import go_type


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values are equal and of equal types throughout.

    Loops instead of generators, here and elsewhere in patches: a generator takes a second frame for every level, and
    objects may be nested to half the depth of Python's stack.
    """
    kind = type(left)
    if kind is not type(right):
        return False
    if kind is dict:
        if left.keys() != right.keys():
            return False
        for key, value in left.items():  # noqa: SIM110
            if not same(value, right[key]):
                return False
        return True
    if kind is list:
        if len(left) != len(right):
            return False
        for a, b in zip(left, right, strict=True):  # noqa: SIM110
            if not same(a, b):
                return False
        return True
    return bool(left == right)


def identity(value: Any) -> Hashable:
    """What two scalars share if, and only if, they are the same: for use as a key of a dict.

    Maps and lists have no identity to merge by. kube-apiserver panics on them and closes the connection.
    """
    if type(value) is str:
        return value
    if isinstance(value, dict | list):
        raise MalformedPatch(f"cannot merge lists by a value of type {go_type(value)}; a merge key has to be a scalar")
    return type(value), value
