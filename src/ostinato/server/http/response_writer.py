"""Response writer: sends responses no faster than the client reads.

- A short response, as nearly all are, is one write.
- A long response is written in pieces; between them other requests get their turn.
- While the client does not read, nothing is written. After `REQUEST_TIMEOUT` its connection is closed, unless the
  stream may wait (`patient`).
"""

from __future__ import annotations

import asyncio
import zlib
from abc import abstractmethod
from typing import TYPE_CHECKING

from ostinato.http.encoding import LAST_CHUNK, chunk, chunk_parts
from ostinato.http.request import RequestHead
from ostinato.server.http.closed import CLOSED
from ostinato.server.http.head import head_lines
from ostinato.server.request import Response, Stream

if TYPE_CHECKING:
    from ostinato.server.http.server import HttpServer

PIECE_BYTES = 1 << 16  # bytes written at a time
MIN_COMPRESSED = 128 * 1024  # bytes of a response above which it is compressed, if the client accepts gzip
_COPIED = 16 * 1024  # bytes below which a copy of a chunk costs less than two more writes
REQUEST_TIMEOUT = 60.0  # seconds for a response that is not a stream, and for the client to read what was written

_WITHOUT_BODY = frozenset({204, 304})


class ResponseWriter(asyncio.BufferedProtocol):
    """The writing half of a connection."""

    def __init__(self, owner: HttpServer, deadline: float) -> None:
        self._owner = owner
        self._core = owner.core
        self._turns = owner.turns
        self._loop = asyncio.get_running_loop()
        self._clock = owner.core.world.clock
        self._transport: asyncio.Transport = CLOSED  # the real one from connection_made to connection_lost
        self._writable: asyncio.Future[None] | None = None  # while the client does not read
        self._streaming = False
        self._patient = False  # the client may read slowly
        self._closing = False  # the connection accepts no further request
        self._lost = False
        self.deadline = deadline  # on the clock, when the connection expires

    @abstractmethod
    def _keeps_alive(self, head: RequestHead) -> bool:
        """Whether another request may follow on this connection."""

    # Flow control

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()
        if not self._patient:
            self.deadline = self._clock.monotonic() + REQUEST_TIMEOUT

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None
        if self._streaming:
            self.deadline = float("inf")

    # Responses

    def _head_lines(self, head: RequestHead, answer: Response | Stream) -> list[bytes]:
        lines = [
            head_lines(answer.status, answer.content_type, answer.headers),
            self._owner.audit_id(head.headers.get("audit-id")),
            self._owner.date,
        ]
        if not self._keeps_alive(head):
            self._closing = True
            lines.append(b"Connection: close\r\n")
        return lines

    def _write_short(self, head: RequestHead, answer: Response) -> bool:
        """Write a response in one piece; False if it is long, has no body, or the client does not read."""
        body = answer.parts[0]
        if (
            len(answer.parts) > 1
            or len(body) > PIECE_BYTES
            or answer.status in _WITHOUT_BODY
            or head.method == "HEAD"
            or self._writable is not None
            or self._lost
        ):
            return False
        lines = self._head_lines(head, answer)
        lines += b"Content-Length: %d\r\n\r\n" % len(body), body
        self._transport.write(b"".join(lines))
        return True

    async def _write(self, head: RequestHead, answer: Response) -> None:
        size = answer.size
        lines = self._head_lines(head, answer)
        if size > MIN_COMPRESSED and _accepts_gzip(head, answer):
            run = self._core.world.executor.run
            if answer.shared is not None:
                whole = await answer.shared.gzip(answer.parts[0], answer.parts[-1], run)
            else:
                whole = await run(_gzip, answer)
            size = len(whole)
            lines.append(b"Content-Encoding: gzip\r\n")
            if ("Vary", "Accept-Encoding") not in answer.headers:
                lines.append(b"Vary: Accept-Encoding\r\n")
            answer = Response(answer.status, whole, answer.content_type, answer.headers)
        if answer.status not in _WITHOUT_BODY:
            lines.append(b"Content-Length: %d\r\n" % size)
        lines.append(b"\r\n")
        if head.method == "HEAD" or answer.status in _WITHOUT_BODY:
            await self._write_piece(b"".join(lines))
            return
        pieces = answer.pieces(PIECE_BYTES)
        await self._write_piece(b"".join([*lines, next(pieces)]))
        for piece in pieces:
            await self._write_piece(piece)

    async def _write_piece(self, piece: bytes) -> None:
        """Write a part of a response, and wait for the client to read: large socket buffers cost memory."""
        view = memoryview(piece) if len(piece) > 2 * PIECE_BYTES else piece
        for at in range(0, len(piece), 2 * PIECE_BYTES):
            if self._lost:
                return
            self._transport.write(view[at : at + 2 * PIECE_BYTES])
            if self._writable is not None:
                await self._writable
            else:
                await self._turns.pause()

    async def _stream_chunks(self, head: RequestHead, answer: Stream) -> None:
        chunked = answer.length is None and not head.http_1_0  # HTTP/1.0 reads until the connection is closed
        lines = self._head_lines(head, answer)
        if answer.length is not None:
            lines.append(b"Content-Length: %d\r\n\r\n" % answer.length)
        else:
            lines.append(b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"\r\n")
        self._transport.write(b"".join(lines))
        if chunked and answer.forward is not None:
            answer.forward(self._forward)
        try:
            async for data in answer.chunks:
                if data:
                    for part in _framed(data) if chunked else (data,):
                        self._transport.write(part)
                if self._writable is not None:
                    await self._writable
        except asyncio.CancelledError:  # the client disconnected, or the server stops
            self._closing = True
            chunked = chunked and not answer.patient  # a watch may end at any time; a log or a file is incomplete
        if chunked and not self._lost:
            self._transport.write(LAST_CHUNK)

    def _forward(self, data: bytes) -> bool:
        """Write a chunk now, unless the client does not read or flows contend: then it waits for its turn."""
        if self._writable is not None or self._turns.contended:
            return False
        self._transport.write(chunk(data))
        return True


def _framed(data: bytes) -> tuple[bytes, ...]:
    """A chunk: short ones in one part, as each part is a write."""
    return (chunk(data),) if len(data) < _COPIED else chunk_parts(data)


def _accepts_gzip(head: RequestHead, answer: Response) -> bool:
    accepted = head.headers.get("accept-encoding")
    return (
        accepted is not None
        and any(word.strip() == "gzip" for word in accepted.split(","))
        and not any(name.lower() == "content-encoding" for name, _ in answer.headers)
    )


def _gzip(answer: Response) -> bytes:
    """Compress the body piece by piece, between which other threads run."""
    compressing = zlib.compressobj(1, zlib.DEFLATED, 31)
    return b"".join([*map(compressing.compress, answer.pieces(PIECE_BYTES)), compressing.flush()])
