"""Values as kube-apiserver's validation messages print them.

kube-apiserver validates its internal types. Most of their fields have no JSON names, so messages show the names of the
Go fields, in the order of their declaration, set or not. A table generated from those types describes each model; it is
loaded with the first message that needs it.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import msgspec

from ostinato.api.text.go_format import GoStruct
from ostinato.server.resources.strategy import Json

_OF_THE_HOST = ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "hostUsers")


def as_internal(model: str, value: Any) -> Any:
    """A value of a model as messages show it, a list of such values, or None.

    >>> as_internal("core.v1.Taint", {"key": "k", "effect": "NoSchedule"})
    {'Key': 'k', 'Value': '', 'Effect': 'NoSchedule', 'TimeAdded': None}
    """
    if isinstance(value, list):
        return [as_internal(model, item) for item in value]
    return None if value is None else _struct(model, value)


def _struct(model: str, value: Json) -> GoStruct:
    if model == "core.v1.PodSpec":  # internally, host fields are in the security context
        host = {name: value[name] for name in _OF_THE_HOST if name in value}
        value = {**value, "securityContext": {**(value.get("securityContext") or {}), **host}}
    out = GoStruct()
    for name, field, omit, zero, inner in _table()[model]:
        found = _found(value, field)
        if found is None:
            if not omit:
                out[name] = _struct(zero[1:], {}) if zero[0] == "@" else msgspec.json.decode(zero)
        elif omit and found in ("", [], {}):
            continue
        elif inner and isinstance(found, dict | list):
            out[name] = as_internal(inner, found)
        else:
            out[name] = dict(sorted(found.items())) if isinstance(found, dict) else found
    return out


def _found(value: Json, field: str) -> Any:
    if field == ".":
        return value
    outer, dot, rest = field.partition(".")
    return _found(value.get(outer) or {}, rest) if dot else value.get(field)


@cache
def _table() -> dict[str, list[tuple[str, str, int, str, str]]]:
    """By model, for each field: Go name, JSON name, omitempty, zero value, model."""
    data = resources.files("ostinato.server").joinpath("data/go_shown.json").read_bytes()
    return msgspec.json.decode(data, type=dict[str, list[tuple[str, str, int, str, str]]])
