"""The grammar of label selectors in text form.

    selector     = [ requirement { "," requirement } ]
    requirement  = [ "!" ] KEY | KEY operator
    operator     = ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ] | ( "in" | "notin" ) "(" [ VALUE ] { "," [ VALUE ] } ")"

Space is free. A value left out is the empty one. "in" and "notin" are words like any other where no operator can
stand. This module finds the parts and checks the keys; `ostinato.api.selectors.labels` does the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.names import is_label_key


class Operator(StrEnum):
    """How a label is compared; the value is the name in messages."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


class SelectorError(ValueError):
    """A selector that cannot be understood; the message is the one that the API server gives."""


class Parsed(NamedTuple):
    key: str
    operator: Operator
    values: list[str]  # sorted, each once


_BINARY: Final = {
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    "=": Operator.EQUALS,
    "==": Operator.DOUBLE_EQUALS,
    "!=": Operator.NOT_EQUALS,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}
_BINARY_NAMES: Final = ", ".join(_BINARY.values())
_END: Final = ""  # no token is empty but the end
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
# A zero character ends a token, and the whole text where a token would begin.
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>]|[^\0=!(),<> \t\r\n]+)\0?|)")


def parse(text: str) -> Iterator[Parsed]:
    """The requirements in the order of the text. What follows one is read only when the next is asked for."""
    tokens = _Tokens(text)
    while tokens.peek() != _END:
        if not tokens.at_word() and tokens.peek() != "!":
            raise SelectorError(f"found '{tokens.peek()}', expected: !, identifier, or 'end of string'")
        try:
            parsed = _requirement(tokens)
        except SelectorError as error:
            raise SelectorError(f"unable to parse requirement: {error}") from None
        yield parsed
        separator = tokens.take()
        if separator == _END:
            return
        if separator != ",":
            raise SelectorError(f"found '{separator}', expected: ',' or 'end of string'")
        if not tokens.at_word() and tokens.peek() != "!":
            raise SelectorError(f"found '{tokens.peek()}', expected: identifier after ','")


class _Tokens:
    """Words and symbols, one at a time; after the last one the end, for ever."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._next = ""
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._position)
        assert match is not None  # the pattern matches the empty text
        self._next = match[1] or _END
        self._position = match.end() if match[1] else len(self._text)

    def peek(self) -> str:
        return self._next

    def at_word(self) -> bool:
        return self._next != _END and self._next not in _SYMBOLS

    def take(self) -> str:
        token = self._next
        self._advance()
        return token


def _requirement(tokens: _Tokens) -> Parsed:
    negated = tokens.peek() == "!"
    if negated:
        tokens.take()
    is_word, key = tokens.at_word(), tokens.take()
    if not is_word:
        raise SelectorError(f"found '{key}', expected: identifier")
    if messages := is_label_key(key):
        raise SelectorError(str(FieldError.invalid(Path(), key, "; ".join(messages))))
    if negated or tokens.peek() in (_END, ","):
        return Parsed(key, Operator.DOES_NOT_EXIST if negated else Operator.EXISTS, [])
    symbol = tokens.take()
    operator = _BINARY.get(symbol)
    if operator is None:
        raise SelectorError(f"found '{symbol}', expected: {_BINARY_NAMES}")
    if operator in (Operator.IN, Operator.NOT_IN):
        return Parsed(key, operator, sorted(_value_set(tokens)))
    return Parsed(key, operator, [_value(tokens)])


def _value(tokens: _Tokens) -> str:
    if tokens.peek() in (_END, ","):
        return ""
    is_word, value = tokens.at_word(), tokens.take()
    if not is_word:
        raise SelectorError(f"found '{value}', expected: identifier")
    return value


def _value_set(tokens: _Tokens) -> set[str]:
    opening = tokens.take()
    if opening != "(":
        raise SelectorError(f"found '{opening}' expected: '('")
    if tokens.peek() == ")":
        tokens.take()
        return {""}
    if not tokens.at_word() and tokens.peek() != ",":
        raise SelectorError(f"found '{tokens.peek()}', expected: ',', ')' or identifier")
    values: set[str] = set()
    while tokens.peek() != ")":
        is_word, found = tokens.at_word(), tokens.take()
        if is_word:
            values.add(found)
            if tokens.peek() not in (",", ")"):
                raise SelectorError(f"found '{tokens.peek()}', expected: ',' or ')'")
        elif found == ",":
            if not values or tokens.peek() in (",", ")"):
                values.add("")
        else:
            raise SelectorError(f"found '{found}', expected: ',', or identifier")
    tokens.take()
    return values
