"""Path elements: one step of the path to a field, as the text that `fieldsV1` has for it.

- `f:<name>` is a field of a struct or an entry of a map.
- `k:<json>` is an item of a keyed list, by its keys: `k:{"containerPort":80,"protocol":"TCP"}`, names sorted.
- `v:<json>` is an item of a set, by its value: `v:"finalizer"`.
- `i:<n>` is an item of a list, by its place.

Each has one spelling, so that equal elements are equal strings and field sets can be nested dicts of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from ostinato.api.apply.typed.values import shallow
from ostinato.api.text.go_format import json_text, plain, quote

SELF = "."  # stands beside the children of a path that is itself in the set

_CACHED_LENGTH = 256  # longer elements are read anew each time, so that the cache stays small
_CARE = r'\x00-\x1f"\\<>&\u2028\u2029\ud800-\udfff'  # what JSON text in an element escapes
_NEEDS_CARE = re.compile(f"[{_CARE}]")
_usual_key = re.compile(rf'k:\{{"([A-Za-z0-9]+)":"([^{_CARE}]*)"\}}').fullmatch  # as nearly all keyed items have it
# Elements whose texts are in the order of what they mean: nothing in them comes before the quote that ends a value.
sorts_as_text = re.compile(r'\.|f:.*|k:\{"[A-Za-z0-9]+":"[-A-Za-z0-9._/:]*"\}', re.DOTALL).fullmatch
_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in (*range(0x20), *map(ord, "<>&\u2028\u2029"))},
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}
_INDEX = re.compile(r"[+-]?[0-9]+\Z")


class ElementError(ValueError):
    """A text that is no path element."""


def key_element(keys: Iterable[tuple[str, Any]]) -> str:
    """The element of a keyed list's item; `keys` are names and values, sorted by name."""
    return "k:{" + ",".join([f'"{name}":{_value_text(value)}' for name, value in keys]) + "}"


def name_element(key: str, name: str) -> str:
    """The element of an item that has one key, a text: as nearly all lists have it."""
    return f'k:{{"{key}":{_value_text(name)}}}' if _NEEDS_CARE.search(name) else f'k:{{"{key}":"{name}"}}'


def value_element(value: Any) -> str:
    """The element of a set's item."""
    return "v:" + _value_text(value)


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"' if _NEEDS_CARE.search(value) else f'"{value}"'
    return json_text(value)


def canonical(element: str) -> str | None:
    """The one spelling of an element; None for kinds of elements that are not known, which readers skip."""
    if element.startswith("f:"):
        return element
    return _canonical_short(element) if len(element) <= _CACHED_LENGTH else _canonical(element)


def _canonical(element: str) -> str | None:
    if len(element) < 2:
        raise ElementError("key must be 2 characters long:")
    if _usual_key(element):
        return element
    if element[1] != ":":
        raise ElementError(f"missing colon: {element}")
    match element[0]:
        case "v":
            return value_element(_decoded(element))
        case "k":
            keys = _decoded(element)
            if not isinstance(keys, dict):
                raise ElementError(f"expect the keys of a list item: {element}")
            return key_element(sorted(keys.items()))
        case "i":
            if not _INDEX.match(element, 2):
                raise ElementError(f"expect the place of a list item: {element}")
            return f"i:{int(element[2:])}"
    return None


_canonical_short = lru_cache(maxsize=4096)(_canonical)


def _decoded(element: str) -> Any:
    try:
        value = msgspec.json.decode(element[2:])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ElementError(f"{element}: {error}") from None
    if not shallow(value):
        raise ElementError("expect the keys or the value of a list item, but found more")
    return value


def order(element: str) -> tuple[Any, ...]:
    """Where an element stands among its siblings: itself, fields, keyed items, set items, places."""
    if element.startswith("f:"):
        return (1, element)
    return _order_short(element) if len(element) <= _CACHED_LENGTH else _order(element)


def _order(element: str) -> tuple[Any, ...]:
    if usual := _usual_key(element):
        return (2, (usual[1], (1, usual[2])))
    match element[:1]:
        case "k":
            return (2, *((name, _value_order(value)) for name, value in sorted(_decoded(element).items())))
        case "v":
            return (3, _value_order(_decoded(element)))
        case "i":
            return (4, int(element[2:]))
    return (0,)


_order_short = lru_cache(maxsize=4096)(_order)


def _value_order(value: Any) -> tuple[Any, ...]:
    """Numbers, texts, booleans, lists, maps and null follow each other."""
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case None:
            return (5,)
        case list():
            return (3, *map(_value_order, value))
    return (4, *((name, _value_order(inner)) for name, inner in sorted(value.items())))


def text(element: str) -> str:
    """An element as messages show it: `.spec`, `[name="app"]`, `[="finalizer"]`, `[0]`."""
    match element[0]:
        case "f":
            return "." + element[2:]
        case "k":
            return "[" + ",".join(f"{name}={_shown(value)}" for name, value in _decoded(element).items()) + "]"
        case "v":
            return f"[={_shown(_decoded(element))}]"
    return f"[{element[2:]}]"


def _shown(value: Any) -> str:
    match value:
        case str():
            return quote(value)
        case None:
            return "null"
        case list():
            return "[" + ",".join(map(_shown, value)) + "]"
        case dict():
            return "".join(f"{name}={_shown(inner)}" for name, inner in value.items())
    return plain(value)
