"""JSON as Go's encoding/json writes it, keys sorted and `<`, `>`, `&` escaped, and reads it, numbers as floats."""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from ostinato.api.wire.json import DecodeError, decode_json
from ostinato.gotemplate.fmt.floats import formatted
from ostinato.gotemplate.library.formats.wire import go_numbers, wire_value
from ostinato.gotemplate.library.kinds import NilList, NilStrings
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.limits import check_parts
from ostinato.gotemplate.strings import encode

JSON: Final = Registry()
_register = JSON

_HTML: Final = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})
_ALWAYS: Final = str.maketrans({"\u2028": r"\u2028", "\u2029": r"\u2029"})
_quoted = msgspec.json.Encoder().encode
_DEEPEST: Final = 500


class _Writer:
    def __init__(self, indent: str, *, escape_html: bool) -> None:
        self._indent = indent
        self._escape_html = escape_html

    def text(self, value: Any, depth: int = 0) -> str:
        match value:
            case None | NilList() | NilStrings():
                return "null"
            case bool():
                return "true" if value else "false"
            case str():
                return self._string(value)
            case int():
                return str(int(value))
            case float():
                return _number(value)
            case dict():
                items = [
                    f"{self._string(key)}:{self._space}{self.text(value[key], depth + 1)}" for key in _sorted(value)
                ]
                return self._container("{", items, "}", depth)
            case list():
                return self._container("[", [self.text(each, depth + 1) for each in value], "]", depth)
            case _:
                raise PanicError("json: unsupported type: func()")

    @property
    def _space(self) -> str:
        return " " if self._indent else ""

    def _container(self, opening: str, items: list[str], closing: str, depth: int) -> str:
        if depth > _DEEPEST:
            raise PanicError("json: the value is nested too deeply; does it contain itself?")
        if not self._indent or not items:
            return opening + ",".join(items) + closing
        inner = "\n" + self._indent * (depth + 1)
        return opening + inner + f",{inner}".join(items) + "\n" + self._indent * depth + closing

    def _string(self, text: str) -> str:
        try:
            made = _quoted(text).decode()
        except UnicodeEncodeError:  # bytes that are not UTF-8
            made = _quoted(encode(text).decode("utf-8", "replace")).decode().replace("\ufffd", r"\ufffd")
        made = made.translate(_ALWAYS)
        return made.translate(_HTML) if self._escape_html else made


def _sorted(value: dict[str, Any]) -> list[str]:
    return sorted(value) if all(map(str.isascii, value)) else sorted(value, key=encode)


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise PanicError(f"json: unsupported value: {formatted(value, 'g', -1)}")
    size = abs(value)
    if size and (size < 1e-6 or size >= 1e21):
        text = formatted(value, "e", -1)
        return text[:-2] + text[-1] if text[-4:-1] == "e-0" else text
    return formatted(value, "f", -1)


def to_json(value: Any, *, indent: str = "", escape_html: bool = True) -> str:
    """Encode a value. Raises PanicError."""
    check_parts(value)
    return _Writer(indent, escape_html=escape_html).text(wire_value(value))


def from_json(text: str) -> Any:
    """Decode a value. Raises DecodeError."""
    return go_numbers(decode_json(encode(text)))


@_register("toJson", "interface {}")
def to_json_(value: Any) -> str:
    try:
        return to_json(value)
    except PanicError:
        return ""


@_register("mustToJson", "interface {}")
def must_to_json(value: Any) -> str:
    return to_json(value)


@_register("toPrettyJson", "interface {}")
def to_pretty_json(value: Any) -> str:
    try:
        return to_json(value, indent="  ")
    except PanicError:
        return ""


@_register("mustToPrettyJson", "interface {}")
def must_to_pretty_json(value: Any) -> str:
    return to_json(value, indent="  ")


@_register("toRawJson mustToRawJson", "interface {}")
def to_raw_json(value: Any) -> str:
    return to_json(value, escape_html=False)


@_register("fromJson", "string")
def sprig_from_json(text: str) -> Any:
    try:
        return from_json(text)
    except DecodeError:
        return None


@_register("mustFromJson", "string")
def must_from_json(text: str) -> Any:
    try:
        return from_json(text)
    except DecodeError as error:
        raise PanicError(str(error)) from None
