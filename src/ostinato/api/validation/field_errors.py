"""Field errors: validation errors with field path and value, in Kubernetes' format.

    spec.containers[0].image: Required value
    spec.replicas: Invalid value: -1: must be greater than or equal to 0

Validation returns a list of `FieldError`; `ostinato.api.errors.Invalid` converts it to a response. Corresponds to
`util/validation/field` in apimachinery.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, Final

import msgspec

from ostinato.api.text.go_format import json_text, plain, quote


class Path:
    """A field path, from the root of an object. Immutable; each step is one small object.

    >>> str(Path("spec", "containers").index(0).child("ports").key("http"))
    'spec.containers[0].ports[http]'
    """

    __slots__ = ("_parent", "_step")

    _parent: Path | None
    _step: str  # ".name", ".several.names" or "[subscript]"

    def __init__(self, name: str = "", *names: str) -> None:
        """The path of a field, by the names of its parents and its own; `Path()` is the object itself."""
        steps = [f".{step}" for step in (name, *names) if step]
        self._parent = None
        self._step = "".join(steps)

    def child(self, *names: str) -> Path:
        path = self
        for name in names:
            below = _new(Path)
            below._parent = path
            below._step = f".{name}" if name else "[]"
            path = below
        return path

    def index(self, index: int) -> Path:
        """Return the path of an item of a list."""
        path = _new(Path)
        path._parent = self
        path._step = f"[{index}]"
        return path

    def key(self, key: str) -> Path:
        """Return the path of an entry of a map, or an item of a list by key."""
        path = _new(Path)
        path._parent = self
        path._step = f"[{key}]"
        return path

    def __str__(self) -> str:
        steps: list[str] = []
        path: Path | None = self
        while path is not None:
            steps.append(path._step)
            path = path._parent
        steps.reverse()
        return "".join(steps).removeprefix(".") or "<nil>"

    def __repr__(self) -> str:
        return f"Path({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Path) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))


_new = Path.__new__  # skips __init__: validation creates hundreds of paths per object


class ErrorType(StrEnum):
    """Type of a field error; the value is the `reason` of the cause in a Status."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_SHORT = "FieldValueTooShort"
    TOO_MANY = "FieldValueTooMany"
    TOO_FEW = "FieldValueTooFew"
    TYPE_INVALID = "FieldValueTypeInvalid"
    INTERNAL = "InternalError"


_TITLES: Final = {
    ErrorType.NOT_FOUND: "Not found",
    ErrorType.REQUIRED: "Required value",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TOO_SHORT: "Too short",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.TOO_FEW: "Too few",
    ErrorType.TYPE_INVALID: "Invalid value",
    ErrorType.INTERNAL: "Internal error",
}

_WITHOUT_VALUE: Final = frozenset(
    {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.TOO_SHORT, ErrorType.INTERNAL}
)

OMIT: Final = msgspec.UNSET  # as a value: omitted from the message


class FieldError(msgspec.Struct, frozen=True):
    """An error of one field. The class methods create errors with the usual messages."""

    type: ErrorType
    field: str
    value: Any = OMIT  # the invalid value
    detail: str = ""

    @classmethod
    def required(cls, path: Path, detail: str = "") -> FieldError:
        """A required value is absent or empty."""
        return cls(ErrorType.REQUIRED, str(path), "", detail)

    @classmethod
    def invalid(cls, path: Path, value: Any, detail: str) -> FieldError:
        """A value is malformed or out of bounds."""
        return cls(ErrorType.INVALID, str(path), value, detail)

    @classmethod
    def type_invalid(cls, path: Path, value: Any, detail: str) -> FieldError:
        """A value has the wrong type."""
        return cls(ErrorType.TYPE_INVALID, str(path), value, detail)

    @classmethod
    def not_supported(cls, path: Path, value: Any, supported: Sequence[str] = ()) -> FieldError:
        """A value is not one of the supported ones, which are listed in the given order."""
        detail = "supported values: " + ", ".join(map(quote, supported)) if supported else ""
        return cls(ErrorType.NOT_SUPPORTED, str(path), value, detail)

    @classmethod
    def not_found(cls, path: Path, value: Any) -> FieldError:
        """A value refers to something that does not exist."""
        return cls(ErrorType.NOT_FOUND, str(path), value)

    @classmethod
    def duplicate(cls, path: Path, value: Any) -> FieldError:
        """A value that must be unique is repeated."""
        return cls(ErrorType.DUPLICATE, str(path), value)

    @classmethod
    def forbidden(cls, path: Path, detail: str) -> FieldError:
        """A valid value is not allowed under the current conditions."""
        return cls(ErrorType.FORBIDDEN, str(path), "", detail)

    @classmethod
    def too_long(cls, path: Path, maximum: int) -> FieldError:
        """A string has more than `maximum` bytes; a negative maximum is not mentioned. The string is not quoted."""
        return cls(ErrorType.TOO_LONG, str(path), OMIT, _too_long(maximum, "byte"))

    @classmethod
    def too_long_characters(cls, path: Path, maximum: int) -> FieldError:
        """A string has more than `maximum` characters; a negative maximum is not mentioned."""
        return cls(ErrorType.TOO_LONG, str(path), OMIT, _too_long(maximum, "character"))

    @classmethod
    def too_short(cls, path: Path, value: str, minimum: int) -> FieldError:
        """A string has fewer than `minimum` characters; a negative minimum is not mentioned."""
        detail = f"must be at least {_count(minimum, 'character')}" if minimum >= 0 else "value is too short"
        return cls(ErrorType.TOO_SHORT, str(path), value, detail)

    @classmethod
    def too_many(cls, path: Path, actual: int, maximum: int) -> FieldError:
        """A list has more than `maximum` items; negative numbers are not mentioned."""
        detail = f"must have at most {_count(maximum, 'item')}" if maximum >= 0 else "has too many items"
        return cls(ErrorType.TOO_MANY, str(path), actual if actual >= 0 else OMIT, detail)

    @classmethod
    def too_few(cls, path: Path, actual: int, minimum: int) -> FieldError:
        """A list has fewer than `minimum` items; a negative minimum is not mentioned."""
        detail = f"must have at least {_count(minimum, 'item')}" if minimum >= 0 else "has too few items"
        return cls(ErrorType.TOO_FEW, str(path), actual, detail)

    @classmethod
    def internal(cls, path: Path, detail: str) -> FieldError:
        """The validation itself failed; the value may be valid."""
        return cls(ErrorType.INTERNAL, str(path), OMIT, detail)

    @property
    def body(self) -> str:
        """The message without the field: `Invalid value: -1: must be positive`."""
        text = _TITLES[self.type]
        if self.type not in _WITHOUT_VALUE and self.value is not OMIT:
            text = f"{text}: {_shown(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"


def joined(errors: Iterable[FieldError]) -> str:
    """Join messages: a single one is plain, several are in brackets; duplicates are dropped."""
    messages = list(dict.fromkeys(map(str, errors)))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"


def _shown(value: Any) -> str:
    match value:
        case str():
            return quote(value)
        case float():
            return plain(value)
        case _:
            return json_text(value)


def _too_long(maximum: int, unit: str) -> str:
    return f"may not be more than {_count(maximum, unit)}" if maximum >= 0 else "value is too long"


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
