"""Numeric bounds and multipleOf, compared as kube-openapi does.

Integers are compared as int64, with truncated bounds; all other numbers as floats. A bound that the schema's type
cannot hold (a fraction with `type: integer`) makes every value invalid. Messages are those of kube-apiserver.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ostinato.api.text.go_format import plain

_MOST_EXACT: Final = float((1 << 53) - 1)
_CLOSE: Final = 1e-9
_LARGEST_FLOAT32: Final = 3.4028235677973366e38  # rounds down to the maximum of float32


class Fault(NamedTuple):
    """An error of a value. `name` is its path; None if the message has it."""

    code: str  # the kind of check that failed
    name: str | None
    message: str
    value: Any = None
    valid: Any = None  # the bound, or the allowed values


def is_integral(number: float) -> bool:
    """Whether a float is an integer, within rounding."""
    if not math.isfinite(number) or not -_MOST_EXACT - 1 <= number <= _MOST_EXACT:
        return False
    if number == math.trunc(number):
        return True
    if number < 0 or math.trunc(number) == 0:
        return False
    whole = float(math.trunc(number))
    return abs(number - whole) / (number + whole) < _CLOSE


def fits(number: float, kind: str, format_: str) -> bool:
    """Whether a type with its format can hold a number."""
    if kind == "integer":
        limit = 1 << (31 if format_ == "int32" else 63)
        return (isinstance(number, int) or number.is_integer()) and -limit <= number < limit
    return format_ != "float" or abs(number) < _LARGEST_FLOAT32


def truncate(number: float) -> int:
    """Truncate a bound to int64."""
    if not math.isfinite(number) or not -(1 << 63) <= number < 1 << 63:
        return -(1 << 63)
    return math.trunc(number)


def number_faults(raw: Mapping[str, Any], kind: str, format_: str, value: float, path: str) -> list[Fault]:
    """The errors of a number."""
    found = []
    if not fits(value, kind, format_):
        found.append(_misfit("Checked", kind, format_, path))
    factor, minimum, maximum = raw.get("multipleOf"), raw.get("minimum"), raw.get("maximum")
    if factor is not None:
        found += _multiple(factor, kind, format_, value, path)
    if minimum is not None:
        found += _bound(minimum, bool(raw.get("exclusiveMinimum")), kind, format_, value, path, upper=False)
    if maximum is not None:
        found += _bound(maximum, bool(raw.get("exclusiveMaximum")), kind, format_, value, path, upper=True)
    return found


def _misfit(what: str, kind: str, format_: str, path: str) -> Fault:
    form = f"with format {format_}" if format_ else "(default format)"
    return Fault("plain", None, f"{what} value must be of type {kind} {form} in {path}")


def _bound(
    bound: float, exclusive: bool, kind: str, format_: str, value: float, path: str, *, upper: bool
) -> list[Fault]:
    found = []
    if fits(bound, kind, format_):
        if isinstance(value, int):
            bound = truncate(bound)
    else:
        found.append(_misfit("Maximum boundary" if upper else "Minimum boundary", kind, format_, path))
        value = float(value)
        bound = float(bound)
    shown = str(bound) if isinstance(value, int) else plain(float(bound))
    broken = (
        (value >= bound if exclusive else value > bound) if upper else (value <= bound if exclusive else value < bound)
    )
    if broken:
        than = "less than" if upper else "greater than"
        equal = "" if exclusive else " or equal to"
        code = "maximum" if upper else "minimum"
        found.append(Fault(code, path, f"{path} in body should be {than}{equal} {shown}", value))
    return found


def _multiple(factor: float, kind: str, format_: str, value: float, path: str) -> list[Fault]:
    found = []
    whole = isinstance(value, int)
    if not fits(factor, kind, format_):
        found.append(_misfit("MultipleOf", kind, format_, path))
        whole = False
    if whole:
        factor = truncate(factor)
        if factor <= 0:
            return [*found, _not_positive(factor, str(factor), path)]
        if value % factor:
            found.append(_no_multiple(str(factor), value, path))
        return found
    value, factor = float(value), float(factor)
    if factor <= 0:
        return [*found, _not_positive(factor, plain(factor), path)]
    if not is_integral(1 / factor * value if factor < 1 else value / factor):
        found.append(_no_multiple(plain(factor), value, path))
    return found


def _not_positive(factor: float, shown: str, path: str) -> Fault:
    return Fault("factor", path, f"factor MultipleOf declared for {path} must be positive: {shown}", factor)


def _no_multiple(shown: str, value: float, path: str) -> Fault:
    return Fault("multiple", path, f"{path} in body should be a multiple of {shown}", value)
