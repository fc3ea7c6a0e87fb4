"""`--set`, `--set-string`, `--set-file`, `--set-json` and `--set-literal`: `a.b=1,c[0].d={x,y}` into values."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from ostinato.charts.values.documents import Values
from ostinato.gotemplate.library.formats.wire import go_numbers
from ostinato.gotemplate.values import Int64

_MAX_INDEX: Final = 65536
_MAX_LEVELS: Final = 30
_INT64: Final = range(-(2**63), 2**63)

Reader = Callable[[str], Any]


class SetError(ValueError):
    """An option is malformed."""


def set_values(text: str, into: Values) -> None:
    """Apply `--set`: numbers, booleans and null are what they look like."""
    _Parser(text, _typed).parse(into)


def set_strings(text: str, into: Values) -> None:
    """Apply `--set-string`."""
    _Parser(text, str).parse(into)


def set_files(text: str, into: Values, read: Reader) -> None:
    """Apply `--set-file`: values are the contents of files."""
    _Parser(text, read).parse(into)


def set_json(text: str, into: Values) -> None:
    """Apply `--set-json`: values are JSON."""
    _Parser(text, None).parse(into)


def set_literal(text: str, into: Values) -> None:
    """Apply `--set-literal`: the rest of the text is the value, commas and backslashes included."""
    _Parser(text, str, literal=True).parse(into)


def _typed(text: str) -> Any:
    lower = text.casefold()
    if lower in ("true", "false"):
        return lower == "true"
    if lower == "null":
        return None
    if text == "0":
        return Int64(0)
    if text and text[0] != "0":
        digits = text[1:] if text[0] in "+-" else text
        if digits.isascii() and digits.isdigit() and int(text) in _INT64:
            return Int64(int(text))
    return text


class _End(Exception):  # noqa: N818 - the end of the text, an ordinary result
    pass


class _Parser:
    def __init__(self, text: str, read: Reader | None, *, literal: bool = False) -> None:
        self._text = text
        self._at = 0
        self._read = read  # None: JSON
        self._literal = literal

    def parse(self, into: Values) -> None:
        try:
            while True:
                self._key(into, 0)
        except _End:
            pass
        except (TypeError, AttributeError):
            raise SetError(f"{self._text}: the key is a value of another type already") from None

    def _until(self, stops: str) -> tuple[str, str]:
        """Return the characters before a stop, and the stop; "" at the end of the text."""
        made: list[str] = []
        while self._at < len(self._text):
            c = self._text[self._at]
            self._at += 1
            if c in stops:
                return "".join(made), c
            if c == "\\" and not self._literal:
                if self._at == len(self._text):
                    break
                c = self._text[self._at]
                self._at += 1
            made.append(c)
        return "".join(made), ""

    def _key(self, into: Values, level: int) -> None:
        key, stop = self._until("=[." if self._literal else "=[,.")
        if not stop:
            if not key:
                raise _End
            raise SetError(f'key "{key}" has no value')
        if stop == ",":
            raise SetError(f'key "{key}" has no value (cannot end with ,)')
        if stop == "=":
            at_end = self._at == len(self._text) and self._read is not None
            value = self._value()
            _set(into, key, value)
            if at_end:
                raise _End
            return
        if stop == "[":
            _set(into, key, self._item(_list_at(into.get(key), key), self._index(), level))
            return
        if level >= _MAX_LEVELS:
            raise SetError(f"value name nested level is greater than maximum supported nested level of {_MAX_LEVELS}")
        inner = into.get(key, {}) if key in into else {}
        if not isinstance(inner, dict):
            raise SetError(f"unable to parse key: {key} is not a map already")
        ended = False
        try:
            self._key(inner, level + 1)
        except _End:
            ended = True
        if not ended and not inner:
            raise SetError(f'key map "{key}" has no value')
        if inner:
            _set(into, key, inner)
        if ended:
            raise _End

    def _index(self) -> int:
        text, stop = self._until("]")
        try:
            index = int(text)
        except ValueError:
            index = None
        if not stop or index is None:
            raise SetError(f'error parsing index: "{text}" is not a number')
        if index < 0:
            raise SetError(f"negative {index} index not allowed")
        if index > _MAX_INDEX:
            raise SetError(f"index of {index} is greater than maximum supported index of {_MAX_INDEX}")
        return index

    def _item(self, items: list[Any], index: int, level: int) -> list[Any]:
        extra, stop = self._until("[.=")
        if extra:
            raise SetError(f'unexpected data at end of array index: "{extra}"')
        if not stop:
            raise _End
        existing = items[index] if index < len(items) else None
        ended = False
        if stop == "=":
            value = self._value()
        elif stop == "[":
            value = self._item(_list_at(existing, str(index)), self._index(), level)
        else:
            value = existing if isinstance(existing, dict) else {}
            try:
                self._key(value, level)
            except _End:
                ended = True
        made = [*items, *[None] * (index + 1 - len(items))]
        made[index] = value
        if ended:
            items[:] = made
        return made

    def _value(self) -> Any:
        if self._read is None:
            return self._json()
        if self._literal:
            text, self._at = self._text[self._at :], len(self._text)
            return text
        if self._text.startswith("{", self._at):
            self._at += 1
            return self._list()
        return self._read(self._until(",")[0]) if self._at < len(self._text) else ""

    def _list(self) -> list[Any]:
        assert self._read is not None
        items: list[Any] = []
        while True:
            text, stop = self._until(",}")
            if not stop:
                raise SetError("list must terminate with '}'")
            items.append(self._read(text))
            if stop == "}":
                if self._text.startswith(",", self._at):
                    self._at += 1
                return items

    def _json(self) -> Any:
        if self._skip_to_comma():
            return None
        try:
            value, self._at = json.JSONDecoder().raw_decode(self._text, self._at)
        except ValueError as error:
            raise SetError(f"{self._text}: {error}") from None
        self._skip_to_comma()
        return go_numbers(value)

    def _skip_to_comma(self) -> bool:
        """Skip white space and one comma; whether nothing else was in between."""
        while self._at < len(self._text):
            c = self._text[self._at]
            if c != "," and not c.isspace():
                return False
            self._at += 1
            if c == ",":
                return True
        return True


def _set(into: Values, key: str, value: Any) -> None:
    if key:
        into[key] = value


def _list_at(value: Any, key: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise SetError(f"unable to parse key: {key} is not a list already")
    return value
