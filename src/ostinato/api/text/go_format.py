"""How values read inside messages: the texts that Kubernetes clients print and search for.

The API server writes values into its messages with Go's formatting verbs. These functions give the same text for JSON
values, so that a message of ours equals the real one byte for byte.
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
    """The fields of a struct, which keep their order where the keys of a map are sorted."""


def quote(text: str) -> str:
    """Text in double quotes with Go's escapes, as `%q` prints it."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(c) or (c if c.isprintable() else _escape(ord(c))) for c in text) + '"'


def _escape(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"  # Go text holds no lone surrogates: they became this when the text was read
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def plain(value: Any) -> str:
    """A value as `%v` prints it: text as it is, numbers in the shortest form, true and false; all else as JSON."""
    match value:
        case str():
            return value
        case float():
            return _float(value, low=-4, high=6)
        case _:
            return json_text(value)


def json_text(value: Any) -> str:
    """A value as Go's `json.Marshal` writes it: compact, keys sorted, `<`, `>` and `&` escaped."""
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
    return text.replace("e-0", "e-")  # JSON numbers carry no padding in small exponents


def _float(value: float, *, low: int, high: int) -> str:
    """The shortest digits that read back as the same number; an exponent below 10^low and from 10^high on."""
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
