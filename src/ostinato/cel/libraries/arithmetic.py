"""Operators and conversions of numbers, strings and bytes; overflow is an error, as in Go."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.cel.libraries.float_format import shortest
from ostinato.cel.values import CelError, CostExceededError, TypeValue, Uint, type_name

_LEAST, _MOST, _MOST_UNSIGNED = -(1 << 63), (1 << 63) - 1, (1 << 64) - 1
_MOST_ITEMS: Final = 4_000_000  # of a result list; more do not fit into a request
_LONGEST_NUMBER: Final = 4000  # digits, leading zeros included


def whole(value: int) -> int:
    """Check the range of a 64-bit integer."""
    if _LEAST <= value <= _MOST:
        return value
    raise CelError("integer overflow")


def unsigned(value: int) -> Uint:
    if 0 <= value <= _MOST_UNSIGNED:
        return Uint(value)
    raise CelError("unsigned integer overflow")


def _quotient(a: int, b: int) -> int:
    if b == 0:
        raise CelError("division by zero")
    found = abs(a) // abs(b)
    return whole(found if (a < 0) == (b < 0) else -found)


def _remainder(a: int, b: int) -> int:
    if b == 0:
        raise CelError("modulus by zero")
    if a == _LEAST and b == -1:
        raise CelError("integer overflow")
    found = abs(a) % abs(b)
    return -found if a < 0 else found


def _divided(a: float, b: float) -> float:
    if b:
        return a / b
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def _unsigned_quotient(a: int, b: int) -> Uint:
    if b == 0:
        raise CelError("division by zero")
    return Uint(a // b)


def _unsigned_remainder(a: int, b: int) -> Uint:
    if b == 0:
        raise CelError("modulus by zero")
    return Uint(a % b)


def _int_of_float(value: float) -> int:
    if math.isnan(value) or not _LEAST < value < float(1 << 63):
        raise CelError("integer overflow")
    return int(value)


def _uint_of_float(value: float) -> Uint:
    if math.isnan(value) or not 0 <= value < float(1 << 64):
        raise CelError("unsigned integer overflow")
    return Uint(int(value))


def _int_of_text(text: str) -> int:
    return _parsed(text, "int", text[1:] if text[:1] in "+-" else text, _LEAST, _MOST)


def _uint_of_text(text: str) -> Uint:
    return Uint(_parsed(text, "uint", text, 0, _MOST_UNSIGNED))


def _parsed(text: str, kind: str, digits: str, least: int, most: int) -> int:
    if not digits or not (digits.isascii() and digits.isdigit()) or len(digits) > _LONGEST_NUMBER:
        raise _unconverted(kind)
    value = int(text)
    if not least <= value <= most:
        raise _unconverted(kind)
    return value


def _unconverted(kind: str) -> CelError:
    return CelError(f"type conversion error from 'string' to '{kind}'")


def _float_of_text(text: str) -> float:
    try:
        if "_" in text or text != text.strip() or not text.isascii():
            raise ValueError
        hexadecimal = text.lower().lstrip("+-").startswith("0x")
        if hexadecimal and "p" not in text.lower():
            raise ValueError  # Go uses an exponent
        value = float.fromhex(text) if hexadecimal else float(text)
    except (ValueError, OverflowError):
        raise _unconverted("double") from None
    if math.isinf(value) and "inf" not in text.lower():
        raise _unconverted("double")
    return value


_BOOLS: Final = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


def _bool_of_text(text: str) -> bool:
    if text not in _BOOLS:
        raise _unconverted("bool")
    return _BOOLS[text]


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


def _joined(a: list[Any], b: list[Any]) -> list[Any]:
    if len(a) + len(b) > _MOST_ITEMS:
        raise CostExceededError
    return [*a, *b]


def _itself(value: Any) -> Any:
    return value


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "logical_not": lambda a: not a,
    "negate_double": lambda a: -a,
    "negate_int64": lambda a: whole(-a),
    "add_int64": lambda a, b: whole(a + b),
    "subtract_int64": lambda a, b: whole(a - b),
    "multiply_int64": lambda a, b: whole(a * b),
    "divide_int64": _quotient,
    "modulo_int64": _remainder,
    "add_uint64": lambda a, b: unsigned(a + b),
    "subtract_uint64": lambda a, b: unsigned(a - b),
    "multiply_uint64": lambda a, b: unsigned(a * b),
    "divide_uint64": _unsigned_quotient,
    "modulo_uint64": _unsigned_remainder,
    "add_double": lambda a, b: a + b,
    "subtract_double": lambda a, b: a - b,
    "multiply_double": lambda a, b: a * b,
    "divide_double": _divided,
    "add_string": lambda a, b: a + b,
    "add_bytes": lambda a, b: a + b,
    "add_list": _joined,
    "bool_to_bool": _itself,
    "string_to_bool": _bool_of_text,
    "bytes_to_bytes": _itself,
    "string_to_bytes": lambda a: a.encode(),
    "double_to_double": _itself,
    "int64_to_double": float,
    "uint64_to_double": float,
    "string_to_double": _float_of_text,
    "int64_to_int64": _itself,
    "double_to_int64": _int_of_float,
    "string_to_int64": _int_of_text,
    "uint64_to_int64": lambda a: whole(int(a)),
    "uint64_to_uint64": _itself,
    "double_to_uint64": _uint_of_float,
    "int64_to_uint64": unsigned,
    "string_to_uint64": _uint_of_text,
    "string_to_string": _itself,
    "bool_to_string": lambda a: "true" if a else "false",
    "bytes_to_string": _text_of_bytes,
    "double_to_string": shortest,
    "int64_to_string": str,
    "uint64_to_string": lambda a: str(int(a)),
    "to_dyn": _itself,
    "type": lambda a: TypeValue(type_name(a)),
    **dict.fromkeys(("size_bytes", "bytes_size", "size_list", "list_size", "size_map", "map_size"), len),
    "size_string": len,
    "string_size": len,
}
