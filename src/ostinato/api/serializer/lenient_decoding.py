"""Lenient reading: JSON that a server sent, fitted to a class that is stricter.

Servers leave out required fields and send null where a list or a text is expected; Go reads both as the zero value, and
so does this. Only a value of another type is an error, and it says where: "spec.containers[0].name: expected str, got
int".
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NoReturn

from ostinato.api.quantity import Quantity
from ostinato.api.serializer.scalars import decode_leaf
from ostinato.api.serializer.type_info import Shape
from ostinato.api.time import Duration, MicroTime, Time

_ZEROS: dict[type, Any] = {
    str: "",
    int: 0,
    float: 0.0,
    bool: False,
    bytes: "",
    Quantity: "0",
    Duration: "0s",
    Time: "0001-01-01T00:00:00Z",
    MicroTime: "0001-01-01T00:00:00.000000Z",
}
_PLAIN: dict[type, tuple[type, ...]] = {str: (str,), int: (int,), float: (float, int), bool: (bool,)}


class Mismatch(Exception):  # noqa: N818 - a value on its way up to the reader, which makes the error that users see
    """A value of a wrong type; the steps to it are added on the way up."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.steps: list[str] = []  # innermost first

    @property
    def path(self) -> str:
        return "".join(reversed(self.steps)).removeprefix(".")


def fit(value: Any, shape: Shape) -> Any:
    """The value without nulls and unknown fields, and with the required fields that are missing."""
    if value is None:
        return None if shape.nullable else zero(shape)
    match shape.form:
        case "struct":
            return _fit_struct(value, shape)
        case "list":
            return _fit_list(value, shape)
        case "map":
            return _fit_map(value, shape)
        case "union":
            return fit(value, _variant(value, shape))
        case "leaf":
            _check_leaf(value, shape.type)
    return value


def zero(shape: Shape) -> Any:
    """What stands for a value that is missing though it is required, in JSON shape."""
    if shape.nullable:
        return None
    match shape.form:
        case "struct":
            return _fit_struct({}, shape)
        case "list":
            return []
        case "map":
            return {}
        case "union":
            return zero(shape.variants[0])
    return _ZEROS.get(shape.type)


def _fit_struct(value: Any, shape: Shape) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(shape.type.__name__, value)
    fitted: dict[str, Any] = {}
    if shape.tag is not None:
        name, tag = shape.tag
        fitted[name] = value.get(name, tag)
    for field in shape.fields:
        given = value.get(field.wire)
        if given is not None:
            try:
                fitted[field.wire] = fit(given, field.shape)
            except Mismatch as mismatch:
                mismatch.steps.append(f".{field.wire}")
                raise
        elif field.required:
            fitted[field.wire] = zero(field.shape)
    return fitted


def _fit_list(value: Any, shape: Shape) -> list[Any]:
    if not isinstance(value, list):
        _refuse("list", value)
    assert shape.inner is not None
    fitted = []
    for index, item in enumerate(value):
        try:
            fitted.append(fit(item, shape.inner))
        except Mismatch as mismatch:
            mismatch.steps.append(f"[{index}]")
            raise
    return fitted


def _fit_map(value: Any, shape: Shape) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse("dict", value)
    assert shape.inner is not None
    fitted = {}
    for key, item in value.items():
        try:
            fitted[key] = fit(item, shape.inner)
        except Mismatch as mismatch:
            mismatch.steps.append(f"[{key}]")
            raise
    return fitted


def _variant(value: Any, shape: Shape) -> Shape:
    """The alternative of a union that has the JSON type of the value, and its tag."""
    if isinstance(value, dict) and (struct := shape.struct_for(value)) is not None:
        return struct
    for variant in shape.variants:
        match variant.form:
            case "any":
                return variant
            case "map":
                fits = isinstance(value, dict)
            case "list":
                fits = isinstance(value, list)
            case _:
                fits = _is(value, variant.type)
        if fits:
            return variant
    return _refuse(" | ".join(variant.type.__name__ for variant in shape.variants), value)


def _check_leaf(value: Any, leaf: type[Any]) -> None:
    if leaf in _PLAIN:
        if not _is(value, leaf):
            _refuse(leaf.__name__, value)
    elif leaf is bytes:
        _check_base64(value)
    elif leaf in _ZEROS:
        try:
            decode_leaf(leaf, value)
        except TypeError as error:
            raise Mismatch(str(error)) from None
        except ValueError as error:
            raise Mismatch(f"expected {leaf.__name__}: {error}") from None


def _is(value: Any, plain: type[Any]) -> bool:
    if isinstance(value, bool):
        return plain is bool
    if plain is int and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _PLAIN.get(plain, (plain,)))


def _check_base64(value: Any) -> None:
    if not isinstance(value, str):
        _refuse("base64 text", value)
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Mismatch("expected base64 text") from None


def _refuse(expected: str, value: Any) -> NoReturn:
    raise Mismatch(f"expected {expected}, got {'null' if value is None else type(value).__name__}")
