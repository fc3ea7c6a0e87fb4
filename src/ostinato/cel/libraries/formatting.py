"""The `format` function of strings: %s %d %f %e %b %x %X %o and their precision."""

from __future__ import annotations

import math
import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Final

from ostinato.api.text.go_format import quote
from ostinato.cel.libraries.float_format import shortest
from ostinato.cel.values import CelError, Duration, Timestamp, TypeValue, Uint, type_name

_CLAUSE: Final = re.compile(r"%(?:%|(\.[^A-Za-z]*)?([\s\S])?)")
_RAISED: Final = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_MOST_PRECISE: Final = 1000


def formatted(template: str, args: list[Any]) -> str:
    """Replace the clauses of a format string by values."""
    parts: list[str] = []
    at, used = 0, 0
    for match in _CLAUSE.finditer(template):
        parts.append(template[at : match.start()])
        at = match.end()
        if match.group() == "%%":
            parts.append("%")
            continue
        if used >= len(args):
            raise CelError(f"index {used} out of range")
        if match[2] is None:
            raise CelError("unexpected end of string")
        parts.append(_clause(match[2], _precision(match[1]), args[used]))
        used += 1
    return "".join(parts) + template[at:]


def clauses(template: str) -> list[str]:
    """Return the letters of the clauses of a format string."""
    found: list[str] = []
    for match in _CLAUSE.finditer(template):
        if match.group() == "%%":
            continue
        if match[2] is None:
            raise CelError("unexpected end of string")
        _precision(match[1])
        if match[2] not in "sdfebxXo":
            raise _unknown(match[2])
        found.append(match[2])
    return found


# Allowed types by the letter of a clause, and their description in messages.
_KINDS: Final = {
    "d": ({"int", "uint"}, "decimal clause can only be used on integers"),
    "f": ({"double", "string"}, "fixed-point clause can only be used on doubles"),
    "e": ({"double", "string"}, "scientific clause can only be used on doubles"),
    "b": ({"int", "uint", "bool"}, "only integers and bools can be formatted as binary"),
    "x": ({"int", "uint", "string", "bytes"}, "only integers, byte buffers, and strings can be formatted as hex"),
    "o": ({"int", "uint"}, "octal clause can only be used on integers"),
}


def clause_error(letter: str, kind: str) -> str:
    """Return the error if a type is not allowed for a clause; "" if it is."""
    kinds, fault = _KINDS.get(letter.lower(), (set(), ""))
    return fault if fault and kind not in kinds and kind not in ("dyn", "any", "error") else ""


def _unknown(letter: str) -> CelError:
    return CelError(f'could not parse formatting clause: unrecognized formatting clause "{letter}"')


def _precision(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text[1:]
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 4 or int(digits) > _MOST_PRECISE:
        raise CelError(f'error while parsing precision: error while converting precision to integer: "{digits}"')
    return int(digits)


def _clause(letter: str, precision: int | None, value: Any) -> str:
    match letter:
        case "s":
            return text_of(value)
        case "d":
            return _decimal(value)
        case "f":
            return _fixed(value, 6 if precision is None else precision)
        case "e":
            return _scientific(value, 6 if precision is None else precision)
        case "b":
            return _bits(value)
        case "x" | "X":
            text = _hexadecimal(value)
            return text.upper() if letter == "X" else text
        case "o":
            return format(_integer(value, "octal"), "o")
    raise _unknown(letter)


def text_of(value: Any) -> str:
    """Format a value as %s."""
    from ostinato.cel.libraries.timestamps import duration_text, timestamp_text  # noqa: PLC0415 - a cycle

    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return "null"
        case str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case float():
            return _special(value) or shortest(value)
        case int():
            return str(int(value))
        case Timestamp():
            return timestamp_text(value)
        case Duration():
            return duration_text(value)
        case TypeValue():
            return value.name
        case list():
            return f"[{', '.join(map(_inner, value))}]"
        case dict():
            entries = sorted((_inner(key), _inner(item)) for key, item in value.items())
            return "{" + ", ".join(f"{key}:{item}" for key, item in entries) + "}"
    raise CelError(
        f"error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
        f"lists, types, durations, and timestamps, was given {type_name(value)}"
    )


def _inner(value: Any) -> str:
    """Format a value within a list or map: strings are quoted, numbers have all digits."""
    if type(value) is str:
        return quote(value)
    return _fixed(value, 6) if type(value) is float else text_of(value)


def _special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else ""


def _integer(value: Any, clause: str) -> int:
    if type(value) in (int, Uint):
        return int(value)
    raise CelError(
        f"error during formatting: {clause} clause can only be used on integers, was given {type_name(value)}"
    )


def _decimal(value: Any) -> str:
    if type(value) is float and _special(value):
        return _special(value)
    return str(_integer(value, "decimal"))


def _double(value: Any, clause: str) -> float:
    if type(value) in (float, int, Uint):
        return float(value)
    raise CelError(
        f"error during formatting: {clause} clause can only be used on doubles, was given {type_name(value)}"
    )


def _fixed(value: Any, precision: int) -> str:
    number = _double(value, "fixed-point")
    if _special(number):
        return _special(number)
    return (
        str(Decimal(number).quantize(Decimal(1).scaleb(-precision), ROUND_HALF_EVEN))
        if precision < 25
        else (f"{number:.{precision}f}")
    )


def _scientific(value: Any, precision: int) -> str:
    number = _double(value, "scientific")
    if _special(number):
        return _special(number)
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    return f"{mantissa}×10{exponent.lstrip('+').translate(_RAISED)}"  # noqa: RUF001


def _bits(value: Any) -> str:
    if type(value) is bool:
        return "1" if value else "0"
    return format(_integer(value, "binary"), "b")


def _hexadecimal(value: Any) -> str:
    if type(value) is str:
        return value.encode().hex()
    if type(value) is bytes:
        return value.hex()
    return format(_integer(value, "hex"), "x")
