"""Filters: reduce an object to the part that a front end is interested in.

| filter | result |
|---|---|
| `PythonFilter(function)` | what the function returns for the object as a dict, as JSON |
| `CelFilter("object.spec.replicas > 2")` | the value of a CEL expression over `object` |
| `JsonPathFilter("{.metadata.labels}")` | the selected value; a list if there are several, null if there is none |
| `JqFilter(".metadata.labels")` | the output of a jq program; a list if there are several, null if there is none |

- `apply` takes the JSON of an object and returns JSON. Equal results are equal bytes, so that they detect changes.
- A filter is compiled once. A syntax error raises FilterError then, an evaluation error raises it in `apply`.
- jq is the library of the package `jq` (`pip install 'ostinato[hooks]'`), which runs in this process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ostinato.api.text.json_path import JsonPath, JsonPathError
from ostinato.api.wire.json import decode_json

_COST: Final = 10_000_000  # of a CEL expression for one object
_encode = msgspec.json.Encoder(order="sorted").encode


class FilterError(ValueError):
    """The filter is invalid, or cannot be applied to an object."""


class Filter(ABC):
    """Reduces an object. `text` is its source, for messages."""

    text: str

    @abstractmethod
    def apply(self, data: bytes) -> bytes:
        """Return the result for the JSON of an object, as JSON. Raises FilterError."""


class PythonFilter(Filter):
    def __init__(self, function: Callable[[dict[str, Any]], Any]) -> None:
        self._function = function
        self.text = getattr(function, "__qualname__", repr(function))

    def read(self, data: bytes) -> Any:
        """Return the object as the function takes it."""
        return decode_json(data)

    def apply(self, data: bytes) -> bytes:
        try:
            return _encode(self._function(self.read(data)))
        except Exception as error:
            raise FilterError(f"{self.text}: {type(error).__name__}: {error}") from error


class CelFilter(Filter):
    def __init__(self, text: str) -> None:
        from ostinato.cel.expression import CompileError, Expression, ProgramError  # noqa: PLC0415 - few need it
        from ostinato.cel.types import DYN  # noqa: PLC0415

        self.text = text
        try:
            self._expression = Expression(text, {"object": DYN})
        except (CompileError, ProgramError) as error:
            raise FilterError(f"CEL filter {text!r}: {error}") from None

    def apply(self, data: bytes) -> bytes:
        from ostinato.cel.values import CelError  # noqa: PLC0415

        try:
            value, _ = self._expression.evaluate([decode_json(data)], _COST)
        except CelError as error:
            raise FilterError(f"CEL filter {self.text!r}: {error}") from None
        if isinstance(value, CelError):
            raise FilterError(f"CEL filter {self.text!r}: {value}")
        try:
            return _encode(value)
        except TypeError:
            raise FilterError(f"CEL filter {self.text!r}: {type(value).__name__} is not a JSON value") from None


class JsonPathFilter(Filter):
    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self._path = JsonPath(text.strip().removeprefix("{").removesuffix("}").removeprefix("$"))
        except JsonPathError as error:
            raise FilterError(f"JSONPath filter {text!r}: {error}") from None

    def apply(self, data: bytes) -> bytes:
        try:
            found = self._path.find(decode_json(data))
        except JsonPathError as error:
            raise FilterError(f"JSONPath filter {self.text!r}: {error}") from None
        return _encode(found[0] if len(found) == 1 else found or None)


class JqFilter(Filter):
    def __init__(self, text: str) -> None:
        self.text = text
        try:
            import jq  # noqa: PLC0415 - an extra
        except ImportError:
            raise FilterError("jq filters need the package jq; run pip install 'ostinato[hooks]'") from None
        try:
            self._program = jq.compile(text)
        except ValueError as error:
            raise FilterError(f"jq filter {text!r}: {_first_line(error)}") from None

    def apply(self, data: bytes) -> bytes:
        return _encode(self.evaluate(data))

    def evaluate(self, data: bytes) -> Any:
        """Return the result as a value."""
        try:
            found = self._program.input_text(data.decode()).all()
        except ValueError as error:
            raise FilterError(f"jq filter {self.text!r}: {_first_line(error)}") from None
        return found[0] if len(found) == 1 else found or None


def _first_line(error: Exception) -> str:
    return str(error).removeprefix("jq: error: ").splitlines()[0]
