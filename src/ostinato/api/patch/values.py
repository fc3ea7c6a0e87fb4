"""Identity of scalars, for merging lists by key or value."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ostinato.api.patch.errors import MalformedPatch
from ostinato.api.patch.go_values import go_type


def identity(value: Any) -> Hashable:
    """Return a dict key that is equal for scalars with equal type and value.

    Maps and lists are rejected; kube-apiserver panics on them and closes the connection.
    """
    if type(value) is str:
        return value
    if isinstance(value, dict | list):
        raise MalformedPatch(f"cannot merge lists by a value of type {go_type(value)}; a merge key has to be a scalar")
    return type(value), value
