"""Kinds, types and equality of values, as Go's package reflect has them."""

from __future__ import annotations

from typing import Any, Final

from ostinato.gotemplate.values import Int32, Int64, List, Map, Object, Strings, Uint8, Uint64, go_type

_INTEGERS: Final = {Int64: "int64", Int32: "int32", Uint8: "uint8", Uint64: "uint64"}


class StringMap(Map):
    """A map[string]string."""

    go_type = "map[string]string"
    element = "string"


class Lists(List):
    """A [][]interface {}."""

    go_type = "[][]interface {}"
    element = "[]interface {}"


class NilList(List):
    """A []interface {} that is nil: empty, and `null` in JSON."""


class NilStrings(Strings):
    """A []string that is nil."""


def is_slice(value: Any) -> bool:
    return isinstance(value, list | bytes)


def is_map(value: Any) -> bool:
    return isinstance(value, dict)


def elements(value: Any) -> list[Any]:
    """Return the elements of a slice; those of bytes are numbers."""
    return [Uint8(each) for each in value] if isinstance(value, bytes) else list(value)


def kind_of(value: Any) -> str:
    """Return the name of a value's reflect.Kind."""
    match value:
        case None:
            return "invalid"
        case bool():
            return "bool"
        case str():
            return "string"
        case int():
            return _INTEGERS.get(type(value), "int")
        case float():
            return "float64"
        case dict():
            return "map"
        case list() | bytes():
            return "slice"
        case Object():
            return "ptr" if value.go_type.startswith("*") else "struct"
        case _:
            return "func"


def deep_equal(a: Any, b: Any) -> bool:
    """Whether reflect.DeepEqual holds: types count, so that 1 and 1.0 differ."""
    if go_type(a) != go_type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(key in b and deep_equal(each, b[key]) for key, each in a.items())
    if isinstance(a, list):
        nils = isinstance(a, NilList | NilStrings), isinstance(b, NilList | NilStrings)
        return nils[0] == nils[1] and len(a) == len(b) and all(map(deep_equal, a, b))
    if isinstance(a, Object):
        return a is b or dict(a.fields) == dict(b.fields)
    return bool(a == b)


def same_type(like: Any, made: Any) -> Any:
    """Return a list or map with the type of another."""
    if isinstance(like, bytes):
        return bytes(made)
    if isinstance(like, Map | List):
        typed = type(like)
        return List(made) if typed is NilList else Strings(made) if typed is NilStrings else typed(made)
    return made
