"""The small HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from ostinato.http import server as http
from ostinato.http.response import ResponseParser
from ostinato.http.server import BodyTooLarge, HttpRequest, HttpResponse, SmallHttpServer
from ostinato.world import World

CLOCK = World.real().clock


async def echo(request: HttpRequest) -> HttpResponse:
    if request.path == "/crash":
        raise RuntimeError("crashed")
    try:
        body = await request.read(1_000_000)
    except BodyTooLarge:
        return HttpResponse(413, b"too large")
    query = "".join(f"{name}={','.join(values)};" for name, values in request.query.items())
    return HttpResponse(200, f"{request.method} {request.path} {query}".encode() + body, headers=[("X", "1")])


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self._rest = b""

    async def receive(self, *, bodiless: bool = False) -> ResponseParser:
        response = ResponseParser(bodiless=bodiless)
        while not response.complete:
            data, self._rest = self._rest or await self.reader.read(1 << 16), b""
            if not data:
                response.end()
                assert response.complete
                break
            response.feed(data)
        self._rest = response.rest
        return response

    async def exchange(self, data: bytes) -> tuple[int, bytes]:
        self.writer.write(data)
        response = await self.receive()
        return response.status, response.take()

    async def is_closed(self) -> bool:
        async with asyncio.timeout(10):
            return not self._rest and await self.reader.read(1) == b""


Connect = Callable[[], Awaitable[Peer]]


@asynccontextmanager
async def serving(handler: http.Handler = echo) -> AsyncIterator[tuple[Connect, SmallHttpServer]]:
    server = SmallHttpServer(handler, CLOCK)
    await server.start("127.0.0.1", 0)
    peers: list[Peer] = []

    async def connect() -> Peer:
        peers.append(Peer(*await asyncio.open_connection(*server.address)))
        return peers[-1]

    try:
        async with asyncio.timeout(30):
            yield connect, server
    finally:
        await server.stop(1)
        for peer in peers:
            peer.writer.close()


def run(main: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(main())  # type: ignore[arg-type]


def test_requests_of_a_connection_are_handled_in_order_at_any_split() -> None:
    first = b"POST /a%20b?c=d HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    second = b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"

    async def main() -> None:
        async with serving() as (connect, _):
            for size in (1, 7, 1000):
                peer, data = await connect(), first + second + first
                for at in range(0, len(data), size):
                    peer.writer.write(data[at : at + size])
                    await peer.writer.drain()
                bodies = [(await peer.receive()).take() for _ in range(3)]
                assert bodies == [b"POST /a b c=d;hello", b"PUT /x abc", b"POST /a b c=d;hello"]

    run(main)


def test_a_response_has_its_headers_and_head_has_no_body() -> None:
    async def main() -> None:
        async with serving() as (connect, _):
            peer = await connect()
            peer.writer.write(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
            response = await peer.receive(bodiless=True)
            assert (response.status, response.headers["x"], response.headers["content-length"]) == (200, "1", "7")
            assert "date" in response.headers
            assert await peer.exchange(b"GET / HTTP/1.0\r\n\r\n") == (200, b"GET / ")
            assert await peer.is_closed()

    run(main)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 200_000, 431),
        (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    ],
)
def test_invalid_requests_are_rejected_and_the_connection_is_closed(
    data: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_LINGER_TIMEOUT", 0.1)

    async def main() -> None:
        async with serving() as (connect, _):
            peer = await connect()
            peer.writer.write(data)
            received = await peer.reader.read(100)
            assert received.startswith(b"HTTP/1.1 %d " % status)

    run(main)


def test_a_body_that_is_too_large_is_not_read_but_its_response_is_received() -> None:
    async def main() -> None:
        async with serving() as (connect, _):
            peer = await connect()
            peer.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\n" + bytes(500_000))
            assert (await peer.receive()).status == 413
            peer = await connect()
            peer.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            peer.writer.write((b"10000\r\n" + bytes(65536) + b"\r\n") * 20)
            assert (await peer.receive()).status == 413

    run(main)


def test_100_continue_is_sent_when_the_body_is_read() -> None:
    async def main() -> None:
        async with serving() as (connect, _):
            peer = await connect()
            peer.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            assert await peer.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            assert await peer.exchange(b"ok") == (200, b"POST / ok")

    run(main)


def test_a_failed_handler_is_logged_and_the_connection_reused(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with serving() as (connect, _):
            peer = await connect()
            assert await peer.exchange(b"GET /crash HTTP/1.1\r\nHost: a\r\n\r\n") == (
                500,
                b"internal error; see the log\n",
            )
            assert (await peer.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"))[0] == 200

    with caplog.at_level(logging.ERROR):
        run(main)
    assert "request failed method=GET path=/crash" in caplog.text


def test_data_ahead_of_the_handler_is_bounded() -> None:
    release = asyncio.Event()

    async def slow(request: HttpRequest) -> HttpResponse:
        await release.wait()
        return HttpResponse(200, str(len(await request.read(50_000_000))).encode())

    async def main() -> None:
        async with serving(slow) as (connect, server):
            peer, size = await connect(), 30_000_000
            peer.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size + bytes(size))
            await asyncio.sleep(0.2)
            (connection,) = server._connections
            assert connection._body is not None
            assert connection._body.size < 1_000_000
            release.set()
            response = await peer.receive()
            assert response.take() == str(size).encode()

    run(main)


def test_connections_that_send_nothing_or_half_a_request_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_IDLE_TIMEOUT", "_HEAD_TIMEOUT", "_BODY_TIMEOUT"):
        monkeypatch.setattr(http, name, 0.1)

    async def main() -> None:
        async with serving() as (connect, _):
            for data in (b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab"):
                peer = await connect()
                peer.writer.write(data)
                assert await peer.is_closed()

    run(main)


def test_stopping_closes_idle_connections_and_completes_running_requests() -> None:
    begun, release = asyncio.Event(), asyncio.Event()

    async def slow(_request: HttpRequest) -> HttpResponse:
        begun.set()
        await release.wait()
        return HttpResponse(200, b"done")

    async def main() -> None:
        async with serving(slow) as (connect, server):
            idle, busy = await connect(), await connect()
            busy.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await begun.wait()
            stopping = asyncio.ensure_future(server.stop(20))
            assert await idle.is_closed()
            with pytest.raises(ConnectionError):
                await connect()
            release.set()
            response = await busy.receive()
            assert (response.take(), response.keep_alive) == (b"done", False)
            await stopping

    run(main)


def test_stopping_cancels_requests_that_take_too_long() -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(_request: HttpRequest) -> HttpResponse:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    async def main() -> None:
        async with serving(endless) as (connect, server):
            peer = await connect()
            peer.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await begun.wait()
            await server.stop(0.05)
            await cancelled.wait()

    run(main)


def test_a_stream_is_sent_as_it_is_generated_and_ends_with_its_client() -> None:
    async def test() -> None:
        ended = asyncio.Event()
        more = asyncio.Event()

        async def chunks() -> AsyncGenerator[bytes, None]:
            try:
                yield b"one\n"
                await more.wait()
                yield b"two\n"
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def handler(_: HttpRequest) -> http.Answer:
            return http.HttpStream(chunks(), content_type="text/event-stream")

        async with serving(handler) as (connect, _):
            peer = await connect()
            peer.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"Content-Type: text/event-stream" in await peer.reader.readuntil(b"\r\n\r\n")
            assert await peer.reader.readline() == b"one\n"
            more.set()
            assert await peer.reader.readline() == b"two\n"
            assert not ended.is_set()
            peer.writer.close()
            await ended.wait()

    asyncio.run(test())


def test_streams_end_when_the_server_stops() -> None:
    async def test() -> None:
        ended = asyncio.Event()

        async def chunks() -> AsyncGenerator[bytes, None]:
            try:
                yield b"one\n"
                await asyncio.Event().wait()
            finally:
                ended.set()

        async def handler(_: HttpRequest) -> http.Answer:
            return http.HttpStream(chunks())

        async with serving(handler) as (connect, server):
            peer = await connect()
            peer.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            await peer.reader.readuntil(b"one\n")
            await server.stop(10)
            assert ended.is_set()
            assert await peer.reader.read() == b""

    asyncio.run(test())


def test_an_upgrade_takes_over_the_connection() -> None:
    async def test() -> None:
        async def run(connection: http.Duplex) -> None:
            while data := await connection.read():
                await connection.write(data.upper())

        async def handler(_: HttpRequest) -> http.Answer:
            return http.HttpUpgrade(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", run)

        async with serving(handler) as (connect, _):
            peer = await connect()
            peer.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: y\r\n\r\nfirst ")
            assert await peer.reader.readuntil(b"FIRST ") == b"HTTP/1.1 101 Switching Protocols\r\n\r\nFIRST "
            peer.writer.write(b"second")
            assert await peer.reader.readexactly(6) == b"SECOND"
            peer.writer.write_eof()
            assert await peer.reader.read() == b""

    asyncio.run(test())


def test_connections_above_the_limit_are_closed() -> None:
    async def test() -> None:
        server = SmallHttpServer(echo, CLOCK, max_connections=1)
        await server.start("127.0.0.1", 0)
        try:
            _, first = await asyncio.open_connection(*server.address)
            await asyncio.sleep(0)
            reader, second = await asyncio.open_connection(*server.address)
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            first.close()
            second.close()
        finally:
            await server.stop(1)

    asyncio.run(test())
