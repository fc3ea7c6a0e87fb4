"""Manifests with parts that are known at installation only: values and switches of a chart.

- A value may be an `Expression` in place of a JSON value.
- An item of a list may be a `When`: it is present if a feature is on; or an `Items`: all items of an expression.
- `resolved` removes switches for a format without them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class Expression(NamedTuple):
    """A pipeline of Go's template language. Its value takes the place of a JSON value."""

    pipeline: str


class Items(NamedTuple):
    """In a list: the items of the list that is the value of a pipeline."""

    pipeline: str


class When(NamedTuple):
    """An item of a list that depends on a feature."""

    feature: str
    item: Any


class Manifest(NamedTuple):
    """
    - `file`: name of the object's file in a chart or a kustomize base.
    - `feature`: the switch; "" for objects that are always there.
    """

    file: str
    object: Json
    feature: str = ""


def resolved(value: Any, is_on: Callable[[str], bool]) -> Any:
    """Return a value with the items whose features are on, without switches."""
    if isinstance(value, dict):
        return {key: resolved(each, is_on) for key, each in value.items()}
    if isinstance(value, list):
        kept = [each for each in value if not isinstance(each, When) or is_on(each.feature)]
        return [resolved(each.item if isinstance(each, When) else each, is_on) for each in kept]
    return value


def substituted(value: Any, replacements: Mapping[str, Any]) -> Any:
    """Return a value with each string that is a key of `replacements` replaced."""
    if isinstance(value, str):
        return replacements.get(value, value)
    if isinstance(value, dict):
        return {key: substituted(each, replacements) for key, each in value.items()}
    if isinstance(value, list):
        return [substituted(each, replacements) for each in value]
    return value


def formatted(template: str, *values: Any) -> Any:
    """Return `template % values`, with `%s` for each value: an Expression if one of the values is one."""
    if not any(isinstance(each, Expression) for each in values):
        return template % values
    pipelines = [f"({each.pipeline})" if isinstance(each, Expression) else go_text(each) for each in values]
    return Expression(" ".join(["printf", go_text(template), *pipelines]))


def extended(value: Any, extra: Mapping[str, Any]) -> Any:
    """Return an object with further fields, which win: an Expression if the object or a field is one."""
    if not extra:
        return value
    if isinstance(value, dict) and not any(isinstance(each, Expression) for each in extra.values()):
        return {**value, **extra}
    assert isinstance(value, Expression), "inputs are all concrete, or all expressions"
    fields = [
        part
        for key, each in sorted(extra.items())
        for part in (go_text(key), f"({each.pipeline})" if isinstance(each, Expression) else _go_value(each))
    ]
    return Expression(f"merge (dict {' '.join(fields)}) ({value.pipeline})")


def _go_value(value: Any) -> str:
    """Return a pipeline in parentheses, or a literal, whose value is a JSON value; not for lists."""
    return (
        f"({go_text(json.dumps(value))} | fromJson)"
        if isinstance(value, dict)
        else json.dumps(value, ensure_ascii=False)
    )


def go_text(text: str) -> str:
    """Return a text as a literal of Go's template language."""
    return json.dumps(text, ensure_ascii=False)


def given(fields: Json) -> Json:
    """Return the fields without empty lists, objects and texts."""
    return {name: value for name, value in fields.items() if value not in ({}, [], "")}
