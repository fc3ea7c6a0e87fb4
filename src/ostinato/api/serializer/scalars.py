"""Leaves: the values that JSON has no type for, between text and Python.

`Time`, `MicroTime`, `Duration` and `Quantity` are texts on the wire; the zero `Time` is null, as Kubernetes writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from ostinato.api.quantity import Quantity
from ostinato.api.time import Duration, MicroTime, Time

_PARSE: Final[dict[type[Any], Callable[[str], Any]]] = {
    # Many objects have the same moments, and one of them several times; and a moment cannot be changed.
    Time: lru_cache(maxsize=1024)(Time.parse),
    MicroTime: lru_cache(maxsize=1024)(MicroTime.parse),
    Duration: Duration.parse,
}


def decode_scalar(leaf: type[Any], value: Any) -> Any:
    """For msgspec: the value of one of the types above. A ValueError or TypeError if it cannot be one."""
    parse = _PARSE.get(leaf)
    if parse is not None:
        if not isinstance(value, str):
            raise TypeError(f"expected {leaf.__name__}, got {type(value).__name__}")
        return parse(value)
    if leaf is Quantity:
        return Quantity.from_json(value)  # a number is one too: people write `cpu: 1`
    raise NotImplementedError(f"{leaf} has no JSON form")


def encode_scalar(value: Any) -> Any:
    """For msgspec: what stands on the wire for a value of one of the types above."""
    if isinstance(value, Time | MicroTime):
        return None if value.is_zero else str(value)
    if isinstance(value, Quantity | Duration):
        return str(value)
    raise NotImplementedError(f"{type(value)} has no JSON form")
