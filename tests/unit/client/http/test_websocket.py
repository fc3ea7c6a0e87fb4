"""HttpTransport: WebSockets."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web
from tests.unit.client.http.servers import Socket as Listener
from tests.unit.client.http.servers import listening, run, serving, transport, written

from ostinato.client.config.secret import Secret
from ostinato.client.transport.protocol import ConnectionLost, Request, RequestTimedOut, TransportError, UpgradeRefused
from ostinato.http.websocket import BINARY, PING, close, frame, handshake

PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io"]
EXEC = Request("GET", "/api/v1/namespaces/a/pods/b/exec", [("command", "sh"), ("command", "-c")])


async def echo(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
    await socket.prepare(request)
    async for message in socket:
        if message.type == WSMsgType.BINARY:
            if message.data == b"text":
                await socket.send_str("ü")
            elif message.data == b"bye":
                await socket.close()
            elif message.data == b"crash":
                assert request.transport is not None
                request.transport.abort()
            elif message.data == b"large":
                await socket.send_bytes(bytes(5_000_000))
            else:
                await socket.send_bytes(message.data)
    return socket


def test_messages_go_both_ways_over_a_protocol_that_both_know() -> None:
    async def main() -> None:
        async with serving(echo) as served, transport(served.config(token=Secret("t"))) as sender:
            socket = await sender.websocket(EXEC, PROTOCOLS)
            assert socket.protocol == "v4.channel.k8s.io"
            await socket.send(b"\x00hello")
            assert await socket.receive() == b"\x00hello"
            await socket.send(b"text")
            assert await socket.receive() == "ü".encode()
            await socket.send(b"bye")
            assert await socket.receive() is None
            await socket.close()
            await socket.close()
            seen = served.requests[0]
            assert seen.path_qs == "/api/v1/namespaces/a/pods/b/exec?command=sh&command=-c"
            assert seen.headers["Authorization"] == "Bearer t"
            assert seen.headers["Sec-WebSocket-Protocol"] == "v5.channel.k8s.io,v4.channel.k8s.io"

    run(main())


def test_a_lost_connection_is_distinguished_from_a_close_frame() -> None:
    async def main() -> None:
        async with serving(echo) as served, transport(served.config()) as sender:
            socket = await sender.websocket(EXEC, PROTOCOLS)
            await socket.send(b"crash")
            with pytest.raises(ConnectionLost, match=r"the WebSocket failed|the connection of the WebSocket was lost"):
                await socket.receive()
            with pytest.raises(ConnectionLost, match="the WebSocket is closed"):
                await socket.send(b"more")

    run(main())


def test_a_message_that_is_too_large_is_an_error() -> None:
    async def main() -> None:
        async with serving(echo) as served, transport(served.config()) as sender:
            socket = await sender.websocket(EXEC, PROTOCOLS)
            await socket.send(b"large")
            with pytest.raises(ConnectionLost):
                await socket.receive()

    run(main())


def test_a_rejected_upgrade_has_the_body_of_the_response() -> None:
    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "reason": "Forbidden"}, status=403)

    async def main() -> None:
        async with serving(answer) as served, transport(served.config()) as sender:
            with pytest.raises(UpgradeRefused, match="/exec: WebSocket upgrade rejected with status 403") as caught:
                await sender.websocket(EXEC, PROTOCOLS)
            assert caught.value.status == 403
            assert caught.value.headers["content-type"].startswith("application/json")
            assert b'"Forbidden"' in caught.value.body

    run(main())


def test_a_401_is_tried_once_more_with_a_token_that_has_changed(tmp_path: Path) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] != "Bearer good":
            return web.Response(status=401)
        return await echo(request)

    async def main() -> None:
        token = written(tmp_path, "token", b"old")
        async with serving(answer) as served, transport(served.config(token_file=token)) as sender:
            with pytest.raises(UpgradeRefused):
                await sender.websocket(EXEC, PROTOCOLS)
            assert len(served.requests) == 1
            written(tmp_path, "token", b"good")
            await (await sender.websocket(EXEC, PROTOCOLS)).close()
            assert len(served.requests) == 3

    run(main())


def test_an_invalid_websocket_handshake_is_an_error() -> None:
    async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        writer.write(b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n")
        await writer.drain()
        await reader.read()

    async def silent(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await socket.head(reader)
        await reader.read()

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            with pytest.raises(TransportError, match=r"the response is not valid HTTP|WebSocket upgrade rejected"):
                await sender.websocket(EXEC, PROTOCOLS)
        async with listening(silent) as socket, transport(socket.config(timeout=0.1)) as sender:
            with pytest.raises(RequestTimedOut):
                await sender.websocket(EXEC, PROTOCOLS)
        async with transport(socket.config(server="http://127.0.0.1:1")) as sender:
            with pytest.raises(ConnectionLost, match="cannot be reached"):
                await sender.websocket(EXEC, PROTOCOLS)

    run(main())


def test_closing_the_transport_ends_a_pending_receive() -> None:
    async def main() -> None:
        async with serving(echo) as served, transport(served.config()) as sender:
            socket = await sender.websocket(EXEC, PROTOCOLS)
            waiting = asyncio.ensure_future(socket.receive())
            await socket.send(b"hello")
            assert await waiting == b"hello"
            waiting = asyncio.ensure_future(socket.receive())
            await asyncio.sleep(0)
            await sender.close()
            with pytest.raises(ConnectionLost):
                await waiting

    run(main())


def test_frames_that_follow_the_handshake_immediately_are_received() -> None:
    async def converse(socket: Listener, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await socket.head(reader)
        key = re.search(rb"(?i)sec-websocket-key: (.*)\r\n", head)
        assert key is not None
        writer.write(handshake(key[1].decode(), "v5.channel.k8s.io") + frame(BINARY, b"one"))
        writer.write(frame(PING, b"p") + frame(BINARY, b"two") + close(1000))
        await reader.read()

    async def main() -> None:
        async with listening(converse) as socket, transport(socket.config()) as sender:
            opened = await sender.websocket(EXEC, PROTOCOLS)
            assert [await opened.receive() for _ in range(3)] == [b"one", b"two", None]
            with pytest.raises(ConnectionLost, match="the WebSocket is closed"):
                await opened.send(b"more")
            await opened.close()

    run(main())


def test_messages_that_are_not_received_pause_the_server() -> None:
    async def flood(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        socket = web.WebSocketResponse(protocols=PROTOCOLS)
        await socket.prepare(request)
        for _ in range(200):
            await socket.send_bytes(bytes(1 << 18))
            sent += 1
        await socket.close()
        return socket

    sent = 0

    async def main() -> None:
        async with serving(flood) as served, transport(served.config()) as sender:
            socket = await sender.websocket(EXEC, PROTOCOLS)
            before = -1
            while before != sent:
                before = sent
                await asyncio.sleep(0.1)
            assert sent < 100
            received = 0
            while (message := await socket.receive()) is not None:
                received += len(message)
            assert received == 200 << 18
            await socket.close()

    run(main())
