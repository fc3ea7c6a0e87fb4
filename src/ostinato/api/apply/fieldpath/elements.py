"""Path elements: one step of the path to a field, in the spelling of `fieldsV1`.

- `f:<name>` is a field of a struct or an entry of a map.
- `k:<json>` is an item of a list of type map, by its keys: `k:{"containerPort":80,"protocol":"TCP"}`, names sorted.
- `v:<json>` is an item of a list of type set, by its value: `v:"finalizer"`.
- `i:<n>` is an item of a list, by its index.

Each has one canonical spelling, so that equal elements are equal strings and field sets can be nested dicts of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from ostinato.api.apply.typed.values import shallow
from ostinato.api.text.go_format import json_text, plain, quote

SELF = "."  # key beside the children of a path that is itself a member of the set

_CACHED_LENGTH = 256  # longer elements are parsed each time, to bound the memory of the cache
_CARE = r'\x00-\x1f"\\<>&\u2028\u2029\ud800-\udfff'  # characters that are escaped in JSON
_NEEDS_CARE = re.compile(f"[{_CARE}]")
_usual_key = re.compile(rf'k:\{{"([A-Za-z0-9]+)":"([^{_CARE}]*)"\}}').fullmatch  # one key, a string: nearly all items
# Elements for which text order equals `order`: no character in them sorts before the quote that ends a value.
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
    """The string is not a path element."""


def key_element(keys: Iterable[tuple[str, Any]]) -> str:
    """Return the element of an item of a map list; `keys` are names and values, sorted by name."""
    return "k:{" + ",".join([f'"{name}":{_value_text(value)}' for name, value in keys]) + "}"


def name_element(key: str, name: str) -> str:
    """Return the element of an item with one key that is a string."""
    return f'k:{{"{key}":{_value_text(name)}}}' if _NEEDS_CARE.search(name) else f'k:{{"{key}":"{name}"}}'


def value_element(value: Any) -> str:
    """Return the element of an item of a set."""
    return "v:" + _value_text(value)


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"' if _NEEDS_CARE.search(value) else f'"{value}"'
    return json_text(value)


def canonical(element: str) -> str | None:
    """Return the canonical spelling of an element; None for an unknown type of element, which is ignored."""
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
                raise ElementError(f"expected the keys of a list item: {element}")
            return key_element(sorted(keys.items()))
        case "i":
            if not _INDEX.match(element, 2):
                raise ElementError(f"expected the index of a list item: {element}")
            return f"i:{int(element[2:])}"
    return None


_canonical_short = lru_cache(maxsize=4096)(_canonical)


def _decoded(element: str) -> Any:
    try:
        value = msgspec.json.decode(element[2:])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise ElementError(f"{element}: {error}") from None
    if not shallow(value):
        raise ElementError("expected the keys or the value of a list item, got a deeply nested value")
    return value


def order(element: str) -> tuple[Any, ...]:
    """Return the sort key of an element among its siblings: self, fields, keyed items, set items, indexes."""
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
    """Return a sort key: numbers, then strings, booleans, lists, maps, null."""
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
    """Format an element for messages: `.spec`, `[name="app"]`, `[="finalizer"]`, `[0]`."""
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
