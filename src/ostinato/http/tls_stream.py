"""Byte stream with TLS, on the client's side.

asyncio's own TLS loses received data if it is read slowly and the server closes the connection. Here the connection is
read only on demand, and to its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any, Final, Self

_PIECE: Final = 1 << 16  # bytes that are read from the connection at a time


class TlsStream:
    """A connection with TLS. See `ByteStream`."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext, name: str = ""
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name or None)
        self._buffer = b""  # decrypted, not read yet

    @classmethod
    async def to(cls, host: str, port: int, context: ssl.SSLContext, name: str = "") -> Self:
        """Connect. Raises OSError, of which SSLError is one. `name`: the server name that is requested."""
        stream = cls(*await asyncio.open_connection(host, port), context, name)
        try:
            await stream._handshake()
        except BaseException:
            stream.close()
            raise
        return stream

    @property
    def certificate(self) -> dict[str, Any]:
        """The server's certificate, parsed; empty if it is not verified."""
        return self._tls.getpeercert() or {}

    @property
    def shown_certificate(self) -> bytes:
        """The server's certificate in DER, verified or not."""
        return self._tls.getpeercert(binary_form=True) or b""

    @property
    def ends(self) -> str:
        """Local and remote address, in Go's notation."""
        ours, theirs = self._writer.get_extra_info("sockname"), self._writer.get_extra_info("peername")
        return f"{ours[0]}:{ours[1]}->{theirs[0]}:{theirs[1]}" if ours and theirs else ""

    async def read(self, size: int) -> bytes:
        data = self._buffer or await self._more()
        self._buffer = data[size:]
        return data[:size]

    def unread(self, data: bytes) -> None:
        self._buffer = data + self._buffer

    async def write(self, data: bytes) -> None:
        self._tls.write(data)
        await self._flush()

    def close(self) -> None:
        self._writer.close()

    async def _handshake(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive():
                    raise ConnectionError("the connection was closed during the TLS handshake") from None
            else:
                await self._flush()
                return

    async def _more(self) -> bytes:
        """Wait for data; b"" at the end."""
        while True:
            try:
                return self._tls.read(_PIECE)
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive():
                    return b""
            except ssl.SSLZeroReturnError:
                return b""

    async def _receive(self) -> bool:
        data = await self._reader.read(_PIECE)
        self._incoming.write(data)
        return bool(data)

    async def _flush(self) -> None:
        if data := self._outgoing.read():
            self._writer.write(data)
            with contextlib.suppress(ConnectionResetError):  # the next read raises it
                await self._writer.drain()
