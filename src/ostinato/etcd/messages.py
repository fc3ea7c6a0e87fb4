"""Requests and responses of etcd's key-value service.

Compares and operations of transactions are encoded at once: making one costs as much as encoding it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, NewType, cast

from msgspec import Struct

from ostinato.etcd.wire import WireError, data, fields, number, varint

Compare = NewType("Compare", bytes)
"""A condition of a transaction; `ostinato.etcd.compare` makes them."""
Op = NewType("Op", bytes)
"""An operation of a transaction; `ostinato.etcd.op` makes them."""


class KeyValue(Struct, frozen=True, gc=False):
    """A key at a revision."""

    key: bytes
    value: bytes
    create_revision: int
    mod_revision: int
    version: int  # writes since its creation; 0 in the event of a deletion
    lease: int


class RangeResult(Struct, frozen=True):
    """Keys at `revision`. `count`: all keys of the range, also those beyond the limit."""

    revision: int
    kvs: list[KeyValue]
    more: bool
    count: int


class PutResult(Struct, frozen=True):
    """A key was written at `revision`."""

    revision: int
    prev: KeyValue | None = None


class DeleteResult(Struct, frozen=True):
    """`deleted` keys were deleted at `revision`."""

    revision: int
    deleted: int
    prev: list[KeyValue]


class TxnResult(Struct, frozen=True):
    """Whether the compares held, and the results of the operations that were run therefore."""

    revision: int
    succeeded: bool
    results: list[RangeResult | PutResult | DeleteResult | TxnResult]


def prefix_end(prefix: bytes) -> bytes:
    """Return the end of the range of all keys with a prefix."""
    trimmed = prefix.rstrip(b"\xff")
    return trimmed[:-1] + bytes((trimmed[-1] + 1,)) if trimmed else b"\0"


# Requests


def range_request(
    key: bytes,
    end: bytes = b"",
    *,
    limit: int = 0,
    revision: int = 0,
    serializable: bool = False,
    keys_only: bool = False,
    count_only: bool = False,
) -> bytes:
    request = data(1, key)
    if end:
        request += data(2, end)
    if limit or revision:
        request += number(3, limit) + number(4, revision)
    if serializable or keys_only or count_only:
        request += number(7, serializable) + number(8, keys_only) + number(9, count_only)
    return request


def put_request(key: bytes, value: bytes, *, lease: int = 0, prev_kv: bool = False) -> bytes:
    request = b"\x0a" + varint(len(key)) + key + b"\x12" + varint(len(value)) + value
    return request + number(3, lease) + number(4, prev_kv) if lease or prev_kv else request


def delete_request(key: bytes, end: bytes = b"", *, prev_kv: bool = False) -> bytes:
    return data(1, key) + (data(2, end) if end else b"") + number(3, prev_kv)


def txn_request(compares: Sequence[Compare], success: Sequence[Op], failure: Sequence[Op] = ()) -> bytes:
    parts: list[bytes] = []
    for tag, messages in ((b"\x0a", compares), (b"\x12", success), (b"\x1a", failure)):
        for each in messages:
            parts += (tag, varint(len(each)), each)
    return b"".join(parts)


# Responses. Each is read in one pass; fields that are not known are skipped.


# The ids of cluster and member, and the revision: ids are long numbers that nobody reads.
_HEADER: Final = re.compile(
    rb"(?:\x08[\x80-\xff]{0,9}[\0-\x7f])?(?:\x10[\x80-\xff]{0,9}[\0-\x7f])?\x18([\x80-\xff]{0,8}[\0-\x7f])"
)


def read_header(message: bytes) -> int:
    """Return the revision of a response header."""
    if found := _HEADER.match(message):
        revision = 0
        for octet in reversed(found[1]):
            revision = revision << 7 | octet & 127
        return revision
    for field, value in fields(message):
        if field == 3:
            return _int(value)
    return 0


def read_key_value(message: bytes) -> KeyValue:
    key = value = b""
    create = mod = version = lease = 0
    for field, found in fields(message):
        if field == 1:
            key = _bytes(found)
        elif field == 2:
            create = _int(found)
        elif field == 3:
            mod = _int(found)
        elif field == 4:
            version = _int(found)
        elif field == 5:
            value = _bytes(found)
        elif field == 6:
            lease = _int(found)
    return KeyValue(key, value, create, mod, version, lease)


def read_range(message: bytes, revision: int = 0) -> RangeResult:
    kvs: list[KeyValue] = []
    more, count = False, 0
    for field, value in fields(message):
        if field == 2:
            kvs.append(read_key_value(_bytes(value)))
        elif field == 1:
            revision = read_header(_bytes(value)) or revision
        elif field == 3:
            more = bool(value)
        elif field == 4:
            count = _int(value)
    return RangeResult(revision, kvs, more, count)


def read_put(message: bytes, revision: int = 0) -> PutResult:
    prev = None
    for field, value in fields(message):
        if field == 1:
            revision = read_header(_bytes(value)) or revision
        elif field == 2:
            prev = read_key_value(_bytes(value))
    return PutResult(revision, prev)


def read_delete(message: bytes, revision: int = 0) -> DeleteResult:
    deleted, prev = 0, []
    for field, value in fields(message):
        if field == 1:
            revision = read_header(_bytes(value)) or revision
        elif field == 2:
            deleted = _int(value)
        elif field == 3:
            prev.append(read_key_value(_bytes(value)))
    return DeleteResult(revision, deleted, prev)


def read_txn(message: bytes, revision: int = 0) -> TxnResult:
    succeeded, responses = False, []
    for field, value in fields(message):
        if field == 1:
            revision = read_header(_bytes(value)) or revision
        elif field == 2:
            succeeded = bool(value)
        elif field == 3:
            responses.append(_bytes(value))
    return TxnResult(revision, succeeded, [_read_operation(each, revision) for each in responses])


_READERS: Final = {1: read_range, 2: read_put, 3: read_delete, 4: read_txn}


def _read_operation(message: bytes, revision: int) -> RangeResult | PutResult | DeleteResult | TxnResult:
    for field, value in fields(message):
        if reader := _READERS.get(field):
            return cast("Any", reader)(_bytes(value), revision)  # type: ignore[no-any-return]
    raise WireError("result of an unknown operation")


def _int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise WireError("bytes instead of a number")
    return value - (1 << 64) if value >> 63 else value


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("a number instead of bytes")
    return value
