"""Responses on a `ByteStream`, which is read on demand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from ostinato.http.byte_stream import ByteStream
from ostinato.http.response import ResponseParser

_PIECE: Final = 1 << 16  # bytes


async def read_response(
    stream: ByteStream, *, bodiless: bool = False, accepts_upgrade: bool = False, lenient_line_ends: bool = False
) -> ResponseParser:
    """Read the head of a response. Parameters: see `ResponseParser`.

    - Raises OSError if the connection fails: `InvalidHttp`, or "EOF" if it is closed without a response.
    - After an upgrade, data of the other protocol can be read from the stream.
    """
    response = ResponseParser(bodiless=bodiless, accepts_upgrade=accepts_upgrade, lenient_line_ends=lenient_line_ends)
    begun = False
    while not response.status:
        data = await stream.read(_PIECE)
        if not data:
            raise ConnectionError("unexpected EOF" if begun else "EOF")
        begun = True
        response.feed(data)
    if response.status < 200:
        stream.unread(response.rest)
    return response


async def read_body(stream: ByteStream, response: ResponseParser) -> AsyncIterator[bytes]:
    """Read the body of a response in pieces. Raises OSError if the connection fails before its end."""
    while True:
        if response.buffered:
            yield response.take()
        if response.complete:
            return
        if data := await stream.read(_PIECE):
            response.feed(data)
        else:
            response.end()
            if not response.complete:
                raise ConnectionError("unexpected EOF")
