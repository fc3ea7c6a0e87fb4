"""Operations of a transaction: `op.put(key, value)`."""

from __future__ import annotations

from collections.abc import Sequence

from ostinato.etcd.messages import Compare, Op, delete_request, put_request, range_request, txn_request
from ostinato.etcd.wire import data, varint


def range(  # noqa: A001 - etcd's name
    key: bytes,
    end: bytes = b"",
    *,
    limit: int = 0,
    revision: int = 0,
    keys_only: bool = False,
    count_only: bool = False,
) -> Op:
    """Read keys."""
    return Op(
        data(1, range_request(key, end, limit=limit, revision=revision, keys_only=keys_only, count_only=count_only))
    )


def put(key: bytes, value: bytes, *, lease: int = 0, prev_kv: bool = False) -> Op:
    """Write a key."""
    request = put_request(key, value, lease=lease, prev_kv=prev_kv)
    return Op(b"\x12" + varint(len(request)) + request)


def delete(key: bytes, end: bytes = b"", *, prev_kv: bool = False) -> Op:
    """Delete keys."""
    return Op(data(3, delete_request(key, end, prev_kv=prev_kv)))


def txn(compares: Sequence[Compare], success: Sequence[Op], failure: Sequence[Op] = ()) -> Op:
    """Run a transaction inside another."""
    return Op(data(4, txn_request(compares, success, failure)))
