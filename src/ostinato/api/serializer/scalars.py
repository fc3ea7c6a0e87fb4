"""Scalar types without a JSON type: `Time`, `MicroTime`, `Duration` and `Quantity`.

They are strings in JSON; the zero `Time` is null, as in Kubernetes. The functions are hooks for msgspec.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from ostinato.api.quantity import Quantity
from ostinato.api.time import Duration, MicroTime, Time

_PARSE: Final[dict[type[Any], Callable[[str], Any]]] = {
    # Objects have the same times often, and times are immutable.
    Time: lru_cache(maxsize=1024)(Time.parse),
    MicroTime: lru_cache(maxsize=1024)(MicroTime.parse),
    Duration: Duration.parse,
}


def decode_scalar(leaf: type[Any], value: Any) -> Any:
    """Decode a value of one of these types. Raises ValueError or TypeError."""
    parse = _PARSE.get(leaf)
    if parse is not None:
        if not isinstance(value, str):
            raise TypeError(f"expected {leaf.__name__}, got {type(value).__name__}")
        return parse(value)
    if leaf is Quantity:
        return Quantity.from_json(value)  # numbers are allowed: `cpu: 1`
    raise NotImplementedError(f"{leaf} has no JSON form")


def encode_scalar(value: Any) -> Any:
    """Encode a value of one of these types."""
    if isinstance(value, Time | MicroTime):
        return None if value.is_zero else str(value)
    if isinstance(value, Quantity | Duration):
        return str(value)
    raise NotImplementedError(f"{type(value)} has no JSON form")
