"""JSONPath in Kubernetes' dialect: `.status.conditions[?(@.type=="Ready")].status`.

- For printer columns and selectable fields: fields, indexes, slices, wildcards, unions, filters, recursive descent.
- Absent fields select nothing.
- JsonPathError: syntax errors when parsed; type errors (index of a string, comparison of number and string) when
  evaluated.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

Step = Callable[[list[Any]], list[Any]]

_QUOTED_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MOST_NESTED: Final = 20  # nested filters and unions


class JsonPathError(ValueError):
    """The path is invalid, or cannot be evaluated for a value."""


class JsonPath:
    """A parsed path."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._steps = _Parser(text).parse()

    def find(self, value: Any) -> list[Any]:
        """Return all selected values, in order."""
        return _follow(self._steps, [value])


def _follow(steps: list[Step], values: list[Any]) -> list[Any]:
    for step in steps:
        values = step(values)
    return values


class _Parser:
    def __init__(self, text: str, nested: int = 0) -> None:
        if nested > _MOST_NESTED:
            raise JsonPathError("filters are nested too deeply")
        self._text = text
        self._at = 0
        self._nested = nested
        self._descended = False  # the previous step was `..`

    def parse(self) -> list[Step]:
        steps: list[Step] = []
        text = self._text
        while self._at < len(text):
            descended, self._descended = self._descended, False
            character = text[self._at]
            if text.startswith("[?(", self._at):
                steps.append(self._filter())
            elif text.startswith("..", self._at):
                if descended:
                    raise JsonPathError("invalid multiple recursive descent")
                self._at += 2
                self._descended = True
                steps.append(_descend)
                if self._at < len(text) and (text[self._at].isalnum() or text[self._at] == "_"):
                    steps.append(self._field())
            elif character in " @$":
                self._at += 1
                self._descended = descended
            elif character == "[":
                steps.extend(self._brackets())
            elif character in "\"'":
                steps.append(_constant(self._quoted(character)))
            elif character == ".":
                self._at += 1
                steps.append(self._field())
            elif character in "+-" or character.isdigit():
                steps.append(_constant(self._number()))
            elif character.isalnum() or character == "_":
                steps.append(_constant(self._word()))
            else:
                raise JsonPathError(f"unrecognized character in action: U+{ord(character):04X} '{character}'")
        return steps

    def _until_terminator(self) -> str:
        text, start = self._text, self._at
        while self._at < len(text) and text[self._at] not in " \t\r\n.,[]$@{}":
            self._at += 2 if text[self._at] == "\\" else 1
        self._at = min(self._at, len(text))
        return text[start : self._at]

    def _field(self) -> Step:
        name = self._until_terminator()
        return _wildcard if name == "*" else _field(name.replace("\\", ""))

    def _word(self) -> bool:
        word = self._until_terminator()
        if word not in ("true", "false"):
            raise JsonPathError(f"unrecognized identifier {word}")
        return word == "true"

    def _number(self) -> int | float:
        found = re.compile(r"[+-]?[0-9.]*").match(self._text, self._at)
        assert found is not None
        self._at = found.end()
        try:
            return int(found[0]) if "." not in found[0] else float(found[0])
        except ValueError:
            raise JsonPathError(f"cannot parse number {found[0]}") from None

    def _quoted(self, quote: str) -> str:
        text, self._at = self._text, self._at + 1
        out = []
        while self._at < len(text) and text[self._at] != quote:
            if text[self._at] == "\\":
                self._at += 1
                escaped = text[self._at : self._at + 1]
                out.append(_ESCAPES.get(escaped, escaped))
            else:
                out.append(text[self._at])
            self._at += 1
        if self._at >= len(text):
            raise JsonPathError("unterminated quoted string")
        self._at += 1
        return "".join(out)

    def _brackets(self) -> list[Step]:
        end = self._text.find("]", self._at)
        if end < 0:
            raise JsonPathError("unterminated array")
        inside, self._at = self._text[self._at + 1 : end], end + 1
        parts = inside.split(",")
        if len(parts) > 1:
            unions = [_Parser(f"[{part.strip(' ')}]", self._nested + 1).parse() for part in parts]
            return [lambda values: [found for steps in unions for found in _follow(steps, values)]]
        if inside == "*":
            inside = ":"
        key = _QUOTED_KEY.search(inside)
        if key is not None:
            return _Parser(f".{key[1]}", self._nested + 1).parse()
        found = _SLICE.fullmatch(inside)
        if found is None:
            raise JsonPathError(f"invalid array index {inside}")
        return [_slice(inside, found[1], found[2], found[3])]

    def _filter(self) -> Step:
        """Parse `[?(left operator right)]`, or `[?(path)]`, which selects the items that have the path."""
        start = self._at + 3
        quote = ""
        at = start
        text = self._text
        while at < len(text) and (quote or text[at] != ")"):
            if quote:
                quote = "" if text[at] == quote and text[at - 1] != "\\" else quote
            elif text[at] in "\"'":
                quote = text[at]
            at += 1
        if not text.startswith(")", at):
            raise JsonPathError("unterminated filter")
        if not text.startswith("]", at + 1):
            raise JsonPathError("unclosed array expect ]")
        self._at = at + 2
        condition = text[start:at]
        found = _COMPARISON.fullmatch(condition)
        if found is None:
            return _existing(_Parser(condition, self._nested + 1).parse())
        left, right = (_Parser(found[side], self._nested + 1).parse() for side in (1, 3))
        if found[2] not in _OPERATORS:
            raise JsonPathError(f"unrecognized filter operator {found[2]}")
        return _comparing(left, _OPERATORS[found[2]], right)


def _constant(value: Any) -> Step:
    return lambda values: [value] * len(values)


def _field(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _below(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _wildcard(values: list[Any]) -> list[Any]:
    return [below for value in values for below in _below(value)]


def _descend(values: list[Any]) -> list[Any]:
    """Return all containers in a value, outer ones first."""
    found = []
    waiting = list(reversed(values))
    while waiting:
        value = waiting.pop()
        below = _below(value)
        if below:
            found.append(value)
            waiting.extend(reversed(below))
    return found


def _slice(text: str, first: str, second: str | None, third: str | None) -> Step:
    single = second is None
    start = int(first) if first not in ("", "-") else 0
    end = int(second[1:]) if second and second[1:] not in ("", "-") else None
    step = int(third[1:]) if third and third[1:] not in ("", "-") else 1
    if step <= 0:
        raise JsonPathError("step must be > 0")
    if single and first in ("", "-"):
        raise JsonPathError(f"invalid array index {text}")

    def take(values: list[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if value is None:
                continue
            if not isinstance(value, list):
                raise JsonPathError("not an array")
            found += value[_range(start, start + 1 if single else end, len(value), single=single)][::step]
        return found

    return take


def _range(start: int, end: int | None, size: int, *, single: bool) -> slice:
    if end is None:
        end = size
    elif end < 0 or (single and end == 0):
        end += size
    if start < 0:
        start += size
    if start != end and not (0 <= start < size and start <= end <= size):
        raise JsonPathError(f"array index out of bounds: index {start}, length {size}")
    return slice(start, end)


def _items(values: list[Any]) -> list[Any]:
    for value in values:
        if not isinstance(value, list):
            raise JsonPathError("not an array, and cannot be filtered")
    return [item for value in values for item in value]


def _existing(steps: list[Step]) -> Step:
    return lambda values: [item for item in _items(values) if _leads_somewhere(steps, item)]


def _leads_somewhere(steps: list[Step], item: Any) -> bool:
    try:
        return bool(_follow(steps, [item]))
    except JsonPathError:
        return False


def _comparing(left: list[Step], compare: Callable[[Any, Any], bool], right: list[Step]) -> Step:
    def keep(values: list[Any]) -> list[Any]:
        found = []
        for item in _items(values):
            ours, theirs = _follow(left, [item]), _follow(right, [item])
            if len(ours) > 1 or len(theirs) > 1:
                raise JsonPathError("can only compare one element at a time")
            if ours and theirs:
                if type(ours[0]) is not type(theirs[0]) or not isinstance(ours[0], str | int | float):
                    raise JsonPathError("incompatible types for comparison")
                if compare(ours[0], theirs[0]):
                    found.append(item)
        return found

    return keep
