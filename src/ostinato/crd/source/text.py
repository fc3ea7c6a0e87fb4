"""Python source: literals, calls and docstrings, escaped so that input cannot become code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ostinato.api.markers import Marker

WIDTH: Final = 120
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def literal(value: Any) -> str:
    """Return a JSON value as a Python literal."""
    match value:
        case str() if "\\" in value and value.isprintable() and '"' not in value and not value.endswith("\\"):
            return f'r"{value}"'  # readable: most are patterns
        case str():
            return '"' + "".join(_ESCAPES.get(each) or _shown(each) for each in value) + '"'
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case dict():
            return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    return repr(value)


def call(marker: Marker) -> str:
    """Return a marker as a call."""
    return f"{type(marker).__name__}({', '.join(_arguments(marker))})"


def wrapped(head: str, parts: Sequence[str | Marker], tail: str, indent: int) -> str:
    """Join head, parts and tail on one line, or with one part per line if too long."""
    space = " " * indent
    line = f"{space}{head}{', '.join(part if isinstance(part, str) else call(part) for part in parts)}{tail}"
    if len(line) <= WIDTH:
        return line
    inner = "".join(f"{_part(part, indent + 4)},\n" for part in parts)
    return f"{space}{head}\n{inner}{space}{tail}"


def _part(part: str | Marker, indent: int) -> str:
    if isinstance(part, str):
        return " " * indent + part
    return wrapped(f"{type(part).__name__}(", _arguments(part), ")", indent)


def docstring(text: str, indent: int) -> str:
    """Return a description as a docstring."""
    space = " " * indent
    lines = [_in_docstring(line).rstrip() for line in text.strip().splitlines()] or [""]
    if len(lines) == 1:
        end = " " if lines[0].endswith('"') else ""
        return f'{space}"""{lines[0]}{end}"""'
    body = "\n".join(f"{space}{line}".rstrip() for line in lines[1:])
    return f'{space}"""{lines[0]}\n{body}\n{space}"""'


def _arguments(marker: Marker) -> list[str]:
    return [literal(each) for each in marker.arguments] + [f"{k}={literal(v)}" for k, v in marker.keywords.items()]


def _in_docstring(line: str) -> str:
    return "".join(each if each == '"' else _ESCAPES.get(each) or _shown(each) for each in line).replace(
        '"""', '\\"\\"\\"'
    )


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
