"""HTTP response of the transport protocol. Holds its connection exclusively until it is closed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Final, Protocol
from warnings import warn

from ostinato.client.http.connection import BodyTooLarge, Connection, ConnectionClosed
from ostinato.client.http.errors import failure
from ostinato.client.http.metrics import HttpMetrics
from ostinato.client.transport.closable import Closable
from ostinato.client.transport.metrics import RESPONSE_SIZE
from ostinato.client.transport.protocol import ConnectionLost, Request, ResponseTooLarge, TransportError
from ostinato.client.transport.warning import warning_texts
from ostinato.http.decompression import Decompressor
from ostinato.http.errors import InvalidHttp
from ostinato.world import Clock

_DRAINED: Final = 2048  # bytes of an unwanted response that are read so that its connection can be reused


class ConnectionOwner(Protocol):
    """The pool that a response returns its connection to."""

    clock: Clock
    metrics: HttpMetrics
    max_response_bytes: int  # bytes that `read` collects

    def what(self, request: Request) -> str:
        """Return method, host and path of a request, without its query, for messages."""

    def release(self, connection: Connection, request: Request) -> None:
        """Take a connection back; it is reused only if the response is complete."""

    def abandon(self, connection: Connection, request: Request) -> None:
        """Take a connection back from any thread, or after the end of the event loop."""


class HttpResponse(Closable):
    """Implementation of `Response`."""

    __slots__ = ("_compressed", "_connection", "_owner", "_reader", "_request", "_size", "_until", "status")

    def __init__(
        self,
        owner: ConnectionOwner,
        connection: Connection,
        request: Request,
        until: float | None,
        *,
        compressed: bool,
    ) -> None:
        """`until`: the time on the clock by which the body must have been read; None is no limit."""
        self._owner = owner
        self._request = request
        self._until = until
        self._connection: Connection | None = connection
        self._reader = connection.reader
        self._size = 0  # of the chunks so far
        self.status = self._reader.status
        self._compressed = compressed
        if self._reader.complete:
            self.close()  # free the connection; the buffered body can still be read

    def __del__(self) -> None:
        if self._connection is not None:  # or the connection would be lost to the pool
            self._owner.abandon(self._connection, self._request)
            what = self._owner.what(self._request)
            warn(f"response to {what} was never closed", ResourceWarning, stacklevel=2, source=self)

    @property
    def headers(self) -> Mapping[str, str]:
        return self._reader.headers

    @property
    def warnings(self) -> Sequence[str]:
        return warning_texts(self._reader.values("warning")) if "warning" in self._reader.headers else ()

    async def read(self) -> bytes:
        reader, longest = self._reader, self._owner.max_response_bytes
        try:
            if self._compressed:
                return await self._read_compressed(longest)
            body = reader.take() if reader.complete and reader.buffered <= longest else await self._raw(longest)
            self._owner.metrics.observe(RESPONSE_SIZE, len(body), self._request.method)
        except BodyTooLarge:
            what = self._owner.what(self._request)
            raise ResponseTooLarge(f"{what}: response larger than {longest} bytes; request it in pages") from None
        finally:
            self.close()
        return body

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        decompressor = Decompressor() if self._compressed else None
        try:
            while raw := await self._raw():
                for chunk in (raw,) if decompressor is None else decompressor.pieces(raw):
                    self._size += len(chunk)
                    yield chunk
            if decompressor is not None:
                decompressor.end()
            self._owner.metrics.observe(RESPONSE_SIZE, self._size, self._request.method)
        except InvalidHttp as error:
            raise self._failure(error) from None
        finally:
            self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._owner.release(connection, self._request)

    async def drain(self) -> None:
        """Read the rest of a short response so that the connection can be reused; close it otherwise."""
        if self._reader.complete or (self._reader.length or _DRAINED) <= _DRAINED:
            with contextlib.suppress(TransportError):
                async with contextlib.aclosing(self.chunks()) as chunks:
                    async for _ in chunks:
                        if self._size > _DRAINED:
                            break
        self.close()

    async def _read_compressed(self, longest: int) -> bytes:
        parts: list[bytes] = []
        async with contextlib.aclosing(self.chunks()) as chunks:
            async for chunk in chunks:
                parts.append(chunk)
                if self._size > longest:
                    raise BodyTooLarge
        return b"".join(parts)

    async def _raw(self, longest: int | None = None) -> bytes:
        """Wait for more of the body without decompression, b"" at its end; with `longest`, for all of it."""
        reader, connection = self._reader, self._connection
        if reader.complete or connection is None:
            if not reader.complete:
                raise ConnectionLost(f"{self._owner.what(self._request)}: the response was closed before its end")
            if longest is not None and reader.buffered > longest:
                raise BodyTooLarge
            return reader.take()
        try:
            awaited = connection.more() if longest is None else connection.all(longest)
            if self._until is None:
                return await awaited
            async with self._owner.clock.deadline(self._until):
                return await awaited
        except (InvalidHttp, ConnectionClosed, OSError, TimeoutError) as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> TransportError:
        return failure(error, self._owner.what(self._request), "while reading the response")
