"""Go's formatting verbs for JSON values: `%q`, `%v` and `json.Marshal`.

The API server formats values in its messages with them; these functions return the same strings, byte for byte.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    '"': '\\"',
    "\\": "\\\\",
}

_JSON_ESCAPES = {
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    '"': '\\"',
    "\\": "\\\\",
}


class GoStruct(dict[str, Any]):
    """A struct: its fields keep their order, whereas the keys of a map are sorted."""


def quote(text: str) -> str:
    """Format a string as `%q`: in double quotes, with Go's escapes."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _escape(ord(c))) for c in text) + '"'


def _escape(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"  # Go replaces lone surrogates in decoding
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(value: Any) -> str:
    """Format a value as `%v`: strings unchanged, numbers in the shortest form, booleans; others as JSON."""
    match value:
        case str():
            return value
        case float():
            return _float(value, low=-4, high=6)
        case _:
            return json_text(value)


def json_text(value: Any) -> str:
    """Format a value as Go's `json.Marshal`: compact, keys sorted, `<`, `>` and `&` escaped."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _json_float(value)
        case str():
            return _json_string(value)
        case GoStruct():
            return "{" + ",".join(f"{_json_string(k)}:{json_text(v)}" for k, v in value.items()) + "}"
        case Mapping():
            entries = sorted((str(k), v) for k, v in value.items())
            return "{" + ",".join(f"{_json_string(k)}:{json_text(v)}" for k, v in entries) + "}"
        case list() | tuple():
            return "[" + ",".join(map(json_text, value)) + "]"
        case _:
            return str(value)


def _json_string(text: str) -> str:
    return '"' + "".join(_json_character(c) for c in text) + '"'


def _json_character(c: str) -> str:
    if c in _JSON_ESCAPES:
        return _JSON_ESCAPES[c]
    if c < " " or c in "<>&\u2028\u2029":
        return f"\\u{ord(c):04x}"
    return "\ufffd" if "\ud800" <= c <= "\udfff" else c


def _json_float(value: float) -> str:
    text = _float(value, low=-6, high=21)
    return text.replace("e-0", "e-")  # exponents are not padded in JSON


def _float(value: float, *, low: int, high: int) -> str:
    """Format the shortest digits of a number; with an exponent below 10^low and from 10^high."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, scale = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(scale, int)
    exponent = len(digits) + scale - 1
    prefix = "-" if sign else ""
    if low <= exponent < high:
        return prefix + format(Decimal((0, digits, scale)), "f")
    mantissa = "".join(map(str, digits))
    fraction = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    return f"{prefix}{mantissa[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
