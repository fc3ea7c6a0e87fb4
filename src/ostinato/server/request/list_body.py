"""Encoded lists that responses share while the listed objects do not change.

- A body has the items of a list; the head, with the resourceVersion, differs between responses.
- It is found by the selection of the collection that it was made from, which a write replaces, and is dropped with it.
- The cache is bounded in bytes; the body that was not used for longest is dropped first.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import msgspec

from ostinato.http.gzip import Deflated, deflate, gzip
from ostinato.server.store.collection import Selected
from ostinato.server.store.records import Entry

PIECE_BYTES = 1 << 17  # bytes of a piece, which is written at a time
MAX_BODY_BYTES = 16 * 1024 * 1024  # larger bodies are not shared
MAX_BYTES = 64 * 1024 * 1024  # of all bodies
_OVERHEAD = 2048  # bytes of a record with its key


class Run(Protocol):
    """Calls a function in a worker thread."""

    def __call__(self, function: Callable[..., Deflated], /, *args: Any) -> Awaitable[Deflated]: ...


class Page(msgspec.Struct, frozen=True):
    """The place of a page in its list."""

    last: str = ""  # key of its last object, if others follow
    left: int | None = None  # number of those, if it is reported


COMPLETE = Page()


class ListBody:
    """The encoded items of one list."""

    __slots__ = ("_deflated", "_lock", "items", "length", "page", "pieces", "size")

    def __init__(self, pieces: list[bytes], page: Page = COMPLETE, items: dict[Entry, bytes] | None = None) -> None:
        """`items`: the encodings of the objects, for the next body of a form that is expensive."""
        self.pieces = pieces
        self.page = page
        self.items = items
        self.length = sum(map(len, pieces))
        # Bytes that it holds in memory, if the objects have changed since.
        self.size = self.length + _OVERHEAD
        if items is not None:
            self.size += sum(len(data) + len(entry.data) for entry, data in items.items())
        self._deflated: Deflated | None = None
        self._lock: asyncio.Lock | None = None

    async def gzip(self, head: bytes, tail: bytes, run: Run) -> bytes:
        """Return the gzip form of the whole; the items are compressed once, in a worker thread."""
        if self._deflated is None:
            self._lock = self._lock or asyncio.Lock()
            async with self._lock:
                if self._deflated is None:
                    self._deflated = await run(deflate, self.pieces)
        return gzip(head, self._deflated, tail)


class _Record:
    __slots__ = ("body", "selected")

    def __init__(self, selected: weakref.ref[Selected], body: ListBody) -> None:
        self.selected = selected
        self.body = body


class ListCache:
    """The bodies of the latest lists."""

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._most = most
        self._records: dict[Any, _Record] = {}  # least recently used first
        self._making: weakref.WeakValueDictionary[Any, asyncio.Lock] = weakref.WeakValueDictionary()
        self.size = 0  # bytes of all bodies

    def making(self, key: Any) -> asyncio.Lock:
        """Return the lock to hold while a body is made: others wait for it instead of making the same."""
        return self._making.setdefault(key, asyncio.Lock())

    def find(self, key: Any, selected: list[Entry]) -> ListBody | None:
        """Return the body that was made from a selection."""
        record = self._records.get(key)
        if record is None or record.selected() is not selected:
            return None
        if next(reversed(self._records)) != key:
            self._records[key] = self._records.pop(key)
        return record.body

    def items(self, key: Any) -> dict[Entry, bytes]:
        """Return the encodings of objects in the last body, which may be of another selection."""
        record = self._records.get(key)
        return {} if record is None or record.body.items is None else record.body.items

    def keep(self, key: Any, selected: list[Entry], body: ListBody) -> None:
        """Share a body, unless it is large."""
        self._drop(key)
        if not isinstance(selected, Selected) or body.length > MAX_BODY_BYTES or body.size > self._most:
            return
        drops = None if body.items is not None else lambda _: self._drop(key, body)
        self._records[key] = _Record(weakref.ref(selected, drops), body)
        self.size += body.size
        while self.size > self._most:
            self._drop(next(iter(self._records)))

    def _drop(self, key: Any, body: ListBody | None = None) -> None:
        record = self._records.get(key)
        if record is not None and body in (None, record.body):
            del self._records[key]
            self.size -= record.body.size
