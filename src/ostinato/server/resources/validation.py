"""Small checks that the validation of every kind is made of.

A check looks at one value and says what is wrong with it as a list of field errors, in the order in which they are
told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from ostinato.api import addresses, field_values
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.quantity import Quantity

_NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def checked(rule: Callable[[Any], list[str]], value: Any, path: Path) -> list[FieldError]:
    """What a rule for single values finds."""
    return [FieldError.invalid(path, value, text) for text in rule(value)]


def one_of(value: str, supported: Sequence[str], path: Path) -> list[FieldError]:
    """One of the values, named in this order; "" is none."""
    if value in supported:
        return []
    return [FieldError.not_supported(path, value, supported) if value else FieldError.required(path)]


def not_negative(value: int, path: Path) -> list[FieldError]:
    return [] if value >= 0 else [FieldError.invalid(path, value, _NOT_NEGATIVE)]


def unchanged(new: Any, old: Any, path: Path) -> list[FieldError]:
    return [] if new == old else [FieldError.invalid(path, new, IMMUTABLE)]


def not_negative_quantity(text: str, path: Path) -> list[FieldError]:
    return [] if Quantity.parse(text).sign >= 0 else [FieldError.invalid(path, text, _NOT_NEGATIVE)]


def positive_quantity(text: str, path: Path) -> list[FieldError]:
    return [] if Quantity.parse(text).sign > 0 else [FieldError.invalid(path, text, "must be greater than zero")]


def legacy_ip(ip: str, path: Path, existing: Collection[str] = ()) -> list[FieldError]:
    """An address in a field that has always taken unusual forms: those that stand there may stay."""
    return checked(lambda text: addresses.is_legacy_ip(text, strict=text not in existing), ip, path)


def legacy_cidr(cidr: str, path: Path, existing: Collection[str] = ()) -> list[FieldError]:
    return checked(lambda text: addresses.is_legacy_cidr(text, strict=text not in existing), cidr, path)


def port_reference(port: Any, path: Path) -> list[FieldError]:
    """A port by its number or by its name."""
    return checked(field_values.is_port_name if isinstance(port, str) else field_values.is_port_number, port, path)
