"""Byte streams: client connections that are read on demand."""

from __future__ import annotations

import asyncio
from typing import Protocol, Self


class ByteStream(Protocol):
    """A connection: `PlainStream` or `TlsStream`."""

    async def read(self, size: int) -> bytes:
        """Wait for data, and return up to `size` bytes; b"" at the end."""

    def unread(self, data: bytes) -> None:
        """Return data to the stream, to be read again."""

    async def write(self, data: bytes) -> None:
        """Send data, and wait for room in the buffer. Raises OSError if the connection is lost."""

    def close(self) -> None:
        """Close the connection."""


class PlainStream:
    """A connection without TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._buffer = b""  # to be read again

    @classmethod
    async def to(cls, host: str, port: int) -> Self:
        """Connect. Raises OSError."""
        return cls(*await asyncio.open_connection(host, port))

    async def read(self, size: int) -> bytes:
        if not self._buffer:
            return await self._reader.read(size)
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def unread(self, data: bytes) -> None:
        self._buffer = data + self._buffer

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()
