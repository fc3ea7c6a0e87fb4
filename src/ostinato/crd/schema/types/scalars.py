"""Schemas of scalars: strings, numbers, times, enums."""

from __future__ import annotations

import datetime
import enum
from typing import Any, Final

from ostinato.api.quantity import Quantity
from ostinato.api.time import Duration, MicroTime, Time
from ostinato.crd.schema.place import Place

# The same as controller-gen's.
QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
# Go's notation; `Duration` parses all that matches, up to its range.
DURATION_PATTERN: Final = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"

_INT_OR_STRING: Final = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_SCALARS: Final[dict[type, dict[str, Any]]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    Time: {"type": "string", "format": "date-time"},
    MicroTime: {"type": "string", "format": "date-time"},
    Duration: {"type": "string", "pattern": DURATION_PATTERN},
    Quantity: {**_INT_OR_STRING, "pattern": QUANTITY_PATTERN},
}
_INSTEAD: Final = {  # types without a portable JSON form, and the replacement
    datetime.timedelta: "Duration",
    datetime.time: "str",
    complex: "two fields",
    object: "Any",
}


def int_or_string() -> dict[str, Any]:
    return {**_INT_OR_STRING}


def scalar(cls: Any, at: Place) -> dict[str, Any] | None:
    """Return the schema of a scalar type; None for any other."""
    if not isinstance(cls, type):
        return None
    if cls in _SCALARS:
        return {**_SCALARS[cls]}
    if cls in _INSTEAD:
        raise at.error(f"{cls.__name__} has no portable JSON form: use {_INSTEAD[cls]}")
    if (cls.__module__, cls.__name__) == ("uuid", "UUID"):
        return {"type": "string", "format": "uuid"}
    if (cls.__module__, cls.__name__) == ("decimal", "Decimal"):
        raise at.error("Decimal has no portable JSON form: use Quantity, or a str with a Pattern")
    if issubclass(cls, enum.Flag):
        raise at.error(f"{cls.__name__} is a set of flags: use set[...] of an enum with strings")
    if issubclass(cls, enum.Enum):
        return choices([member.value for member in cls], at)
    return None


def choices(values: list[Any], at: Place) -> dict[str, Any]:
    """Return the schema of an enum."""
    types = {type(value) for value in values}
    if types == {str}:
        return {"type": "string", "enum": values}
    if types == {int}:
        return {"type": "integer", "enum": values}
    if types == {int, str}:
        return {"x-kubernetes-int-or-string": True, "enum": values}
    if types == {bool}:
        return {"type": "boolean", "enum": values}
    raise at.error(f"the values {values!r} are not an enum: use strings or integers")
