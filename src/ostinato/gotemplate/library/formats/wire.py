"""Values between templates and documents: what encoding/json sees of a value, and what it makes of numbers."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from ostinato.gotemplate.fmt.floats import shortest
from ostinato.gotemplate.library.go_time import GoName, GoTime
from ostinato.gotemplate.library.kinds import NilList, NilStrings
from ostinato.gotemplate.values import Object


def wire_value(value: Any) -> Any:
    """Return a value as JSON has it: bytes in base64, structs as maps; lists that are nil stay, and become null."""
    match value:
        case None | bool() | str() | float() | NilList() | NilStrings():
            return value
        case int():
            return int(value)
        case dict():
            return {key: wire_value(each) for key, each in value.items()}
        case list():
            return [wire_value(each) for each in value]
        case bytes():
            return b64encode(value).decode()
        case GoTime():
            return value.json()
        case GoName():
            return value.number
        case Object():
            shown = getattr(value, "json_fields", None)
            fields = shown() if shown is not None else value.fields
            return {key: wire_value(each) for key, each in fields.items()}
        case _:
            return value


def scalar_text(value: Any) -> str | None:
    """Return a scalar of YAML where Go expects a string: numbers and booleans too; None for lists and maps."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return shortest(value)
        case _:
            return None


def go_numbers(value: Any) -> Any:
    """Return a decoded document with all numbers as floats, as Go decodes into interface {}."""
    match value:
        case bool():
            return value
        case int():
            return float(value)
        case dict():
            return {key: go_numbers(each) for key, each in value.items()}
        case list():
            return [go_numbers(each) for each in value]
        case _:
            return value
