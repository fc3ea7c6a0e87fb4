"""Client-side TLS over an existing connection.

The event loop has TLS of its own; but when its reader is slow and the other side closes, what has come and is not read
yet is lost. Here nothing is: a connection is read only when somebody wants more, to its very end.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any, Final, Self

from ostinato.http.byte_stream import LONGEST_LINE

_PIECE: Final = 1 << 16  # bytes that are read from the connection at a time


class TlsStream:
    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext, name: str = ""
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name or None)
        self._buffer = b""  # decrypted, and not taken yet

    @classmethod
    async def to(cls, host: str, port: int, context: ssl.SSLContext, name: str = "") -> Self:
        """Connect; an OSError, of which SSLError is one, if that cannot be. `name`: which of its names is asked for."""
        stream = cls(*await asyncio.open_connection(host, port), context, name)
        try:
            await stream._handshake()
        except BaseException:
            stream.close()
            raise
        return stream

    @property
    def certificate(self) -> dict[str, Any]:
        """That of the other side, read; empty if it is not verified."""
        return self._tls.getpeercert() or {}

    @property
    def shown_certificate(self) -> bytes:
        """That of the other side, as it was shown: DER."""
        return self._tls.getpeercert(binary_form=True) or b""

    @property
    def ends(self) -> str:
        """Both addresses, as Go writes a connection."""
        ours, theirs = self._writer.get_extra_info("sockname"), self._writer.get_extra_info("peername")
        return f"{ours[0]}:{ours[1]}->{theirs[0]}:{theirs[1]}" if ours and theirs else ""

    def unread(self, data: bytes) -> None:
        """Let it be read again."""
        self._buffer = data + self._buffer

    async def read(self, size: int) -> bytes:
        """Up to so many bytes; b"" at the end."""
        data = self._buffer or await self._more()
        self._buffer = data[size:]
        return data[:size]

    async def read_exactly(self, size: int) -> bytes:
        """A ConnectionError if the end comes before."""
        data = b""
        while len(data) < size:
            piece = await self.read(size - len(data))
            if not piece:
                raise ConnectionError("unexpected EOF")
            data += piece
        return data

    async def read_until(self, mark: bytes) -> bytes:
        """Up to a mark and with it; a ConnectionError if it does not come soon enough."""
        data, self._buffer = self._buffer, b""
        while (at := data.find(mark)) < 0:
            piece = await self._more()
            if not piece:
                raise ConnectionError("unexpected EOF" if data else "EOF")
            data += piece
            if len(data) > LONGEST_LINE and data.find(mark) < 0:
                raise ConnectionError("a line is too long")
        end = at + len(mark)
        self._buffer = data[end:]
        return data[:end]

    async def write(self, data: bytes) -> None:
        """An OSError if nobody reads any more."""
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
                    raise ConnectionError("the connection was closed before it was secure") from None
            else:
                await self._flush()
                return

    async def _more(self) -> bytes:
        """What comes next; b"" at the end."""
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
            with contextlib.suppress(ConnectionResetError):  # reading tells how it ended
                await self._writer.drain()
