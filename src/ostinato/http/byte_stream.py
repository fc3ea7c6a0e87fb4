"""Connections to backends."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

LONGEST_LINE: Final = 1 << 16


class ByteStream(Protocol):
    """A connection that is read piece by piece: `PlainStream`, `TlsStream`."""

    async def read(self, size: int) -> bytes: ...
    async def read_exactly(self, size: int) -> bytes: ...
    async def read_until(self, mark: bytes) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class PlainStream:
    """A connection without TLS."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def to(cls, host: str, port: int) -> PlainStream:
        return cls(*await asyncio.open_connection(host, port, limit=LONGEST_LINE))

    async def read(self, size: int) -> bytes:
        return await self._reader.read(size)

    async def read_exactly(self, size: int) -> bytes:
        try:
            return await self._reader.readexactly(size)
        except asyncio.IncompleteReadError:
            raise ConnectionError("unexpected EOF") from None

    async def read_until(self, mark: bytes) -> bytes:
        try:
            return await self._reader.readuntil(mark)
        except asyncio.IncompleteReadError as error:
            raise ConnectionError("unexpected EOF" if error.partial else "EOF") from None
        except asyncio.LimitOverrunError:
            raise ConnectionError("a line is too long") from None

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()
