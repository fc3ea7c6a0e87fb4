"""HttpTransport: bodies that come, or go, in pieces, on both event loops."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvloop
from aiohttp import web
from tests.unit.client.http.servers import Socket, get, listening, run, serving, transport
from tests.unit.client.http.test_proxy import PASSWORD, proxy

from ostinato.client.config.secret import Secret
from ostinato.client.http.response import HttpResponse
from ostinato.client.transport.protocol import ConnectionLost, Request

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def on_uvloop(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await main

    uvloop.run(bounded())


LOOPS = pytest.mark.parametrize("run_on", [run, on_uvloop])
RunOn = Callable[[Coroutine[Any, Any, None]], None]


@LOOPS
@pytest.mark.parametrize("plain", [True, False])
def test_a_server_waits_for_a_slow_reader_and_nothing_is_lost(run_on: RunOn, plain: bool) -> None:
    most, piece = 400, bytes(range(256)) * 512
    written = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal written
        stream = web.StreamResponse()
        await stream.prepare(request)
        for _ in range(most):
            await stream.write(piece)
            written += 1
        return stream

    async def until_stuck() -> None:
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.1)

    async def main() -> None:
        async with serving(answer, plain=plain) as served, transport(served.config()) as sender:
            response = await sender.request(Request("GET", "/", stream=True))
            chunks = response.chunks()
            first = await anext(chunks)
            await until_stuck()
            assert written < most
            assert response._reader.buffered < 1_000_000
            rest = [chunk async for chunk in chunks]
            assert b"".join([first, *rest]) == piece * most
            assert await get(sender) == piece * most
            assert len(served.connections) == 1

    run_on(main())


@LOOPS
def test_data_received_quickly_is_delivered_in_few_pieces(run_on: RunOn) -> None:
    async def converse(socket: Socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.write(CHUNKED + b"5\r\nline\n\r\n" * 1000 + b"0\r\n\r\n")
        await writer.drain()
        await reader.read()

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            response = await sender.request(Request("GET", "/", stream=True))
            chunks = [chunk async for chunk in response.chunks()]
            assert b"".join(chunks) == b"line\n" * 1000
            assert len(chunks) < 10

    run_on(main())


@LOOPS
def test_a_compressed_stream_is_decompressed_incrementally(run_on: RunOn) -> None:
    async def main() -> None:
        go_on = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            packer = zlib.compressobj(wbits=31)
            stream = web.StreamResponse(headers={"Content-Encoding": "gzip"})
            await stream.prepare(request)
            await stream.write(packer.compress(b"one\n") + packer.flush(zlib.Z_SYNC_FLUSH))
            await go_on.wait()
            await stream.write(packer.compress(b"two\n") + packer.flush())
            return stream

        async with serving(answer) as served, transport(served.config()) as sender:
            chunks = (await sender.request(Request("GET", "/", stream=True))).chunks()
            assert await anext(chunks) == b"one\n"
            go_on.set()
            assert [chunk async for chunk in chunks] == [b"two\n"]

    run_on(main())


@LOOPS
def test_a_response_without_a_length_ends_with_its_connection(run_on: RunOn) -> None:
    async def converse(socket: Socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhel")
        await writer.drain()
        await asyncio.sleep(0.01)
        writer.write(b"lo")

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            for stream in (True, False):
                assert await get(sender, stream=stream) == b"hello"
            assert socket.connections == 2

    run_on(main())


@LOOPS
def test_closing_a_stream_closes_its_connection(run_on: RunOn) -> None:
    async def converse(socket: Socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.write(CHUNKED + b"5\r\nbegun\r\n")
        await writer.drain()
        assert await reader.read() == b""
        left.set()

    left = asyncio.Event()

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            async with await sender.request(Request("GET", "/", stream=True)) as response:
                chunks = response.chunks()
                assert await anext(chunks) == b"begun"
                waiting = asyncio.ensure_future(anext(chunks))  # type: ignore[arg-type]
                await asyncio.sleep(0)
            with pytest.raises(ConnectionLost, match="while reading the response"):
                await waiting
            await left.wait()
            with pytest.raises(ConnectionLost, match="closed before its end"):
                await response.read()

    run_on(main())


def test_a_cancelled_read_closes_the_connection() -> None:
    async def main() -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            stream = web.StreamResponse()
            await stream.prepare(request)
            await stream.write(b"begun")
            if request.path == "/never":
                await asyncio.Event().wait()
            return stream

        async with serving(answer) as served, transport(served.config()) as sender:
            response = await sender.request(Request("GET", "/never"))
            reading = asyncio.ensure_future(response.read())
            await asyncio.sleep(0.01)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            pool = await sender._pools.current(None)
            assert pool.is_unused()
            assert await get(sender) == b"begun"
            assert len(served.connections) == 2

    run(main())


def test_an_unclosed_response_warns_and_releases_its_connection() -> None:
    async def main() -> None:
        async def answer(request: web.Request) -> web.StreamResponse:
            stream = web.StreamResponse()
            await stream.prepare(request)
            await asyncio.Event().wait()
            return stream

        async with serving(answer) as served, transport(served.config()) as sender:
            pool = await sender._pools.current(None)
            await sender.request(Request("GET", "/a"))
            await asyncio.sleep(0)
            assert pool.is_unused()
            asyncio.get_running_loop().set_debug(True)  # so it tells of threads that are not its own
            circle: list[object] = [await sender.request(Request("GET", "/a"))]
            circle.append(circle)
            del circle
            await asyncio.to_thread(gc.collect)
            await asyncio.sleep(0)
            assert pool.is_unused()
            left.append(await sender.request(Request("GET", "/a")))

    left: list[HttpResponse] = []

    def outlive_the_loop() -> None:
        run(main())
        left.clear()

    with pytest.warns(ResourceWarning, match="response to GET 127.0.0.1:[0-9]+/a was never closed") as warnings:
        outlive_the_loop()
    assert len([each for each in warnings if each.category is ResourceWarning]) == 3


@LOOPS
def test_a_server_that_has_heard_enough_is_sent_no_more(run_on: RunOn) -> None:
    async def converse(socket: Socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch")
        await writer.drain()
        await (asyncio.sleep(5) if b"/deaf" in socket.requests[-1] else reader.read())

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"more"
            await asyncio.sleep(0)

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            for path in ("/", "/deaf"):
                for body in (endless(), bytes(50_000_000)):
                    async with asyncio.timeout(4):
                        response = await sender.request(Request("PUT", path, body=body))
                    assert (response.status, await response.read()) == (413, b"much")
            assert socket.connections == 4

    run_on(main())


def test_a_body_that_fails_ends_its_request_and_connection() -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"begun"
        raise ValueError("no more")

    async def main() -> None:
        async with serving() as served, transport(served.config()) as sender:
            with pytest.raises(ValueError, match="no more"):
                await sender.request(Request("PUT", "/", body=broken()))
            pool = await sender._pools.current(None)
            assert pool.is_unused()
            assert pool._idle == []
            assert await get(sender) == b"hello"

    run(main())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_tunnel_can_be_had_on_uvloop(scheme: str) -> None:
    async def main() -> None:
        async with listening(proxy) as socket, serving(plain=scheme == "http") as served:
            through = Secret(f"http://u:{PASSWORD}@127.0.0.1:{socket.port}")
            async with transport(served.config(proxy=through)) as sender:
                assert [await get(sender), await get(sender)] == [b"hello"] * 2
            assert socket.connections == 1

    on_uvloop(main())


def test_an_operator_does_not_load_aiohttp() -> None:
    code = (
        "import asyncio, sys\n"
        "from ostinato import Manager, controller\n"
        "from ostinato.client import Config\n"
        "from ostinato.client.http.transport import HttpTransport\n"
        "from ostinato.client.transport.protocol import Request, TransportError\n"
        "from ostinato.world import World\n"
        "async def main():\n"
        "    sender = HttpTransport(Config(server='http://127.0.0.1:1'), World.real())\n"
        "    try:\n"
        "        await sender.request(Request('GET', '/'))\n"
        "    except TransportError:\n"
        "        await sender.close()\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name in ('aiohttp', 'multidict', 'yarl')])\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
