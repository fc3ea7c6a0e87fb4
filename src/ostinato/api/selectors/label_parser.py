"""Parser of label selectors in string form.

    selector     = [ requirement { "," requirement } ]
    requirement  = [ "!" ] KEY | KEY operator
    operator     = ( "=" | "==" | "!=" | ">" | "<" ) [ VALUE ] | ( "in" | "notin" ) "(" [ VALUE ] { "," [ VALUE ] } ")"

Whitespace is ignored. An omitted value is empty. "in" and "notin" are keys or values where no operator is allowed. Keys
are validated here, operators and values in `ostinato.api.selectors.labels`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.api.validation.names import is_label_key


class Operator(StrEnum):
    """Operator of a requirement; the value is its name in messages."""

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
    """The selector is invalid; the API server's message."""


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
_END: Final = ""  # no other token is empty
_SYMBOLS: Final = frozenset({"==", "!=", "=", "!", "(", ")", ",", "<", ">"})
# A NUL ends a token; at the start of a token it ends the string.
_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!(),<>]|[^\0=!(),<> \t\r\n]+)\0?|)")


def parse(text: str) -> Iterator[Parsed]:
    """Parse the requirements, lazily and in order. Raises SelectorError."""
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
    """Tokenizer: words and symbols; after the last one always the end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._next = ""
        self._advance()

    def _advance(self) -> None:
        match = _TOKEN.match(self._text, self._position)
        assert match is not None  # the pattern matches the empty string
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
