"""Conditions of a transaction: `compare.mod_revision(key, "=", 5)`."""

from __future__ import annotations

from typing import Final, Literal

from ostinato.etcd.messages import Compare
from ostinato.etcd.wire import data, varint

Operator = Literal["=", ">", "<", "!="]

_RESULTS: Final = {"=": b"", ">": b"\x08\x01", "<": b"\x08\x02", "!=": b"\x08\x03"}


def version(key: bytes, operator: Operator, value: int, *, end: bytes = b"") -> Compare:
    """The number of writes since the key's creation; 0 if there is none."""
    return _compare(key, operator, b"", b"\x20" + varint(value), end)


def create_revision(key: bytes, operator: Operator, value: int, *, end: bytes = b"") -> Compare:
    """The revision of the key's creation; 0 if there is none."""
    return _compare(key, operator, b"\x10\x01", b"\x28" + varint(value), end)


def mod_revision(key: bytes, operator: Operator, value: int, *, end: bytes = b"") -> Compare:
    """The revision of the key's last write; 0 if there is none."""
    return _compare(key, operator, b"\x10\x02", b"\x30" + varint(value), end)


def value(key: bytes, operator: Operator, content: bytes, *, end: bytes = b"") -> Compare:
    """The value of the key; false if there is none."""
    return _compare(key, operator, b"\x10\x03", data(7, content), end)


def lease(key: bytes, operator: Operator, identifier: int, *, end: bytes = b"") -> Compare:
    """The lease of the key; 0 if it has none."""
    return _compare(key, operator, b"\x10\x04", b"\x40" + varint(identifier), end)


def _compare(key: bytes, operator: Operator, target: bytes, operand: bytes, end: bytes) -> Compare:
    tail = data(64, end) if end else b""
    return Compare(_RESULTS[operator] + target + data(3, key) + operand + tail)
