"""Validation of typed values against their merge rules, with kube-apiserver's messages.

This is not object validation: fields must be declared, values must have the right type, and the items of associative
lists must have distinct keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ostinato.api.apply.fieldpath.elements import text
from ostinato.api.apply.typed.fast_validate import fast_validator
from ostinato.api.apply.typed.merge_rules import ItemError, Rules
from ostinato.api.text.go_format import plain, quote


class TypedError(ValueError):
    """The value violates its schema; the message contains all field paths."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__(problems[0] if len(problems) == 1 else "\n".join(["errors:", *("  " + p for p in problems)]))
        self.problems = problems


def validate(value: Any, rules: Rules, *, duplicates: bool) -> None:
    """Raise TypedError unless the value is valid. `duplicates` allows items with the same key in a list."""
    if fast_validator(rules)(value):
        return
    problems = _validate(value, rules, duplicates)
    if problems:
        raise TypedError([f"{path}: {problem}" if path else problem for path, problem in problems])


_Problems = Sequence[tuple[str, str]]  # relative path, message


def _validate(value: Any, rules: Rules, duplicates: bool) -> _Problems:
    if value is None:
        return ()
    form = rules.form(value)
    if form == "scalar":
        wrong = _wrong_scalar(value, rules.scalar)
        return [("", wrong)] if wrong else ()
    found: list[tuple[str, str]] = []
    if form == "map":
        if not isinstance(value, dict):
            return [("", f"expected map, got &{{{_shown(value)}}}")]
        assert rules.map is not None
        for name, inner in value.items():
            field = rules.map.field(name)
            if field is None:
                return [*found, ("." + name, "field not declared in schema")]
            for path, problem in _validate(inner, field, duplicates):
                found.append((f".{name}{path}", problem))
        return found
    if not isinstance(value, list):
        return [("", f"expected list, got &{{{_shown(value)}}}")]
    assert rules.list is not None
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if not rules.list.atomic:
            try:
                element = rules.list.element(item)
            except ItemError as error:
                return [*found, ("", f"element {index}: {error}")]
            if element in seen and not duplicates:
                found.append(("", f"duplicate entries for key {text(element)}"))
            seen.add(element)
        for path, problem in _validate(item, rules.list.items, duplicates):
            found.append((text(element) + path, problem))
    return found


def _wrong_scalar(value: Any, kind: str | None) -> str | None:
    match kind:
        case "numeric" if isinstance(value, bool) or not isinstance(value, int | float):
            return f"expected numeric (int or float), got {_go_type(value)}"
        case "string" if not isinstance(value, str):
            return f"expected string, got &value.valueUnstructured{{Value:{_literal(value)}}}"
        case "boolean" if not isinstance(value, bool):
            return f"expected boolean, got &{{{_shown(value)}}}"
        case "untyped" if isinstance(value, dict | list):
            return f"expected any scalar, got &{{{_shown(value)}}}"
    return None


# Values as Go formats them


def _go_type(value: Any) -> str:
    """Return the Go type of a value that is not a number."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case list():
            return "[]interface {}"
    return "map[string]interface {}"


def _shown(value: Any) -> str:
    match value:
        case None:
            return "<nil>"
        case list():
            return "[" + " ".join(map(_shown, value)) + "]"
        case dict():
            return "map[" + " ".join(f"{name}:{_shown(inner)}" for name, inner in sorted(value.items())) + "]"
    return plain(value)


def _literal(value: Any) -> str:
    match value:
        case None:
            return "interface {}(nil)"
        case str():
            return quote(value)
        case list():
            return "[]interface {}{" + ", ".join(map(_literal, value)) + "}"
        case dict():
            entries = ", ".join(f"{quote(name)}:{_literal(inner)}" for name, inner in sorted(value.items()))
            return "map[string]interface {}{" + entries + "}"
    return plain(value)
