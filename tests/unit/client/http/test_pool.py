"""Connections: shared, kept, given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop
from aiohttp import web
from tests.unit.client.clocks import ShiftedClock, world_with
from tests.unit.client.http.servers import Socket, hello, listening, run, serving, transport

from ostinato.client.config.secret import Secret
from ostinato.client.http import pool as http_pool
from ostinato.client.http.pool import HttpPool
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import ConnectionLost, Request, RequestTimedOut, ResponseTooLarge, Unreachable
from ostinato.world import World

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


async def post(sender: HttpTransport, path: str = "/") -> bytes:
    response = await sender.request(Request("POST", path, body=b"x"))
    assert response.status == 200, response.status
    return await response.read()


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST", "PUT", "PATCH", "HEAD"])
def test_every_method_keeps_its_connection(method: str) -> None:
    async def main() -> None:
        async with serving() as served, transport(served.config()) as sender:
            for body in (b"", b"x"):
                response = await sender.request(Request(method, "/", body=body))
                expected = b"" if method == "HEAD" else b"hello"
                assert b"".join([chunk async for chunk in response.chunks()]) == expected
            assert len(served.connections) == 1
            assert served.bodies == [b"", b"x"]
            assert served.headers["Host"] == served.url.removeprefix("https://")

    run(main())


def test_a_bounded_number_of_connections_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_pool, "MAX_CONNECTIONS", 2)

    async def main() -> None:
        async with serving() as served, transport(served.config()) as sender:
            assert await asyncio.gather(*[post(sender) for _ in range(20)]) == [b"hello"] * 20
            assert len(served.connections) == 2

    run(main())


@pytest.mark.parametrize("farewell", [b"", b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n"])
def test_a_connection_that_the_server_has_left_is_not_used_again(farewell: bytes) -> None:
    async def converse(socket: Socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        await reader.readexactly(1)
        writer.write(OK)
        await go_on.wait()
        writer.write(farewell)

    go_on = asyncio.Event()

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            assert await post(sender) == b"hello"
            go_on.set()
            pool = await sender._pools.current(None)
            await until_left(pool)
            assert await post(sender) == b"hello"
            assert socket.connections == 2

    run(main())


async def until_left(pool: HttpPool) -> None:
    """Return when no connection that is kept is open."""
    while any(connection.is_open for connection in pool._idle):  # noqa: ASYNC110 - a socket is out there
        await asyncio.sleep(0.001)


def test_the_connection_of_a_cancelled_request_is_not_reused() -> None:
    async def slow(request: web.Request) -> web.Response:
        if request.path == "/slow":
            begun.set()
            await asyncio.sleep(0.05)
            return web.Response(text="late")
        return await hello(request)

    begun = asyncio.Event()

    async def main() -> None:
        async with serving(slow) as served, transport(served.config()) as sender:
            waiting = asyncio.ensure_future(post(sender, "/slow"))
            await begun.wait()
            waiting.cancel()
            assert await post(sender) == b"hello"
            with pytest.raises(RequestTimedOut, match="no response within"):
                await sender.request(Request("POST", "/slow", body=b"x", timeout=0.01))
            assert await post(sender) == b"hello"
            assert len(served.connections) >= 3

    run(main())


def test_a_connection_is_kept_for_a_while_only() -> None:
    async def main() -> None:
        clock = ShiftedClock()
        async with serving() as served, transport(served.config(), world_with(clock)) as sender:
            await post(sender)
            clock.shift += 20
            await post(sender)
            assert len(served.connections) == 1
            clock.shift += 31
            await post(sender)
            assert len(served.connections) == 2

    run(main())


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_pool, "_IDLE", 0.05)

    async def main() -> None:
        async with serving() as served, transport(served.config()) as sender:
            await asyncio.gather(*[post(sender) for _ in range(3)])
            pool = await sender._pools.current(None)
            while pool._idle:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.005)
            assert await post(sender) == b"hello"

    run(main())


def test_the_read_timeout_ends_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_pool, "_READ_TIMEOUT", 0.3)

    async def converse(socket: Socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        for piece in (OK[:10], OK[10:20], OK[20:]) if b"/slowly" in socket.requests[-1] else ():
            await asyncio.sleep(0.12)
            writer.write(piece)
        await (asyncio.sleep(5) if b"/deaf" in socket.requests[-1] else reader.read())

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            assert await post(sender, "/slowly") == b"hello"
            for body in (b"x", bytes(50_000_000)):
                begun = asyncio.get_running_loop().time()
                with pytest.raises(RequestTimedOut, match="timed out while waiting for the response"):
                    await sender.request(Request("POST", "/deaf", body=body))
                assert asyncio.get_running_loop().time() - begun >= 0.3

    run(main())


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"", "closed the connection|broke"),
        (b"SSH-2.0-OpenSSH\r\n", "the response is not valid HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", "while reading the response"),
    ],
)
def test_an_invalid_or_truncated_response_is_an_error(sent: bytes, error: str) -> None:
    async def converse(socket: Socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        await reader.readexactly(1)
        writer.write(sent)

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            with pytest.raises(ConnectionLost, match=error) as raised:
                await post(sender)
            assert len(socket.requests) == 1
            assert not isinstance(raised.value, Unreachable), "it may have been done"

    run(main())


def test_a_response_above_the_limit_is_rejected() -> None:
    async def main() -> None:
        async with serving() as served, transport(served.config(), max_response_bytes=3) as sender:
            with pytest.raises(ResponseTooLarge, match="response larger than 3 bytes"):
                await post(sender)

    run(main())


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (Request("POST", "/", headers=[("X-A", "1\r\nX-B: 2")], body=b"x"), "a header contains a line break"),
        (Request("POST", "/", headers=[("X-A", "\udc80")], body=b"x"), "a header contains an unpaired surrogate"),
        (
            Request("POST", "/", headers=[("Content-Length ", "0")], body=b"x"),
            "'Content-Length ' is not a valid header name",
        ),
        (Request("POST", "/", headers=[("", "0")], body=b"x"), "'' is not a valid header name"),
        (Request("POST", "/a b", body=b"x"), "the path must be percent-encoded"),
        (Request("POST", "/\r\nX: y", body=b"x"), "the path must be percent-encoded"),
    ],
)
def test_header_and_path_injection_is_rejected(request_: Request, problem: str) -> None:
    async def main() -> None:
        async with serving() as served, transport(served.config(token=Secret("hidden"))) as sender:
            with pytest.raises(ValueError, match=problem) as raised:
                await sender.request(request_)
            assert "hidden" not in f"{raised.value!r}{raised.value.__context__!r}"
            assert served.requests == []

    run(main())


def test_an_unreachable_server_is_reported_with_request_and_host() -> None:
    async def main() -> None:
        async with listening(lambda *_: asyncio.sleep(0)) as socket:
            config = socket.config()
        async with transport(config) as sender:
            with pytest.raises(Unreachable, match=r"POST 127.0.0.1:[0-9]+/: the server cannot be reached"):
                await post(sender)

    run(main())


@pytest.mark.parametrize("run_on", [run, uvloop.run])
def test_closing_ends_a_connection_that_is_being_made(run_on: Callable[..., None]) -> None:
    async def silent(_socket: Socket, reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        begun.set()
        await reader.read()

    async def main() -> None:
        async with listening(silent) as socket:
            sender = HttpTransport(socket.config(server=f"https://127.0.0.1:{socket.port}"), World.real())
            request = asyncio.create_task(post(sender))
            await begun.wait()
            await sender.close()
            async with asyncio.timeout(5):
                with pytest.raises(ConnectionLost, match=r"POST .*: the transport is closed"):
                    await request

    begun = asyncio.Event()
    run_on(main())


def test_closing_does_not_wait_for_a_tls_shutdown() -> None:
    ends: list[asyncio.Transport] = []

    async def deaf(request: web.Request) -> web.Response:
        assert isinstance(request.transport, asyncio.Transport)
        ends.append(request.transport)
        asyncio.get_running_loop().call_later(0.05, request.transport.pause_reading)
        return web.Response(text="hello")

    async def main() -> None:
        async with serving(deaf) as served, transport(served.config()) as sender:
            await post(sender)
            await asyncio.sleep(0.1)
            pool = sender._pools._pool
            assert pool is not None
            [connection] = pool._idle
            assert connection.transport is not None
            socket = connection.transport.get_extra_info("socket")
            await sender.close()
            await asyncio.sleep(0)
            assert socket.fileno() == -1
            ends[0].abort()

    run(main())


def test_a_server_of_another_authority_is_not_believed() -> None:
    async def main() -> None:
        async with serving() as served, transport(served.config(tls={"ca_data": b""})) as sender:
            with pytest.raises(Unreachable, match="cannot verify the server's certificate"):
                await post(sender)
        async with serving(plain=True) as served:
            config = served.config(server=served.url.replace("http:", "https:"))
            async with transport(config) as sender:
                with pytest.raises(Unreachable, match="TLS handshake failed"):
                    await post(sender)

    run(main())
