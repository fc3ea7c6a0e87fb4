"""Equality of JSON values by type and value: True, 1 and 1.0 are equal in Python, but have different JSON types."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ostinato.api.patch.errors import MalformedPatch
from ostinato.api.patch.go_values import go_type


def same(left: Any, right: Any) -> bool:
    """Whether two JSON values have equal types and values.

    Loops instead of generators, as everywhere in patches: a generator takes a second frame per level, and objects may
    be nested to half the depth of Python's stack.
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
    """Return a dict key that is equal for scalars with equal type and value.

    Maps and lists are rejected; kube-apiserver panics on them and closes the connection.
    """
    if type(value) is str:
        return value
    if isinstance(value, dict | list):
        raise MalformedPatch(f"cannot merge lists by a value of type {go_type(value)}; a merge key has to be a scalar")
    return type(value), value
