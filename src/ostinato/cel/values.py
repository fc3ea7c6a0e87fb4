"""Run-time values of CEL.

Most are Python's: bool, int, float, str, bytes, None, list, dict. Others are defined here: unsigned integers,
timestamps, durations, optional values, types. `equal` is CEL's equality: numbers by value; bools equal only bools.
"""

from __future__ import annotations

from typing import Any, Final


class CelError(Exception):
    """An evaluation failed."""

    cost: int = 0  # cost until the error


class CostExceededError(Exception):
    """An evaluation exceeded its cost limit."""

    cost: int = 0

    def __str__(self) -> str:
        return "operation cancelled: actual cost limit exceeded"


class Uint(int):
    """An unsigned integer."""

    __slots__ = ()


class _Nanoseconds:
    __slots__ = ("ns",)

    def __init__(self, ns: int) -> None:
        self.ns = ns

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.ns == self.ns

    def __hash__(self) -> int:
        return hash((type(self), self.ns))

    def __lt__(self, other: Any) -> bool:
        return bool(self.ns < other.ns)

    def __le__(self, other: Any) -> bool:
        return bool(self.ns <= other.ns)

    def __gt__(self, other: Any) -> bool:
        return bool(self.ns > other.ns)

    def __ge__(self, other: Any) -> bool:
        return bool(self.ns >= other.ns)


class Timestamp(_Nanoseconds):
    """A timestamp, in nanoseconds since 1970."""

    __slots__ = ()


class Duration(_Nanoseconds):
    """A duration in nanoseconds."""

    __slots__ = ()


class Optional:
    """An optional value."""

    __slots__ = ("present", "value")

    def __init__(self, value: Any = None, *, present: bool = True) -> None:
        self.value = value
        self.present = present

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Optional) or self.present != other.present:
            return False
        return not self.present or equal(self.value, other.value)

    __hash__ = None  # type: ignore[assignment]


NONE: Final = Optional(present=False)


class TypeValue:
    """A type as a value, the result of `type(x)`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeValue) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class Library:
    """Base of values of Kubernetes' libraries: addresses, quantities and others. They have a type name."""

    __slots__ = ()
    type_name: str = ""


_NAMES: Final[dict[type, str]] = {
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    type(None): "null_type",
    list: "list",
    dict: "map",
    Timestamp: "google.protobuf.Timestamp",
    Duration: "google.protobuf.Duration",
    Optional: "optional_type",
    TypeValue: "type",
}
_NUMBERS: Final = frozenset({int, Uint, float})


def type_name(value: Any) -> str:
    """Return the name of a value's type."""
    name = _NAMES.get(type(value))
    return name if name is not None else value.type_name if isinstance(value, Library) else type(value).__name__


def equal(a: Any, b: Any) -> bool:
    """Whether two values are equal; values of different types are not, except for numbers."""
    kind, other = type(a), type(b)
    if kind is not other:
        return kind in _NUMBERS and other in _NUMBERS and bool(a == b)
    if kind is list:
        return len(a) == len(b) and all(map(equal, a, b))
    if kind is dict:
        if len(a) != len(b):
            return False
        return all(key in b and equal(value, b[key]) for key, value in a.items())
    return bool(a == b)


def no_overload(name: str = "") -> CelError:
    """Return the error for a call without a matching overload."""
    return CelError(f"no such overload: {name}" if name else "no such overload")


def size_of(value: Any) -> int:
    """Return the size of a value for costs."""
    kind = type(value)
    if kind in (str, bytes, list, dict):
        return len(value)
    if kind is Optional and value.present:
        return size_of(value.value)
    size = getattr(value, "size", None)
    return size() if size is not None else 1


def zero(value: Any) -> bool:
    """Whether a value is the zero value of its type."""
    if isinstance(value, Timestamp):
        return value.ns == -62135596800 * 1_000_000_000
    if isinstance(value, Duration):
        return value.ns == 0
    if isinstance(value, Optional):
        return not value.present
    if isinstance(value, (TypeValue, Library)):
        return False
    return not value
