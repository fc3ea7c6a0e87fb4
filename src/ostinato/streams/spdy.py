"""SPDY/3.1: many streams over one connection.

    async with SpdyConnection(socket, server=True) as connection:
        while (stream := await connection.accept()) is not None:
            ...

There is no flow control: a stream that is not read blocks the others when its buffer is full. Call `drop` to discard
further data of a stream.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping
from typing import Final, Self

from ostinato.streams import spdy_frames as frames
from ostinato.streams.inbox import Inbox
from ostinato.streams.upgrade import Socket

_PIECE: Final = 1 << 15  # bytes of data in a frame
_MOST_STREAMS: Final = 1000  # open at a time


class SpdyStream:
    """A bidirectional stream of bytes."""

    def __init__(self, connection: SpdyConnection, number: int, headers: Mapping[str, str]) -> None:
        self.number = number
        self.headers = headers  # of SYN_STREAM; names in lower case
        self.inbox = Inbox()
        self.answered = asyncio.Event()  # the peer has accepted or rejected it
        self.is_refused = False
        self._connection = connection
        self._closed = False

    async def read(self) -> bytes | None:
        """Return the next data; None when the peer has closed the stream."""
        return await self.inbox.take()

    async def write(self, data: bytes) -> None:
        for at in range(0, len(data), _PIECE):
            if self._closed:
                return
            await self._connection.send(frames.data_frame(self.number, data[at : at + _PIECE]))

    async def close(self) -> None:
        """Close the stream for writing. No effect if it is closed."""
        if not self._closed:
            self._closed = True
            await self._connection.send(frames.data_frame(self.number, b"", last=True))
            self.settle()

    async def reset(self, code: int = frames.CANCEL) -> None:
        """Abort the stream in both directions."""
        self._closed = True
        self.inbox.end()
        self.inbox.drop()
        await self._connection.send(frames.reset(self.number, code))
        self.settle()

    def drop(self) -> None:
        """Discard all further data."""
        self.inbox.drop()

    def lost(self) -> None:
        """Handle a reset by the peer, or the end of the connection."""
        self._closed = self.is_refused = True
        self.inbox.end()
        self.answered.set()
        self.settle()

    def settle(self) -> None:
        """Remove the stream from the connection if it is closed in both directions."""
        if self._closed and self.inbox.ended:
            self._connection.forget(self)


class SpdyConnection:
    """A SPDY connection; an asynchronous context manager, which reads from it."""

    def __init__(self, socket: Socket, *, server: bool) -> None:
        self._socket = socket
        self._reader = frames.FrameReader()
        self._writer = frames.FrameWriter()
        self._streams: dict[int, SpdyStream] = {}
        self._next = 2 if server else 1  # id of the next local stream
        self._last = 0  # id of the last stream of the peer
        self._opened: deque[SpdyStream] = deque()  # by the peer, not yet accepted
        self._news = asyncio.Event()  # set when a stream or the end is available
        self._ended = False
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._reading = asyncio.get_running_loop().create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        if not self._ended:
            await self._socket.send(frames.go_away(self._last))
        assert self._reading is not None
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading

    async def accept(self) -> SpdyStream | None:
        """Return the next stream of the peer; None at the end of the connection."""
        while not self._opened:
            if self._ended:
                return None
            self._news.clear()
            await self._news.wait()
        return self._opened.popleft()

    async def open(self, headers: Mapping[str, str]) -> SpdyStream:
        """Open a stream. Raises ConnectionError if the peer rejects it."""
        stream = SpdyStream(self, self._next, headers)
        if self._ended:
            raise ConnectionError("the connection is closed")
        self._next += 2
        self._streams[stream.number] = stream
        await self.send(self._writer.open(stream.number, headers))
        await stream.answered.wait()
        if stream.is_refused:
            raise ConnectionError("the peer rejected the stream")
        return stream

    # Called by streams

    async def send(self, frame: bytes) -> None:
        if not self._ended:
            await self._socket.send(frame)

    def forget(self, stream: SpdyStream) -> None:
        self._streams.pop(stream.number, None)

    # Received frames

    async def _read(self) -> None:
        try:
            while (data := await self._socket.receive()) is not None:
                for frame in self._reader.feed(data):
                    await self._handle(frame)
        except frames.SpdyError:  # not SPDY: the connection is unusable
            await self._socket.send(frames.go_away(self._last))
        finally:
            self._ended = True
            self._news.set()
            for stream in [*self._streams.values()]:
                stream.lost()

    async def _handle(self, frame: frames.Frame) -> None:
        match frame.type:
            case None:
                await self._receive(frame)
            case frames.SYN_STREAM:
                await self._begin(frame)
            case frames.SYN_REPLY:
                if (stream := self._streams.get(frame.stream)) is not None:
                    stream.answered.set()
                    self._finish(stream, frame)
            case frames.RST_STREAM:
                if (stream := self._streams.get(frame.stream)) is not None:
                    stream.lost()
            case frames.PING:
                if frame.stream % 2 != self._next % 2:  # not a reply to a local PING
                    await self._socket.send(frames.ping(frame.stream))

    async def _receive(self, frame: frames.Frame) -> None:
        stream = self._streams.get(frame.stream)
        if stream is None:
            return  # reset locally; the peer does not know yet
        if frame.data:
            stream.inbox.put(frame.data)
            await stream.inbox.room()
        self._finish(stream, frame)

    async def _begin(self, frame: frames.Frame) -> None:
        if frame.stream <= self._last or frame.stream % 2 == self._next % 2:
            await self._socket.send(frames.reset(frame.stream, frames.PROTOCOL_ERROR))
            return
        self._last = frame.stream
        if len(self._streams) >= _MOST_STREAMS:
            await self._socket.send(frames.reset(frame.stream, frames.REFUSED_STREAM))
            return
        stream = self._streams[frame.stream] = SpdyStream(self, frame.stream, frame.headers)
        await self._socket.send(self._writer.accept(frame.stream))
        self._opened.append(stream)
        self._news.set()
        self._finish(stream, frame)

    def _finish(self, stream: SpdyStream, frame: frames.Frame) -> None:
        if frame.flags & frames.FIN:
            stream.inbox.end()
            stream.settle()
