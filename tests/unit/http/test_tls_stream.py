"""TLS over a plain connection."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from ostinato.http.tls_stream import TlsStream
from ostinato.server.access.authority import Authority
from ostinato.world import World

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def _play(directory: Path, answer: Answer, play: Callable[[int, ssl.SSLContext], Awaitable[None]]) -> None:
    async def main() -> None:
        authority = Authority(World.real(), directory)
        pair = authority.server("server", ["localhost"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair.certificate, pair.key)
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        async with asyncio.timeout(30), server:
            await play(server.sockets[0].getsockname()[1], trusting)

    asyncio.run(main())


def test_data_sent_before_the_close_can_be_read_later(tmp_path: Path) -> None:
    closed = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(2)
        writer.write(b"x" * 100_000 + b"\r\n" + b"y" * 1000)
        writer.close()
        closed.set()

    async def play(port: int, context: ssl.SSLContext) -> None:
        stream = await TlsStream.to("127.0.0.1", port, context)
        await stream.write(b"go")
        await closed.wait()
        rest = b""
        while piece := await stream.read(300):
            assert len(piece) <= 300
            rest += piece
        assert rest == b"x" * 100_000 + b"\r\n" + b"y" * 1000
        stream.unread(b"again")
        assert await stream.read(2) + await stream.read(10) == b"again"
        assert await stream.read(1) == b""
        stream.close()

    _play(tmp_path, answer, play)


def test_a_server_that_speaks_no_tls_is_an_error(tmp_path: Path) -> None:
    async def play(_: int, context: ssl.SSLContext) -> None:
        async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(10)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(babble, "127.0.0.1", 0) as server:
            with pytest.raises(OSError):  # noqa: PT011 - the words are OpenSSL's
                await TlsStream.to("127.0.0.1", server.sockets[0].getsockname()[1], context)

    async def nobody(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    _play(tmp_path, nobody, play)
