"""Quantities and semantic versions: the quantity and semver libraries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from ostinato.api.quantity import Quantity as Amount
from ostinato.api.quantity import QuantityError
from ostinato.cel.libraries.version_errors import version_error
from ostinato.cel.values import CelError, Library

_MOST: Final = (1 << 63) - 1


class Quantity(Library):
    __slots__ = ("amount",)
    type_name = "kubernetes.Quantity"

    def __init__(self, amount: Amount) -> None:
        self.amount = amount

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and other.amount == self.amount

    def __hash__(self) -> int:
        return hash(self.amount)


def quantity(text: str) -> Quantity:
    try:
        return Quantity(Amount.parse(text))
    except QuantityError as error:
        raise CelError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        quantity(text)
    except CelError:
        return False
    return True


def _is_integer(value: Quantity) -> bool:
    return value.amount.is_integer and abs(value.amount.value()) <= _MOST


def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return value.amount.value()


def _order(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


_PART: Final = r"(0|[1-9][0-9]*)"
_IDENTIFIER: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_VERSION: Final = re.compile(
    rf"{_PART}\.{_PART}\.{_PART}(?:-({_IDENTIFIER}(?:\.{_IDENTIFIER})*))?(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?",
    re.ASCII,
)
_LONGEST: Final = 1000  # characters
_MOST_PART: Final = (1 << 64) - 1


class Semver(Library):
    __slots__ = ("key", "parts")
    type_name = "kubernetes.Semver"

    def __init__(self, parts: tuple[int, int, int], before: str) -> None:
        self.parts = parts
        identifiers = tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in before.split(".")) if before else ()
        self.key = (parts, not before, identifiers)  # a pre-release is older than its release

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


def semver(text: str, normalize: bool = False) -> Semver:
    text = _normal(text) if normalize else text
    found = _VERSION.fullmatch(text) if len(text) <= _LONGEST else None
    if found is None or any(int(part) > _MOST_PART for part in found.groups()[:3]):
        raise CelError(version_error(text))
    major, minor, patch = (int(part) for part in found.groups()[:3])
    return Semver((major, minor, patch), found[4] or "")


def _normal(text: str) -> str:
    """Normalize: no leading v, three parts, no leading zeros."""
    parts = [_stripped(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise CelError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, *["0"] * (3 - len(parts))])


def _stripped(part: str) -> str:
    if len(part) < 2:
        return part
    part = part.lstrip("0")
    return part if part[:1] in tuple("0123456789") else f"0{part}"


def _is_semver(text: str, normalize: bool = False) -> bool:
    try:
        semver(text, normalize)
    except CelError:
        return False
    return True


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "string_to_quantity": quantity,
    "is_quantity_string": _is_quantity,
    "quantity_sign": lambda a: a.amount.sign,
    "quantity_is_integer": _is_integer,
    "quantity_get_int": _as_integer,
    "quantity_get_float": lambda a: float(a.amount),
    "quantity_add": lambda a, b: Quantity(a.amount + b.amount),
    "quantity_add_int": lambda a, b: Quantity(a.amount + Amount.of(b)),
    "quantity_sub": lambda a, b: Quantity(a.amount - b.amount),
    "quantity_sub_int": lambda a, b: Quantity(a.amount - Amount.of(b)),
    "quantity_is_greater_than": lambda a, b: a.amount > b.amount,
    "quantity_is_less_than": lambda a, b: a.amount < b.amount,
    "quantity_compare_to": lambda a, b: _order(a.amount, b.amount),
    "string_to_semver": semver,
    "string_bool_to_semver": semver,
    "is_semver_string": _is_semver,
    "is_semver_string_bool": _is_semver,
    "semver_major": lambda a: a.parts[0],
    "semver_minor": lambda a: a.parts[1],
    "semver_patch": lambda a: a.parts[2],
    "semver_is_greater_than": lambda a, b: a.key > b.key,
    "semver_is_less_than": lambda a, b: a.key < b.key,
    "semver_compare_to": lambda a, b: _order(a.key, b.key),
}
