"""Field and item access on values, and the errors for missing fields.

Messages are JSON objects, in which null fields are absent. Values of maps may be null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.cel.evaluate.code import SPENT, Frame, Run
from ostinato.cel.libraries.formatting import text_of
from ostinato.cel.types import Type, unwrap_optional
from ostinato.cel.values import NONE, CelError, Optional, Uint, type_name

_MISSING: Final = object()


def selected(operand: Run, kind: Type, name: str) -> Run:
    """Access a field; an absent one is an error."""
    inner, optional = unwrap_optional(kind)
    if inner.kind == "struct" and inner.origin is not None and not inner.origin.computed and not optional:
        return _message_field(operand, inner, name)
    find = finder(inner, name)

    def function(frame: Frame) -> Any:
        value = operand(frame)
        if type(value) is Optional:
            return _of_optional(frame, value, find)
        found = find(value)
        if found is _MISSING:
            raise CelError(f"no such key: {name}")
        return found

    return function


def _message_field(operand: Run, kind: Type, name: str) -> Run:
    field, convert = kind.origin.names[name], kind.origin.fields[name].convert

    def function(frame: Frame) -> Any:
        value = operand(frame)
        found = value.get(field) if type(value) is dict else None
        if found is None:
            raise CelError(f"no such key: {name}")
        return found

    if convert is None:
        return function
    return lambda frame: convert(function(frame))


def finder(kind: Type, name: str) -> Callable[[Any], Any]:
    """Return a function that looks up a field; it returns its value, or `_MISSING`."""
    declaration = kind.origin if kind.kind == "struct" else None
    if declaration is not None and not declaration.computed and name in declaration.fields:
        field, convert = declaration.names[name], declaration.fields[name].convert

        def of_message(value: Any) -> Any:
            found = value.get(field) if type(value) is dict else None
            if found is None:
                return _MISSING
            return found if convert is None else convert(found)

        return of_message

    def of_map(value: Any) -> Any:
        if type(value) is dict:
            return value.get(name, _MISSING)
        fields = getattr(value, "field", None)  # values that compute their fields: variables of policies
        if fields is not None:
            return fields(name)
        if type(value) is list:
            raise _no_index(name)
        return _MISSING

    return of_map


def has_field(operand: Run, kind: Type, name: str) -> Run:
    """Test whether a field is present."""
    inner, _ = unwrap_optional(kind)
    find = finder(inner, name)

    def function(frame: Frame) -> bool:
        value = operand(frame)
        if type(value) is Optional:
            return value.present and find(value.value) is not _MISSING
        return find(value) is not _MISSING

    return function


def optional_field(operand: Run, kind: Type, name: str) -> Run:
    """Access an optional field."""
    inner, _ = unwrap_optional(kind)
    find = finder(inner, name)

    def function(frame: Frame) -> Optional:
        value = operand(frame)
        return _of_optional(frame, value if type(value) is Optional else Optional(value), find)

    return function


def _of_optional(frame: Frame, value: Optional, find: Callable[[Any], Any]) -> Optional:
    """Access a field of an optional value; only present values have a cost."""
    found = find(value.value) if value.present else _MISSING
    if found is _MISSING:
        return NONE
    frame[SPENT] += 1
    return Optional(found)


def index(target: Run, key: Run, kind: Type) -> Run:
    """Access an item of a list, or an entry of a map."""
    escapes = kind.kind == "struct"

    def function(frame: Frame) -> Any:
        value, at = target(frame), key(frame)
        if type(value) is list:
            return _item(value, at)
        if type(value) is dict:
            found = value.get(at, _MISSING) if not isinstance(at, (list, dict)) else _MISSING
            if found is _MISSING or (escapes and found is None):
                raise CelError(f"no such key: {at}")
            return found
        if type(value) is Optional:
            return _optional_item(frame, value, at)
        raise CelError(f"no such key: {text_of(at)}")

    return function


def _item(items: list[Any], at: Any) -> Any:
    place = _list_index(at)
    if 0 <= place < len(items):
        return items[place]
    raise CelError(f"index out of bounds: {place}")


def _list_index(at: Any) -> int:
    """Convert a value to an index of a list."""
    if type(at) is float:
        if at.is_integer():
            return int(at)
        raise CelError(f"unsupported index value {text_of(at)} in list")
    if type(at) is int or type(at) is Uint:
        return at
    raise _no_index(at)


def _no_index(at: Any) -> CelError:
    return CelError(f"unsupported index type '{type_name(at)}' in list")


def optional_index(target: Run, key: Run) -> Run:
    """Access an optional item of a list, or entry of a map."""

    def function(frame: Frame) -> Optional:
        value = target(frame)
        return _optional_item(frame, value if type(value) is Optional else Optional(value), key(frame))

    return function


def _optional_item(frame: Frame, value: Optional, at: Any) -> Optional:
    inner = value.value
    if not value.present:
        return NONE
    if type(inner) is dict:
        there = not isinstance(at, (list, dict)) and at in inner
    else:
        there = type(inner) is list and 0 <= (at := _list_index(at)) < len(inner)
    if not there:
        return NONE
    frame[SPENT] += 1
    return Optional(inner[at])
