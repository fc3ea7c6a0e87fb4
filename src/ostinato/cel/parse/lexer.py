"""Lexer: splits source text into tokens."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ostinato.cel.issues import Issues

_ESCAPE: Final = r"""(?:\\[abfnrtv"'\\?`]|\\[0-3][0-7][0-7]|\\[xX][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})"""
_TEXT: Final = (
    r"(?:[rR](?:\"\"\"[\s\S]*?\"\"\"|'''[\s\S]*?'''|\"[^\"\n\r]*\"|'[^'\n\r]*')"
    rf"|\"\"\"(?:{_ESCAPE}|[^\\])*?\"\"\"|'''(?:{_ESCAPE}|[^\\])*?'''"
    rf"|\"(?:{_ESCAPE}|[^\\\"\n\r])*\"|'(?:{_ESCAPE}|[^\\'\n\r])*')"
)
_TOKEN: Final = re.compile(
    rf"""
    (?P<space>[\t\ \r\n\f]+|//[^\n]*)
  | (?P<BYTES>[bB]{_TEXT})
  | (?P<STRING>{_TEXT})
  | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
  | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
  | (?P<operator>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
# The well-formed prefix of a string, with the start of an invalid escape.
_BEGUN: Final = re.compile(
    rf"(?:{_ESCAPE}|[^\\\n\r])*(?:\\(?:[0-3][0-7]?|[xX][0-9a-fA-F]?|u[0-9a-fA-F]{{0,3}}|U[0-9a-fA-F]{{0,7}})?)?"
)
_NAMED: Final = re.compile(r"[A-Za-z0-9_.\-/ ]*")  # characters between backticks
_KEYWORDS: Final = frozenset({"in", "true", "false", "null"})
END: Final = "<EOF>"


class Token(NamedTuple):
    kind: str  # for operators and keywords their text
    text: str
    at: int


def tokens(text: str, issues: Issues) -> list[Token]:
    """Return the tokens, with END as the last; invalid characters are added to the issues and skipped."""
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            end = _unread(text, at)
            issues.add(at, f"Syntax error: token recognition error at: '{text[at:end]}'")
            at = end
            continue
        kind, word = match.lastgroup or "", match.group()
        if kind != "space":
            if kind == "operator" or (kind == "IDENTIFIER" and word in _KEYWORDS):
                kind = word
            found.append(Token(kind, word, at))
        at = match.end()
    return [*found, Token(END, END, len(text))]


def spaces(text: str, start: int, end: int) -> str:
    """Return the white space and comments in the text between two tokens."""
    found = ""
    while start < end:
        match = _TOKEN.match(text, start)
        found += match.group() if match is not None else ""
        start = match.end() if match is not None else _unread(text, start)
    return found


def _unread(text: str, at: int) -> int:
    """Return the end of an invalid token: of a string at the invalid character, of a single & or | one after it."""
    if text[at] in "\"'":
        begun = _BEGUN.match(text, at + 1)
        return min((begun.end() if begun is not None else at) + 1, len(text))
    if text[at] == "`":
        named = _NAMED.match(text, at + 1)
        return min((named.end() if named is not None else at) + 1, len(text))
    if text[at] in "&|=":
        return min(at + 2, len(text))
    return at + 1
