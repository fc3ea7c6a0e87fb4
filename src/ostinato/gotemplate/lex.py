"""The tokens of a template."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from ostinato.gotemplate.strings import described, quote

_SPACES = " \t\r\n"
_END = r"(?=[ \t\r\n.,|:()]|\}\}|\Z)"  # what may follow a name
_DIGITS = r"[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?"
_NUMBER = (
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?"
    rf"|0[oO][0-7_]*(?:\.[0-7_]*)?|0[bB][01_]*(?:\.[01_]*)?|{_DIGITS})i?"
)
_TOKEN = re.compile(
    r"(?P<trim>[ \t\r\n]-\}\})"
    r"|(?P<close>\}\})"
    r"|(?P<space>[ \t\r\n]+(?=[ \t\r\n]-\}\})|[ \t\r\n]+)"
    rf"|(?P<field>\.[A-Za-z_][A-Za-z0-9_]*{_END})"
    rf"|(?P<word>[A-Za-z_][A-Za-z0-9_]*{_END})"
    rf"|(?P<variable>\$[A-Za-z0-9_]*{_END})"
    r'|(?P<string>"(?:[^"\\\n]|\\[^\n])*")'
    r"|(?P<raw>`[^`]*`)"
    r"|(?P<pipe>\|)|(?P<open>\()|(?P<shut>\))|(?P<declare>:=)|(?P<assign>=)"
    rf"|(?P<dot>\.{_END})"
    rf"|(?P<number>(?=[0-9+-]|\.[0-9]){_NUMBER})"
    r"|(?P<character>'(?:[^'\\\n]|\\[^\n])*')"
    r"|(?P<char>[!#%&*,/;<>?@\[\\\]^{}~])",
)
_AFTER_SIGN = re.compile(_NUMBER)
_PLAIN = frozenset(["space", "field", "string", "variable", "pipe", "raw", "declare", "assign", "character", "char"])
_KEYWORDS = frozenset(["block", "break", "continue", "define", "else", "end", "if", "range", "nil", "template", "with"])


class Token(NamedTuple):
    """A token; `kind` is a group of the pattern above, a keyword, `left`, `right`, `text`, `bool`, `end` or `error`."""

    kind: str
    position: int
    text: str

    def __str__(self) -> str:
        if self.kind == "eof":
            return "EOF"
        if self.kind == "error":
            return self.text
        if self.kind in _KEYWORDS or self.kind == "dot":
            return f"<{self.text}>"
        return f"{quote(self.text[:10])}..." if len(self.text.encode("utf-8", "replace")) > 10 else quote(self.text)


class _LexError(Exception):
    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.token = Token("error", position, message)


def tokens(text: str, *, loop_keywords: bool = True) -> list[Token]:
    """All tokens, up to the end of the text or to a token with the error.

    `loop_keywords`: whether `break` and `continue` are keywords, or names of functions.
    """
    found: list[Token] = []
    try:
        _scan(text, found, loop_keywords)
    except _LexError as error:
        found.append(error.token)
    return found


def _scan(text: str, found: list[Token], loop_keywords: bool) -> None:
    position = 0
    while (at := text.find("{{", position)) >= 0:
        after = at + 2
        trims = text[after : after + 1] == "-" and text[after + 1 : after + 2] in _SPACES_SET
        if at > position:
            plain = text[position:at]
            if trims:
                plain = plain.rstrip(_SPACES)
            if plain:
                found.append(Token("text", position, plain))
        inside = after + 2 if trims else after
        if text.startswith("/*", inside):
            position = _comment(text, inside)
            continue
        found.append(Token("left", at, "{{"))
        position = _action(text, inside, found, loop_keywords)
    if position < len(text):
        found.append(Token("text", position, text[position:]))
    found.append(Token("eof", len(text), ""))


_SPACES_SET = frozenset(_SPACES)


def _comment(text: str, start: int) -> int:
    end = text.find("*/", start + 2)
    if end < 0:
        raise _LexError(start, "unclosed comment")
    end += 2
    if text[end : end + 1] in _SPACES_SET and text.startswith("-}}", end + 1):
        return _skip_spaces(text, end + 4)
    if not text.startswith("}}", end):
        raise _LexError(start, "comment ends before closing delimiter")
    return end + 2


def _skip_spaces(text: str, position: int) -> int:
    while position < len(text) and text[position] in _SPACES_SET:
        position += 1
    return position


def _action(text: str, position: int, found: list[Token], loop_keywords: bool) -> int:
    match = _TOKEN.match
    append = found.append
    new = tuple.__new__  # Token(...) takes twice as long
    depth = 0
    while True:
        token = match(text, position)
        kind = (token.lastgroup or "") if token is not None else ""
        if token is None or not kind:
            name = _rare(text, position)
            append(name)
            position += len(name.text)
            continue
        value = token.group()
        if kind in _PLAIN:
            append(new(Token, (kind, position, value)))
            position += len(value)
            continue
        if kind == "word":
            if value in _KEYWORDS:
                if loop_keywords or value not in ("break", "continue"):
                    kind = value
            elif value in ("true", "false"):
                kind = "bool"
        elif kind == "number":
            value, kind = _number(text, position, value)
        elif kind == "dot" and position + 1 == len(text):
            kind = "number"  # to Go's lexer, which looks at the next character
        elif kind == "open":
            depth += 1
        elif kind == "shut":
            depth -= 1
            if depth < 0:
                raise _LexError(position, "unexpected right paren")
        elif kind in ("close", "trim"):
            if depth:
                raise _LexError(position, "unclosed left paren")
            end = token.end()
            append(Token("right", end - 2, "}}"))
            return _skip_spaces(text, end) if kind == "trim" else end
        append(new(Token, (kind, position, value)))
        position += len(value)


def _number(text: str, position: int, value: str) -> tuple[str, str]:
    end = position + len(value)
    kind = "number"
    if not _is_alphanumeric(text[end : end + 1]):
        if text[end : end + 1] not in ("+", "-"):
            return value, kind
        second = _AFTER_SIGN.match(text, end)
        end = second.end() if second is not None else end
        if not _is_alphanumeric(text[end : end + 1]):
            if text[end - 1] == "i":
                return text[position:end], "complex"
            end -= 1
    raise _LexError(position, f"bad number syntax: {quote(text[position : end + 1])}")


def _rare(text: str, position: int) -> Token:
    """A name that is not ASCII, or the error."""
    if position >= len(text):
        raise _LexError(position, "unclosed action")
    first = text[position]
    if first == ":":
        raise _LexError(position, "expected :=")
    if first == '"':
        raise _LexError(position, "unterminated quoted string")
    if first == "`":
        raise _LexError(position, "unterminated raw quoted string")
    if first == "'":
        raise _LexError(position, "unterminated character constant")
    if first not in ".$" and not _is_alphanumeric(first):
        raise _LexError(position, f"unrecognized character in action: {described(first)}")
    end = position + 1
    while end < len(text) and _is_alphanumeric(text[end]):
        end += 1
    if end < len(text) and text[end] not in " \t\r\n.,|:()" and not text.startswith("}}", end):
        raise _LexError(position, f"bad character {described(text[end])}")
    kind = {".": "field", "$": "variable"}.get(first, "word")
    return Token(kind, position, text[position:end])


def _is_alphanumeric(character: str) -> bool:
    if not character or character == "_":
        return bool(character)
    if character.isascii():
        return character.isalnum()
    category = unicodedata.category(character)
    return category[0] == "L" or category == "Nd"
