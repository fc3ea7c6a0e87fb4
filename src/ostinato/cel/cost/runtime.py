"""Run-time cost of calls in kube-apiserver's units: most cost 1, those that traverse strings cost by their size.

A cost is a number, or a function of the arguments and the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.cel.values import size_of

Cost = int | Callable[[tuple[Any, ...], Any], int]

CHECK: Final = 350_000  # cost of an authorizer check
LIST: Final = 10
MAP: Final = 30
MESSAGE: Final = 40
_SCALARS: Final = frozenset({"bool", "int", "uint", "double", "timestamp", "duration", "null", "type"})


def tenth(size: int) -> int:
    """Return the cost of traversing a string."""
    return -(-size // 10)


def _regex(size: int, pattern: int) -> int:
    return tenth(size + 1) * -(-pattern // 4)


def _walk(value: Any) -> int:
    kind = type(value)
    if kind is str:
        return len(value.encode()) // 10
    if kind is bytes:
        return len(value) // 10
    if kind is list:
        return sum(map(_walk, value))
    if kind is dict:
        return sum(_walk(key) + _walk(item) for key, item in value.items())
    return 1


def _first(args: tuple[Any, ...], _result: Any) -> int:
    return tenth(size_of(args[0]))


def _first_twice(args: tuple[Any, ...], _result: Any) -> int:
    return -(-size_of(args[0]) * 2 // 10)


def _contains_address(args: tuple[Any, ...], *, text: bool) -> int:
    return -(-size_of(args[0]) * 2 // 10) + (tenth(size_of(args[1])) if text else 0)


def _selector(args: tuple[Any, ...], _result: Any) -> int:
    size = size_of(args[1])
    return LIST + tenth(size) + -(-size // 2) * (LIST + MESSAGE)


def _smaller(args: tuple[Any, ...], _result: Any) -> int:
    return tenth(min(size_of(args[0]), size_of(args[1])))


_WALKS: Final = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})
_BY_FUNCTION: Final[dict[str, Cost]] = {
    "check": CHECK,
    **dict.fromkeys(("fieldSelector", "labelSelector"), _selector),
    **dict.fromkeys(_WALKS, lambda args, _: _walk(args[0])),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim", "jsonpatch.escapeKey"), _first),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_twice),
    "join": lambda _, result: -(-size_of(result) * 2 // 10),
    **dict.fromkeys(("find", "findAll"), lambda args, _: _regex(size_of(args[0]), size_of(args[1]))),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first),
    "sort": lambda args, _: _pairs(args[0]),
    "@sortByAssociatedKeys": lambda args, _: _pairs(args[1]),
    "validate": lambda args, _: _regex(size_of(args[1]), args[0].pattern_size),
}
_BY_OVERLOAD: Final[dict[str, Cost]] = {
    "string_to_ip": _first,
    "cidr_contains_ip_ip": lambda args, _: _contains_address(args, text=False),
    "cidr_contains_ip_string": lambda args, _: _contains_address(args, text=True),
    "cidr_contains_cidr": lambda args, _: _contains_address(args, text=False) + tenth(size_of(args[0])) + 1,
    "cidr_contains_cidr_string": lambda args, _: _contains_address(args, text=True) + tenth(size_of(args[0])) + 1,
    **dict.fromkeys(
        (
            "starts_with_string",
            "ends_with_string",
            "string_to_bytes",
            "bytes_to_string",
            "strings_quote",
            "string_format",
        ),
        _first,
    ),
    "list_slice": lambda _, result: len(result) + LIST + 1,
    "lists_range": lambda _, result: len(result) + LIST + 1,
    "list_reverse": lambda _, result: len(result) + LIST + 1,
    "list_flatten": lambda args, _: len(args[0]) + LIST + 1,
    "list_flatten_int": lambda args, _: len(args[0]) * args[1] + LIST + 1,
    "list_distinct": lambda args, _: _pairs(args[0]),
    "list_sets_contains_list": lambda args, _: len(args[0]) * len(args[1]) + 1,
    "list_sets_intersects_list": lambda args, _: len(args[0]) * len(args[1]) + 1,
    "list_sets_equivalent_list": lambda args, _: len(args[0]) * len(args[1]) * 2 + 1,
    "in_list": lambda args, _: size_of(args[1]),
    **dict.fromkeys(("add_string", "add_bytes"), lambda args, _: tenth(size_of(args[0]) + size_of(args[1]))),
    "matches_string": lambda args, _: _regex(size_of(args[0]), size_of(args[1])),
    "contains_string": lambda args, _: tenth(size_of(args[0])) * tenth(size_of(args[1])),
    **{
        f"{word}_{kind}": _smaller
        for word in ("less", "less_equals", "greater", "greater_equals")
        for kind in ("string", "bytes")
    },
}


def _pairs(items: list[Any]) -> int:
    """Return the cost of comparing all items of two lists."""
    tenths = 21 if items and type(items[0]) in (str, bytes) else 20
    return len(items) ** 2 * tenths // 10 + LIST + 1


def call_cost(function: str, overload: str) -> Cost:
    """Return the cost of a call."""
    return _BY_FUNCTION.get(function) or _BY_OVERLOAD.get(overload, 1)


def by_result(function: str, overload: str) -> bool:
    """Whether the cost depends on the result; other costs are counted before the call."""
    return function == "join" or overload in ("list_slice", "lists_range", "list_reverse")


def equality_cost(kind: str) -> Cost:
    """Return the cost of comparing values of a type."""
    return 1 if kind in _SCALARS or kind == "opaque" else _smaller
