"""Keywords that look at one value only."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, Final

from ostinato.charts.schema.problem import quoted, same
from ostinato.charts.schema.references import compiled_pattern
from ostinato.gotemplate.fmt import sprint

_LIMITS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "minimum": operator.lt,
    "maximum": operator.gt,
    "exclusiveMinimum": operator.le,
    "exclusiveMaximum": operator.ge,
}


def string_problems(schema: dict[str, Any], value: str) -> Iterator[str]:
    if "minLength" in schema and len(value) < schema["minLength"]:
        yield f"minLength: got {len(value)}, want {int(schema['minLength'])}"
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        yield f"maxLength: got {len(value)}, want {int(schema['maxLength'])}"
    if "pattern" in schema and not compiled_pattern(schema["pattern"]).search(value):
        yield f"{quoted(value)} does not match pattern {quoted(schema['pattern'])}"


def number_problems(schema: dict[str, Any], value: float) -> Iterator[str]:
    for keyword, fails in _LIMITS.items():
        limit = schema.get(keyword)
        if isinstance(limit, bool):  # draft 4: a flag beside the limit
            limit = schema.get(keyword.removeprefix("exclusive").lower()) if limit else None
        if limit is not None and fails(value, limit):
            yield f"{keyword}: got {_shown(value)}, want {_shown(limit)}"
    step = schema.get("multipleOf")
    if step and Fraction(repr(float(value))) % Fraction(repr(float(step))):
        yield f"multipleOf: got {_shown(value)}, want {_shown(step)}"


def _shown(number: float) -> str:
    return sprint(float(number))


def array_problems(schema: dict[str, Any], value: list[Any]) -> Iterator[str]:
    if "minItems" in schema and len(value) < schema["minItems"]:
        yield f"minItems: got {len(value)}, want {int(schema['minItems'])}"
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        yield f"maxItems: got {len(value)}, want {int(schema['maxItems'])}"
    if schema.get("uniqueItems") is True:
        equal = next(((i, j) for j in range(len(value)) for i in range(j) if same(value[i], value[j])), None)
        if equal:
            yield f"items at {equal[0]} and {equal[1]} are equal"
