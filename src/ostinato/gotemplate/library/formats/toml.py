"""TOML: written as github.com/BurntSushi/toml does, keys sorted and values before tables; read by Python's tomllib."""

from __future__ import annotations

import math
import re
import tomllib
from datetime import UTC, date, datetime, time
from typing import Any, Final

from ostinato.gotemplate.fmt.floats import shortest
from ostinato.gotemplate.library.go_time import GoTime
from ostinato.gotemplate.library.kinds import kind_of
from ostinato.gotemplate.library.registry import PanicError, Registry
from ostinato.gotemplate.values import Int64, Object

TOML: Final = Registry()
_register = TOML

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_SHORT: Final = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\t": r"\t", "\n": r"\n", "\f": r"\f", "\r": r"\r"}
_ESCAPED: Final = str.maketrans({**{chr(code): f"\\u{code:04x}" for code in (*range(0x20), 0x7F)}, **_SHORT})


class _Writer:
    def __init__(self) -> None:
        self._parts: list[str] = []

    def document(self, value: Any) -> str:
        if not isinstance(value, dict):
            if value is None or _is_table(value):
                raise PanicError("toml: top-level values must be Go maps or structs")
            return _inline(value)
        self._table((), value)
        return "".join(self._parts)

    def _table(self, path: tuple[str, ...], value: dict[str, Any]) -> None:
        tables = [key for key in value if _is_table(value[key])]
        for key in [*sorted(set(value) - set(tables)), *sorted(tables)]:
            self._entry((*path, key), value[key])

    def _entry(self, path: tuple[str, ...], value: Any) -> None:
        if value is None:
            return
        indent, name = "  " * (len(path) - 1), ".".join(map(_key, path))
        if isinstance(value, dict):
            if len(path) == 1:
                self._newline()
            self._parts.append(f"{indent}[{name}]\n")
            self._table(path, value)
        elif _is_table(value):
            for each in value:
                self._newline()
                self._parts.append(f"{indent}[[{name}]]\n")
                self._table(path, each)
        else:
            self._parts.append(f"{indent}{_key(path[-1])} = {_inline(value)}\n")

    def _newline(self) -> None:
        if self._parts:
            self._parts.append("\n")


def _is_table(value: Any) -> bool:
    if isinstance(value, list):
        if None in value:
            raise PanicError("toml: cannot encode array with nil element")
        return bool(value) and all(isinstance(each, dict) for each in value)
    return isinstance(value, dict)


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(value: str) -> str:
    return f'"{value.translate(_ESCAPED)}"'


def _inline(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int():
            return str(int(value))
        case float():
            if not math.isfinite(value):
                return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
            text = shortest(value)
            return text if "." in text or "e" in text else f"{text}.0"
        case list():
            return "[" + ", ".join(map(_inline, value)) + "]"
        case dict():
            tables = [key for key in value if _is_table(value[key])]
            order = [*sorted(set(value) - set(tables)), *sorted(tables)]
            return (
                "{" + ", ".join(f"{_key(key)} = {_inline(value[key])}" for key in order if value[key] is not None) + "}"
            )
        case GoTime():
            return value.json()
        case _:
            raise PanicError(f"unexpected type: {kind_of(value)}")


def _read(value: Any) -> Any:
    match value:
        case bool() | str() | float():
            return value
        case int():
            return Int64(value)
        case list():
            return [_read(each) for each in value]
        case dict():
            return {key: _read(each) for key, each in value.items()}
        case datetime():
            return GoTime(value if value.tzinfo else value.astimezone(), value.microsecond * 1000)
        case date():
            return GoTime(datetime(value.year, value.month, value.day).astimezone())
        case time():
            return GoTime(
                datetime(1, 1, 1, value.hour, value.minute, value.second, tzinfo=UTC), value.microsecond * 1000
            )
        case _:
            return value


@_register("toToml", "interface {}")
def to_toml(value: Any) -> str:
    """Encode a map; an error is the text, as in Helm."""
    try:
        return must_to_toml(value)
    except PanicError as error:
        return str(error)


@_register("mustToToml", "interface {}")
def must_to_toml(value: Any) -> str:
    """Of Helm v4: an error is an error."""
    return _Writer().document(dict(value.fields) if isinstance(value, Object) else value)


@_register("fromToml", "string")
def from_toml(text: str) -> dict[str, Any]:
    """Decode a document; what cannot be decoded is a map with the key Error, whose text is Python's."""
    try:
        return {key: _read(each) for key, each in tomllib.loads(text).items()}
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return {"Error": f"toml: {error}"}
