"""YAML, encoded as by kube-apiserver and kubectl: block style, keys sorted, quotes only where needed.

The output is identical, except for the string `<<`: they do not quote it, so that it cannot be decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cmp_to_key
from typing import Any, Final

import yaml

from ostinato.api.text.go_format import json_text, plain
from ostinato.api.wire.yaml_scalars import reads_as_text

_WIDTH: Final = 80


def encode_yaml(value: Any) -> bytes:
    """Encode one document."""
    text: str = yaml.emit(_events(value), Dumper=yaml.CSafeDumper, width=_WIDTH, allow_unicode=True)
    if text.endswith("\n...\n"):  # end marker after a scalar; not needed for one document
        text = text.removesuffix("...\n")
    return text.encode()


def _events(value: Any) -> Iterator[yaml.Event]:
    yield yaml.StreamStartEvent()
    yield yaml.DocumentStartEvent(explicit=False)
    yield from _node(value)
    yield yaml.DocumentEndEvent(explicit=False)
    yield yaml.StreamEndEvent()


def _node(value: Any) -> Iterator[yaml.Event]:
    match value:
        case dict():
            yield yaml.MappingStartEvent(None, None, implicit=True, flow_style=False)
            for key in sorted(value, key=natural_order):
                yield _text(key)
                yield from _node(value[key])
            yield yaml.MappingEndEvent()
        case list():
            yield yaml.SequenceStartEvent(None, None, implicit=True, flow_style=False)
            for item in value:
                yield from _node(item)
            yield yaml.SequenceEndEvent()
        case str():
            yield _text(value)
        case None:
            yield _scalar("null", None)
        case bool():
            yield _scalar("true" if value else "false", None)
        case float() if value.is_integer() and -(2**63) <= value < 2**64:
            yield _scalar(json_text(value), None)
        case _:
            yield _scalar(plain(value), None)


def _text(text: str) -> yaml.Event:
    if "\n" in text:
        return _scalar(text, "|")
    return _scalar(text, None if reads_as_text(text) else '"')


def _scalar(text: str, style: str | None) -> yaml.Event:
    return yaml.ScalarEvent(None, None, implicit=(True, True), value=text, style=style)


def _compare(left: str, right: str) -> int:
    """Compare keys: numbers by value, letters after other characters, else by code point."""
    for at, (a, b) in enumerate(zip(left, right, strict=False)):
        if a == b:
            continue
        if a.isalpha() or b.isalpha():
            if a.isalpha() and b.isalpha():
                return -1 if a < b else 1
            return -1 if b.isalpha() else 1
        return _compare_numbers(left, right, at)
    return len(left) - len(right)


def _compare_numbers(left: str, right: str, at: int) -> int:
    first = second = 0
    if "0" in (left[at], right[at]):  # a zero within a number is significant
        before = at - 1
        while before >= 0 and left[before].isdigit():
            if left[before] != "0":
                first = second = 1
                break
            before -= 1
    first, left_end = _number(left, at, first)
    second, right_end = _number(right, at, second)
    if first != second:
        return -1 if first < second else 1
    if left_end != right_end:
        return left_end - right_end
    return -1 if left[at] < right[at] else 1


def _number(text: str, at: int, start: int) -> tuple[int, int]:
    end = at
    while end < len(text) and text[end].isdigit():
        start = start * 10 + ord(text[end]) - ord("0")
        end += 1
    return start, end


natural_order = cmp_to_key(_compare)
