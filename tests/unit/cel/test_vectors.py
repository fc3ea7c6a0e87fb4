"""What the CEL of Kubernetes v1.36 says of expressions, recorded: issues, types, values, errors, costs."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import pytest

from ostinato.cel.check.declarations import declared
from ostinato.cel.cost.estimate import estimate
from ostinato.cel.expression import CompileError, Expression, ProgramError
from ostinato.cel.libraries.timestamps import duration_text, timestamp_text
from ostinato.cel.values import CelError, Duration, Optional, Timestamp, TypeValue, Uint

_VECTORS = json.loads((Path(__file__).parents[2] / "data" / "cel" / "vectors.json").read_text())

# What is told differently, and why.
_DIFFERENT = {
    "timestamp('2020-01-01T00:00:00+01:00')": "a point in time does not remember the offset that it was written with",
    "has(self.null)": "macros are not looked at in texts with errors of syntax",
}


def _shown(value: Any) -> Any:
    match value:
        case None:
            return {"null": True}
        case bool() | str():
            return value
        case Uint():
            return {"uint": str(int(value))}
        case int():
            return {"int": str(value)}
        case float():
            special = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            return {"double": value if math.isfinite(value) else special}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case Timestamp():
            return {"timestamp": timestamp_text(value)}
        case Duration():
            return {"duration": duration_text(value)}
        case Optional():
            return {"optional": _shown(value.value) if value.present else None}
        case list():
            return {"list": [_shown(item) for item in value]}
        case dict():
            return {"map": [[_shown(key), _shown(item)] for key, item in value.items()]}
        case TypeValue():
            return {"type": value.name}
    return {"other": value.type_name}


def _ordered(value: Any) -> Any:
    """Maps have no order."""
    if isinstance(value, dict):
        if "map" in value:
            return {"map": sorted(json.dumps([_ordered(key), _ordered(item)]) for key, item in value["map"])}
        return {name: _ordered(item) for name, item in value.items()}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _answer(case: dict[str, Any]) -> dict[str, Any]:
    known = case.get("with")
    declaration = declared(_VECTORS["schema"] if known else {"type": "object"}, name="selfType")
    assert declaration is not None
    try:
        expression = Expression(case["expr"], {"self": declaration.type, "oldSelf": declaration.type})
    except CompileError as error:
        return {"issues": str(error)}
    except ProgramError as error:
        return {"error": f"PROGRAM {error}"}
    most = estimate(expression.node, {"self": declaration, "oldSelf": declaration}).most
    found = {"type": str(expression.type), "max_cost": str(most)}
    try:
        value, cost = expression.evaluate([_VECTORS["self"] if known else {}, None], 1_000_000)
    except CelError as error:
        return found | {"error": str(error)}
    return found | {"value": _ordered(_shown(value)), "cost": cost}


def _expected(case: dict[str, Any]) -> dict[str, Any]:
    names = ("issues", "type", "max_cost", "error", "value", "cost")
    found = {name: _ordered(case[name]) for name in names if name in case}
    if "error" in found:
        del found["cost"]  # errors end evaluation in other places
    return {"error": found["error"]} if found.get("error", "").startswith("PROGRAM") else found


@pytest.mark.parametrize("case", _VECTORS["cases"], ids=lambda case: case["expr"])
def test_an_expression_means_what_it_means_to_kubernetes(case: dict[str, Any]) -> None:
    assert (_answer(case) == _expected(case)) is (case["expr"] not in _DIFFERENT)
