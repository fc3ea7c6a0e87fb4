"""Reading of bbolt databases, the format of etcd's files.

A database is a B+ tree of pages. Its leaves hold keys and values in order, or other trees, the buckets.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error
from typing import Final

_MAGIC: Final = 0xED0CDAED
_VERSION: Final = 2
_BRANCH, _LEAF = 1, 2  # kinds of pages
_BUCKET: Final = 1  # kind of an element
_PAGE: Final = Struct("<QHHI")  # id, kind, number of elements, pages that follow
_META: Final = Struct("<IIIIQQQQQQ")  # magic, version, page size, flags, root, sequence, free list, end, txid, checksum
_BRANCH_ELEMENT: Final = Struct("<IIQ")  # position of the key from here, its size, page
_LEAF_ELEMENT: Final = Struct("<IIII")  # kind, position of the key from here, its size, size of the value
_TREE: Final = Struct("<QQ")  # root page, 0 if the only page follows here; sequence
_FNV_OFFSET, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
_MAX_DEPTH: Final = 64
_PAGE_SIZES: Final = tuple(1 << bits for bits in range(9, 18))

Element = tuple[bytes, bytes, bool]  # key, value, whether it is a bucket


class DamagedDatabase(ValueError):  # noqa: N818 - named after the condition
    """The bytes are not a database."""


class Database:
    """A database in memory. DamagedDatabase if it is not one."""

    def __init__(self, data: bytes | memoryview) -> None:
        self._data = memoryview(data)
        found = [meta for meta in (self._meta(at) for at in (0, *_PAGE_SIZES)) if meta is not None]
        if not found:
            raise DamagedDatabase("not a database of etcd")
        _, self._page_size, self._root = max(found)  # the last of the two transactions

    def bucket(self, name: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield keys and values of a bucket, in order; nothing if there is none."""
        try:
            for key, value, is_bucket in self._elements(self._root, 0):
                if key == name and is_bucket:
                    yield from self._contents(value)
        except (error, IndexError) as reason:
            raise DamagedDatabase(f"a page is damaged: {reason}") from None

    def _meta(self, at: int) -> tuple[int, int, int] | None:
        """Transaction, page size and root page of the meta page at an offset; None if it is invalid."""
        begin = at + _PAGE.size
        if begin + _META.size > len(self._data):
            return None
        magic, version, size, _, root, _, _, _, transaction, checksum = _META.unpack_from(self._data, begin)
        if (magic, version) != (_MAGIC, _VERSION) or at not in (0, size):
            return None
        body = self._data[begin : begin + _META.size - 8]
        return (transaction, size, root) if _fnv(body) == checksum else None

    def _contents(self, tree: bytes) -> Iterator[tuple[bytes, bytes]]:
        root, _ = _TREE.unpack_from(tree)
        elements = self._elements(root, 0) if root else self._page(memoryview(tree)[_TREE.size :], 0)
        return ((key, value) for key, value, is_bucket in elements if not is_bucket)

    def _elements(self, page: int, depth: int) -> Iterator[Element]:
        if depth > _MAX_DEPTH:
            raise DamagedDatabase("the pages form a cycle")
        begin = page * self._page_size
        overflow = _PAGE.unpack_from(self._data, begin)[3]
        return self._page(self._data[begin : begin + (overflow + 1) * self._page_size], depth)

    def _page(self, page: memoryview, depth: int) -> Iterator[Element]:
        _, kind, count, _ = _PAGE.unpack_from(page)
        if kind == _BRANCH:
            for at in range(_PAGE.size, _PAGE.size + count * _BRANCH_ELEMENT.size, _BRANCH_ELEMENT.size):
                yield from self._elements(_BRANCH_ELEMENT.unpack_from(page, at)[2], depth + 1)
        elif kind == _LEAF:
            for at in range(_PAGE.size, _PAGE.size + count * _LEAF_ELEMENT.size, _LEAF_ELEMENT.size):
                flags, position, key_size, value_size = _LEAF_ELEMENT.unpack_from(page, at)
                begin, end = at + position, at + position + key_size + value_size
                if end > len(page):
                    raise DamagedDatabase("an element ends after its page")
                yield bytes(page[begin : begin + key_size]), bytes(page[begin + key_size : end]), bool(flags & _BUCKET)
        else:
            raise DamagedDatabase(f"a page of kind {kind}")


def _fnv(data: memoryview) -> int:
    """The 64-bit FNV-1a hash."""
    value = _FNV_OFFSET
    for octet in data:
        value = (value ^ octet) * _FNV_PRIME % (1 << 64)
    return value
