"""Values of templates, and the Go types that they stand for.

| Python | Go |
|---|---|
| None | nil in an interface |
| bool, str, bytes | bool, string, []uint8 |
| int, float | int, float64 |
| Int64, Int32, Uint8, Uint64 | int64, int32, uint8, uint64 |
| dict, list | map[string]interface {}, []interface {} |
| Strings, Ints | []string, []int |
| Map, List | a dict or list with another type, and methods |
| Object | a struct, or another type with fields and methods |

Other Python objects are not values: nothing of them can be read, called or printed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.gotemplate.errors import TemplateError

Value = Any  # a template's value has no static type


class NoValue:
    """The type of NO_VALUE."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Final = NoValue()  # what a missing key gives: not even nil (Go's invalid reflect.Value)


class Int64(int):
    """An int64."""

    __slots__ = ()
    go_type = "int64"


class Int32(int):
    """An int32."""

    __slots__ = ()
    go_type = "int32"


class Uint8(int):
    """A uint8, or byte: what the index of a string is."""

    __slots__ = ()
    go_type = "uint8"


class Uint64(int):
    """A uint64."""

    __slots__ = ()
    go_type = "uint64"


_NO_METHODS: Final[Mapping[str, Callable[..., Value]]] = {}


class Map(dict[str, Value]):
    """A map of another type than map[string]interface {}, perhaps with methods.

    - `element`: the type of its values.
    - `methods`: functions by name; they hide keys of the same name, as in Go.
    """

    go_type = "map[string]interface {}"
    element = "interface {}"
    methods: Mapping[str, Callable[..., Value]] = _NO_METHODS


class List(list[Value]):
    """A list of another type than []interface {}, perhaps with methods."""

    go_type = "[]interface {}"
    element = "interface {}"
    methods: Mapping[str, Callable[..., Value]] = _NO_METHODS


class Strings(List):
    """A []string."""

    go_type = "[]string"
    element = "string"


class Ints(List):
    """A []int."""

    go_type = "[]int"
    element = "int"


class FunctionValue:
    """A function as a value: only what the program made one."""

    __slots__ = ()
    go_type = "func()"


class Object:
    """A struct, or another Go type that is not a basic one.

    - `go_type`: its name in messages and in `%T`.
    - `fields`: what templates read. `methods`: functions by name.
    - `text()`: what its String method returns; None if it has none, and the fields are printed.
    """

    go_type = "struct {}"

    def __init__(
        self,
        fields: Mapping[str, Value] | None = None,
        methods: Mapping[str, Callable[..., Value]] | None = None,
        go_type: str | None = None,
    ) -> None:
        self.fields: Mapping[str, Value] = {} if fields is None else fields
        self.methods: Mapping[str, Callable[..., Value]] = {} if methods is None else methods
        if go_type is not None:
            self.go_type = go_type

    def text(self) -> str | None:
        return None


_BASIC: Final[dict[type, str]] = {
    str: "string",
    int: "int",
    float: "float64",
    bool: "bool",
    dict: "map[string]interface {}",
    list: "[]interface {}",
    bytes: "[]uint8",
    type(None): "<nil>",
    NoValue: "<nil>",
}
_ZEROS: Final[dict[str, Value]] = {"string": "", "int": 0, "int64": Int64(0), "float64": 0.0, "bool": False}


def go_type(value: Value) -> str:
    """The name of the Go type of a value."""
    name = _BASIC.get(type(value))
    if name is not None:
        return name
    if isinstance(value, Map | List | Object | FunctionValue | Int64 | Int32 | Uint8 | Uint64):
        return value.go_type
    for base in (bool, str, int, float, bytes, dict, list):
        if isinstance(value, base):
            return _BASIC[base]
    raise TemplateError(f"a Python object of type {type(value).__name__} is not a template value")


def element_type(value: Value) -> str:
    """The type of what a loop over the value gives."""
    if isinstance(value, Map | List):
        return value.element
    if isinstance(value, int):
        return go_type(value)
    return "uint8" if isinstance(value, bytes) else "interface {}"


def zero(type_name: str) -> Value:
    """The zero value of a type; None for types that can be nil."""
    if type_name == "uint8":
        return Uint8(0)
    return _ZEROS.get(type_name)


def kind(value: Value) -> str:
    """The kind that comparisons and loops distinguish: bool, int, uint, float, string, map, slice, struct or nil."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "uint" if isinstance(value, Uint8 | Uint64) else "int"
    if isinstance(value, float):
        return "float"
    if isinstance(value, dict):
        return "map"
    if isinstance(value, list | bytes):
        return "slice"
    if value is None or value is NO_VALUE:
        return "nil"
    if isinstance(value, Object):
        return "struct"
    go_type(value)
    return "func"


def sorted_keys(value: dict[Value, Value]) -> list[Value]:
    """The keys of a map in Go's order."""
    try:
        return sorted(value)
    except TypeError:
        return sorted(value, key=lambda key: (kind(key), key))
