"""Parser of the event stream of a watch.

An event is a line, `{"type":"ADDED","object":{…}}`. The object is sliced out, not decoded: of a line in the form
that API servers write, only the first bytes are inspected. An incomplete last line is dropped: the next watch repeats
it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, Self, cast

import msgspec

from ostinato.client.list_watch import ADDED, BOOKMARK, DELETED, ERROR, MODIFIED, RawEvent, WatchStalled
from ostinato.client.transport.closable import Closable
from ostinato.client.transport.protocol import MAX_LINE, ConnectionLost, Response, ResponseTooLarge
from ostinato.world import Clock
from ostinato.world.clock import Timer

_HEAD: Final = b'{"type":"'
_MIDDLE: Final = b'","object":'
_MAX_TYPE: Final = 32
_TYPES: Final = {kind.encode(): kind for kind in (ADDED, MODIFIED, DELETED, BOOKMARK, ERROR)}


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


_slow_decoder = msgspec.json.Decoder(_Event)


def parse_event(line: bytes) -> RawEvent:
    """Parse a line. Raises `ConnectionLost` if it is not a watch event: the peer is not an API server."""
    start = len(_HEAD)
    end = line.find(b'"', start, start + _MAX_TYPE)
    kind = _TYPES.get(line[start:end])
    if kind and line.startswith(_HEAD) and line.startswith(_MIDDLE, end) and line[-1:] == b"}":
        return RawEvent(kind, line[end + len(_MIDDLE) : -1])
    try:
        event = _slow_decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        shown = line[:100].decode(errors="replace")
        raise ConnectionLost(f"not a watch event: {shown!r}") from None
    return RawEvent(event.type, bytes(event.object))


class ResponseEvents(Closable):
    """Events in the response to a watch request. `about`: the watch, for messages."""

    def __init__(self, response: Response, clock: Clock, stall_timeout: float | None, about: str) -> None:
        self._response = response
        self._chunks = response.chunks()
        self._clock = clock
        self._stall_timeout = stall_timeout
        self._about = about
        self._lines: Iterator[bytes] = iter(())  # complete lines, not delivered yet
        self._parts: list[bytes] = []  # of an incomplete line
        self._size = 0  # of the parts
        self._reader: asyncio.Task[object] | None = None  # the task that waits for the next chunk
        self._since = 0.0  # since when it has waited
        self._timer: Timer | None = None  # checks that
        self._stalled = False  # nothing was received for `stall_timeout` seconds

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> RawEvent:
        while True:
            for line in self._lines:
                if line and line != b"\r":
                    return parse_event(line)
            self._lines = iter(self._split(await self._chunk()))

    async def _chunk(self) -> bytes:
        if self._stall_timeout is None:
            return await anext(self._chunks)
        reader = self._reader = cast("asyncio.Task[object]", asyncio.current_task())
        self._since = self._clock.monotonic()
        if self._timer is None:
            self._timer = self._clock.timer(self._stall_timeout, self._check_stalled, self._stall_timeout)
        try:
            return await anext(self._chunks)
        except asyncio.CancelledError:
            if not self._stalled or reader.uncancel():
                raise
            self.close()
            raise WatchStalled(
                f"{self._about}: stalled: no data, not even a bookmark, for {self._stall_timeout:g} seconds"
            ) from None
        finally:
            self._reader = None

    def _check_stalled(self, stall_timeout: float) -> None:
        """Cancel the reader if it has waited for too long. One timer serves many waits, as setting one is costly."""
        self._timer = None
        if self._reader is None:
            return
        left = self._since + stall_timeout - self._clock.monotonic()
        if left > 0:
            self._timer = self._clock.timer(left, self._check_stalled, stall_timeout)
        else:
            self._stalled = True
            self._reader.cancel()

    def _split(self, chunk: bytes) -> list[bytes]:
        lines = chunk.split(b"\n")
        last = lines.pop()
        if lines and self._parts:
            self._parts.append(lines[0])
            lines[0] = b"".join(self._parts)
            self._parts, self._size = [], 0
        if last:
            self._parts.append(last)
            self._size += len(last)
            if self._size > MAX_LINE:
                raise ResponseTooLarge(f"{self._about}: event larger than {MAX_LINE} bytes")
        return lines

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._response.close()
