"""Plain YAML scalars: types by the rules of YAML 1.1, as Kubernetes applies them."""

from __future__ import annotations

import math
import re
from typing import Any, Final

_CONSTANTS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}

_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:(?: |(?P<zoned>[Tt]))([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?"
    r"(?(zoned)(?:Z|[-+][0-9]{2}:[0-9]{2})))?"
)
_DAYS: Final = dict(enumerate((31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), start=1))
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGERS: Final = (  # base and pattern, after the sign
    (16, re.compile(r"([-+]?)0[xX]([0-9a-fA-F]+)")),
    (2, re.compile(r"([-+]?)0[bB]([01]+)")),
    (8, re.compile(r"([-+]?)0[oO]?([0-7]+)")),
    (10, re.compile(r"([-+]?)(0|[1-9][0-9]*)")),
)
_TAGS: Final = {"!!str", "!!bool", "!!int", "!!float", "!!null", "!!timestamp"}
_BASE_60: Final = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")


class ScalarError(ValueError):
    """A scalar does not have the type of its tag, or cannot be represented in JSON."""


def resolve(tag: str, text: str) -> Any:
    """Return the value of a plain scalar, or of one with a tag ("!!int"); with an unknown tag it is a string."""
    if tag and tag not in _TAGS:
        return text
    if tag == "!!str":
        return text
    kind, value = _resolved(text)
    if tag == "!!float" and kind == "!!int":
        kind = "!!float"
    if tag not in ("", kind):
        raise ScalarError(f"yaml: cannot decode {kind} `{text}` as a {tag}")
    if isinstance(value, float):
        return _as_json(value)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        return float(value)
    return value


def reads_as_text(text: str) -> bool:
    """Whether an unquoted string is decoded to itself, also as a key."""
    return text != "<<" and _resolved(text)[0] == "!!str" and not _BASE_60.fullmatch(text)


def _resolved(text: str) -> tuple[str, Any]:
    if text in _CONSTANTS:
        value = _CONSTANTS[text]
        kind = "!!null" if value is None else "!!bool" if isinstance(value, bool) else "!!float"
        return kind, value
    first = text[0]
    if first == ".":
        return _float(text) or ("!!str", text)
    if first not in "+-0123456789":
        return "!!str", text
    if _is_timestamp(text):
        return "!!timestamp", text
    digits = text.replace("_", "")
    return _integer(digits) or _float(digits) or ("!!str", text)


def _is_timestamp(text: str) -> bool:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return False
    year, month, day, hour, minute, second = (int(found[part] or 0) for part in (1, 2, 3, 5, 6, 7))
    days = 29 if month == 2 and year % 4 == 0 and (year % 100 or year % 400 == 0) else _DAYS.get(month, 0)
    return 1 <= day <= days and hour < 24 and minute < 60 and second < 60


def _integer(text: str) -> tuple[str, int] | None:
    for base, shape in _INTEGERS:
        found = shape.fullmatch(text)
        if found is not None:
            if len(found[2]) > 64:
                return None  # exceeds 64 bits
            value = int(found[2], base)
            if found[1] == "-":
                value = -value
            fits = -(2**63) <= value < 2**64 if not found[1] else -(2**63) <= value < 2**63
            return ("!!int", value) if fits else None
    return None


def _float(text: str) -> tuple[str, float] | None:
    if not _FLOAT.fullmatch(text):
        return None
    value = float(text)
    return None if math.isinf(value) else ("!!float", value)


def _as_json(value: float) -> float | int:
    """Return the number after a JSON round trip, where integral floats become integers."""
    if not math.isfinite(value):
        raise ScalarError(f"json: unsupported value: {'NaN' if math.isnan(value) else '+Inf' if value > 0 else '-Inf'}")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value
