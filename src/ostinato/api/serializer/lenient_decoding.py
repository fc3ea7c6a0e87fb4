"""Lenient decoding: coerces JSON from a server to the types of a class.

Servers omit required fields and send null for lists and strings; both are decoded to the zero value, as in Go. Values
of another type raise `Mismatch` with the field: "spec.containers[0].name: expected str, got int".
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NoReturn

from ostinato.api.quantity import Quantity
from ostinato.api.serializer.scalars import decode_scalar
from ostinato.api.serializer.type_info import TypeInfo
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


class Mismatch(Exception):  # noqa: N818 - internal; the codec converts it to ObjectError
    """A value of the wrong type; the path is added while the exception propagates."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.steps: list[str] = []  # innermost first

    @property
    def path(self) -> str:
        return "".join(reversed(self.steps)).removeprefix(".")


def coerce(value: Any, info: TypeInfo) -> Any:
    """Return the value without nulls and unknown fields, with zero values for missing required fields."""
    if value is None:
        return None if info.nullable else zero(info)
    match info.form:
        case "struct":
            return _coerce_struct(value, info)
        case "list":
            return _coerce_list(value, info)
        case "map":
            return _coerce_map(value, info)
        case "union":
            return coerce(value, _variant(value, info))
        case "leaf":
            _check_scalar(value, info.type)
    return value


def zero(info: TypeInfo) -> Any:
    """Return the zero value of a type, JSON-compatible."""
    if info.nullable:
        return None
    match info.form:
        case "struct":
            return _coerce_struct({}, info)
        case "list":
            return []
        case "map":
            return {}
        case "union":
            return zero(info.variants[0])
    return _ZEROS.get(info.type)


def _coerce_struct(value: Any, info: TypeInfo) -> dict[str, Any]:
    if not isinstance(value, dict):
        _reject(info.type.__name__, value)
    coerced: dict[str, Any] = {}
    if info.tag is not None:
        name, tag = info.tag
        coerced[name] = value.get(name, tag)
    for field in info.fields:
        given = value.get(field.wire)
        if given is not None:
            try:
                coerced[field.wire] = coerce(given, field.type_info)
            except Mismatch as mismatch:
                mismatch.steps.append(f".{field.wire}")
                raise
        elif field.required:
            coerced[field.wire] = zero(field.type_info)
    return coerced


def _coerce_list(value: Any, info: TypeInfo) -> list[Any]:
    if not isinstance(value, list):
        _reject("list", value)
    assert info.inner is not None
    coerced = []
    for index, item in enumerate(value):
        try:
            coerced.append(coerce(item, info.inner))
        except Mismatch as mismatch:
            mismatch.steps.append(f"[{index}]")
            raise
    return coerced


def _coerce_map(value: Any, info: TypeInfo) -> dict[str, Any]:
    if not isinstance(value, dict):
        _reject("dict", value)
    assert info.inner is not None
    coerced = {}
    for key, item in value.items():
        try:
            coerced[key] = coerce(item, info.inner)
        except Mismatch as mismatch:
            mismatch.steps.append(f"[{key}]")
            raise
    return coerced


def _variant(value: Any, info: TypeInfo) -> TypeInfo:
    """Return the alternative of a union with the JSON type of the value, and its tag."""
    if isinstance(value, dict) and (struct := info.struct_for(value)) is not None:
        return struct
    for variant in info.variants:
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
    return _reject(" | ".join(variant.type.__name__ for variant in info.variants), value)


def _check_scalar(value: Any, leaf: type[Any]) -> None:
    if leaf in _PLAIN:
        if not _is(value, leaf):
            _reject(leaf.__name__, value)
    elif leaf is bytes:
        _check_base64(value)
    elif leaf in _ZEROS:
        try:
            decode_scalar(leaf, value)
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
        _reject("base64 text", value)
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise Mismatch("expected base64 text") from None


def _reject(expected: str, value: Any) -> NoReturn:
    raise Mismatch(f"expected {expected}, got {'null' if value is None else type(value).__name__}")
