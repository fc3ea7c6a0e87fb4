"""`toYamlPretty`: YAML as go.yaml.in/yaml/v3 writes it with an indent of two; lists are indented, lines not folded."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from typing import Any, Final

import yaml
from yaml.emitter import Emitter

from ostinato.api.wire.yaml_output import natural_order
from ostinato.api.wire.yaml_scalars import reads_as_text
from ostinato.gotemplate.fmt.floats import shortest
from ostinato.gotemplate.values import Object

_WIDTH: Final = 1 << 30


class _Emitter(Emitter):
    """PyYAML's emitter, with lists inside maps indented."""

    def check_simple_key(self) -> bool:
        return (isinstance(self.event, yaml.ScalarEvent) and self.event.value == "") or super().check_simple_key()

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, indentless=False)


def pretty_yaml(value: Any) -> str:
    """Encode one document."""
    out = io.StringIO()
    emitter = _Emitter(out, width=_WIDTH, allow_unicode=True)
    for event in _events(value):
        emitter.emit(event)
    return out.getvalue().removesuffix("...\n").removeprefix("--- ")


def _events(value: Any) -> Iterator[yaml.Event]:
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    yield from _node(value)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _node(value: Any) -> Iterator[yaml.Event]:
    match value:
        case dict():
            yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=not value)
            for key in sorted(value, key=natural_order):
                yield from _node(key)
                yield from _node(value[key])
            yield yaml.MappingEndEvent()
        case list():
            yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=not value)
            for item in value:
                yield from _node(item)
            yield yaml.SequenceEndEvent()
        case Object():
            yield from _node({key.lower(): each for key, each in value.fields.items()})
        case _:
            yield _scalar(value)


def _scalar(value: Any) -> yaml.Event:
    style = None
    match value:
        case None:
            text = "null"
        case bool():
            text = "true" if value else "false"
        case str():
            text = value
            style = "|" if "\n" in value else None if reads_as_text(value) else '"'
        case float():
            text = (
                shortest(value)
                if math.isfinite(value)
                else f"{'-' if value < 0 else ''}.{'nan' if math.isnan(value) else 'inf'}"
            )
        case _:
            text = str(value)
    return yaml.ScalarEvent(None, None, implicit=(True, True), value=text, style=style)
