"""Leaves: the values that JSON has no type for, between text and Python.

`Time`, `MicroTime`, `Duration` and `Quantity` are texts on the wire; the zero `Time` is null, as Kubernetes writes it.
"""

from __future__ import annotations

from typing import Any

from ostinato.api.quantity import Quantity
from ostinato.api.time import Duration, MicroTime, Time


def decode_leaf(leaf: type[Any], value: Any) -> Any:
    """For msgspec: the value of one of the types above. A ValueError or TypeError if it cannot be one."""
    if leaf is Time or leaf is MicroTime or leaf is Duration:
        if not isinstance(value, str):
            raise TypeError(f"expected {leaf.__name__}, got {type(value).__name__}")
        return leaf.parse(value)
    if leaf is Quantity:
        return Quantity.from_json(value)  # a number is one too: people write `cpu: 1`
    raise NotImplementedError(f"{leaf} has no JSON form")


def encode_leaf(value: Any) -> Any:
    """For msgspec: what stands on the wire for a value of one of the types above."""
    if isinstance(value, Time | MicroTime):
        return None if value.is_zero else str(value)
    if isinstance(value, Quantity | Duration):
        return str(value)
    raise NotImplementedError(f"{type(value)} has no JSON form")
