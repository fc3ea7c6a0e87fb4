"""Answers of agents on other machines: HTTP/1.1, as far as a kubelet speaks it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Final, Protocol

import msgspec

_PIECE: Final = 1 << 16


class ByteStream(Protocol):
    """A connection that is read piece by piece; see `TlsStream`."""

    async def read(self, size: int) -> bytes: ...
    async def read_exactly(self, size: int) -> bytes: ...
    async def read_until(self, mark: bytes) -> bytes: ...
    async def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


class Head(msgspec.Struct, frozen=True):
    status: int
    headers: Mapping[str, str]  # names are lower case


async def read_head(stream: ByteStream) -> Head:
    """A ConnectionError if what comes is no head of an answer."""
    data = await stream.read_until(b"\r\n\r\n")
    first, *lines = data.decode("latin-1").rstrip("\r\n").split("\r\n")
    words = first.split(" ", 2)
    if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
        raise ConnectionError("the agent does not answer in HTTP")
    pairs = (line.partition(":") for line in lines)
    return Head(int(words[1]), {name.strip().lower(): value.strip() for name, _, value in pairs})


async def body_of(stream: ByteStream, head: Head) -> AsyncIterator[bytes]:
    """The body as it comes; a ConnectionError if it breaks off."""
    try:
        if head.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await stream.read_until(b"\r\n")).partition(b";")[0], 16):
                async for piece in _exactly(stream, size):
                    yield piece
                await stream.read_exactly(2)
        elif "content-length" in head.headers:
            async for piece in _exactly(stream, int(head.headers["content-length"])):
                yield piece
        else:
            while piece := await stream.read(_PIECE):
                yield piece
    except ValueError:
        raise ConnectionError("the agent does not answer in HTTP") from None


async def _exactly(stream: ByteStream, size: int) -> AsyncIterator[bytes]:
    while size > 0:
        piece = await stream.read(min(size, _PIECE))
        if not piece:
            raise ConnectionError("the answer of the agent breaks off")
        size -= len(piece)
        yield piece
