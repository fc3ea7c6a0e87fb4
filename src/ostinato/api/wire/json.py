"""JSON, decoded as by the Kubernetes API.

- Integers have 64 bits; larger ones become floats, as do numbers with a fraction or an exponent.
- NaN, infinities and numbers beyond the range of a float are rejected.
- Of duplicate keys the last one wins (`ostinato.api.wire.strict` reports them).
- Bytes that are not UTF-8, and lone surrogates, become U+FFFD.
- Nesting deeper than `MAX_DEPTH` is rejected, as traversals are recursive and Python's stack has 1,000 frames.
  kube-apiserver allows 10,000 levels; real objects are far below both.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from ostinato.api.wire import json_errors as syntax

MAX_DEPTH: Final = 250  # a traversal may use three frames per level, on top of 200 frames

_DIGITS_ALIKE: Final = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
_LONG_NUMBER: Final = b"0" * 19
_ESCAPE: Final = re.compile(
    rb"(?P<pair>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.",
    re.DOTALL,
)
_NOT_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_PASSES: Final = 8  # rounds of the fast depth check; most objects are less deep

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class DecodeError(ValueError):
    """The bytes cannot be decoded; the message is Kubernetes' where it has one."""


def decode_json(data: bytes | str) -> Any:
    """Decode one JSON value, with only white space around it."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    try:
        value = _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raw = _repaired(raw)
        value = _decode_repaired(raw)
    except RecursionError:
        raise DecodeError("exceeded max depth") from None
    if _LONG_NUMBER in raw.translate(_DIGITS_ALIKE):
        value = _narrowed(value)
    if len(raw) > 2 * MAX_DEPTH and _too_deep(raw, value):
        raise DecodeError("exceeded max depth")
    return value


def encode_json(value: Any) -> bytes:
    """Encode as compact JSON: no white space, keys in the order of the dict, UTF-8."""
    return _encode(value)


def _repaired(raw: bytes) -> bytes:
    """Return the document in valid UTF-8, if it is well-formed otherwise."""
    problem = syntax.problem(raw)
    if problem is not None:
        raise DecodeError(problem)
    return whole_characters(raw)


def whole_characters(raw: bytes) -> bytes:
    """Return the document with U+FFFD for invalid UTF-8 and lone surrogates."""
    clean = raw.decode("utf-8", "replace").encode()
    return _ESCAPE.sub(lambda found: rb"\ufffd" if found["half"] else found[0], clean)


def _decode_repaired(raw: bytes) -> Any:
    try:
        return _decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DecodeError(str(error)) from None
    except RecursionError:
        raise DecodeError("exceeded max depth") from None


def _narrowed(value: Any) -> Any:
    """Convert integers that exceed 64 bits to floats, in place."""
    if type(value) is int:
        return _narrow(value)
    waiting: list[Any] = [value]
    while waiting:
        node = waiting.pop()
        if type(node) is dict:
            places: Any = node.items()
        elif type(node) is list:
            places = enumerate(node)
        else:
            continue
        for place, child in places:
            if type(child) is int:
                node[place] = _narrow(child)
            elif type(child) is dict or type(child) is list:
                waiting.append(child)
    return value


def narrowed_integer(text: str) -> int | float:
    """Return the value of digits in a document."""
    return _narrow(int(text))


def _narrow(number: int) -> int | float:
    if -(2**63) <= number < 2**63:
        return number
    try:
        return float(number)
    except OverflowError:
        raise DecodeError(f"json: cannot unmarshal number {number} into Go value of type float64") from None


def _too_deep(raw: bytes, value: Any) -> bool:
    """Whether containers are nested deeper than MAX_DEPTH; usually decided by replacing brackets, at the speed of C."""
    if raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH:
        return False
    brackets = raw.translate(None, _NOT_BRACKETS)
    for _ in range(_PASSES):
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")  # removes the innermost level
        if len(brackets) <= MAX_DEPTH:
            return False
    # Deep, or brackets in strings: traverse the value by level.
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [
            child
            for node in level
            for child in (node.values() if type(node) is dict else node if type(node) is list else ())
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return False
    return True
