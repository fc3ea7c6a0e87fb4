"""What is wrong with a value, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ostinato.gotemplate.fmt import sprint
from ostinato.gotemplate.strings import quote


@dataclass(slots=True)
class Problem:
    """A message about a place in the values, and its causes. A group is several messages about the same place."""

    path: tuple[str, ...]
    message: str
    causes: list[Problem] = field(default_factory=list)
    group: bool = False

    def lines(self, indent: int) -> Iterator[str]:
        pointer = "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in self.path)
        yield f"{'  ' * indent}- at {quoted(pointer)}: {self.message}"
        for each in self.causes:
            yield from each.lines(indent + 1)


def type_name(value: Any) -> str:
    """Return the name of a value's type in JSON Schema."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case dict():
            return "object"
        case list():
            return "array"
        case _:
            return "number"


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal: numbers by value, booleans are no numbers."""
    if type_name(a) != type_name(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(each, b[key]) for key, each in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def quoted(text: str) -> str:
    """Quote with single quotes."""
    inner = quote(text)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"


def display(value: Any) -> str:
    """Show a scalar."""
    return quoted(value) if isinstance(value, str) else sprint(value)
