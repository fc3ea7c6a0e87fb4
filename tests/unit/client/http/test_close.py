"""TLS takes leave with a farewell, and waits for the other side's. Closing a transport must not: its loop may end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from tests.unit.client.http.servers import run, serving, transport

from ostinato.client.http import dialer as http_dialer
from ostinato.client.http.transport import HttpTransport
from ostinato.client.transport.protocol import Request

PROTOCOLS = ("v5.channel.k8s.io",)


class Deaf:
    """A server that hears nothing more once it has been asked."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self._ends: list[asyncio.Transport] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        answer: web.StreamResponse | web.WebSocketResponse
        if "Upgrade" in request.headers:
            answer = web.WebSocketResponse(protocols=PROTOCOLS)
            await answer.prepare(request)
            await answer.send_bytes(b"begun")
            self._go_deaf(request)
            await answer.close()
            return answer
        self._go_deaf(request)
        if request.path == "/begun":
            answer = web.StreamResponse()
            await answer.prepare(request)
            await answer.write(b"begun")
        await asyncio.Event().wait()
        raise AssertionError

    def _go_deaf(self, request: web.Request) -> None:
        assert isinstance(request.transport, asyncio.Transport)
        request.transport.pause_reading()
        self._ends.append(request.transport)
        self.asked.set()

    def leave(self) -> None:
        for each in self._ends:
            each.abort()


async def while_a_stream_is_read(sender: HttpTransport, _server: Deaf) -> None:
    chunks = (await sender.request(Request("GET", "/begun", stream=True))).chunks()
    assert await anext(chunks) == b"begun"


async def after_a_request_was_given_up(sender: HttpTransport, server: Deaf) -> None:
    waiting = asyncio.ensure_future(sender.request(Request("GET", "/never")))
    await server.asked.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def after_a_write_was_given_up(sender: HttpTransport, server: Deaf) -> None:
    waiting = asyncio.ensure_future(sender.request(Request("POST", "/never", body=b"{}")))
    await server.asked.wait()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)


async def after_a_websocket(sender: HttpTransport, _server: Deaf) -> None:
    connected = await sender.websocket(Request("GET", "/exec"), PROTOCOLS)
    assert await connected.receive() == b"begun"
    assert await connected.receive() is None
    await connected.close()


async def with_a_retired_pool(sender: HttpTransport, server: Deaf) -> None:
    await while_a_stream_is_read(sender, server)
    pool = sender._pools._pool
    assert pool is not None
    pool.retire()


@pytest.mark.parametrize(
    "when",
    [
        while_a_stream_is_read,
        after_a_request_was_given_up,
        after_a_write_was_given_up,
        after_a_websocket,
        with_a_retired_pool,
    ],
)
def test_closing_leaves_no_connection_open_although_the_server_does_not_read(
    when: Callable[[HttpTransport, Deaf], Awaitable[None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []
    make = http_dialer.keepalive_socket

    def noted(address: tuple[Any, ...]) -> socket.socket:
        made.append(make(address))
        return made[-1]

    monkeypatch.setattr(http_dialer, "keepalive_socket", noted)

    async def main() -> None:
        server = Deaf()
        async with serving(server) as served, transport(served.config()) as sender:
            await when(sender, server)
            await sender.close()
            await asyncio.sleep(0)
            assert [each.fileno() for each in made] == [-1]
            server.leave()

    run(main())
