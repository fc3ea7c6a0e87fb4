"""Connections of a link: none is left open when it is closed."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Awaitable, Callable

import pytest

from ostinato.etcd.errors import Unavailable
from ostinato.etcd.link import Link
from ostinato.etcd.settings import EtcdSettings
from ostinato.grpc import Connection, frames, request_head
from ostinato.world import World


class Member:
    """An etcd member that greets, and notes which connections have ended."""

    def __init__(self) -> None:
        self.accepted = 0
        self.ended = asyncio.Semaphore(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        writer.write(frames.settings({}))
        while await reader.read(1 << 16):
            pass
        writer.close()
        self.ended.release()


def play(scene: Callable[[Link, Member], Awaitable[None]]) -> None:
    async def run() -> None:
        member, world = Member(), World.real()
        server = await asyncio.start_server(member.serve, "127.0.0.1", 0)
        endpoint = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        link = Link(EtcdSettings(endpoints=(endpoint,)), lambda: None, world, [endpoint])
        async with server, asyncio.timeout(10):
            await scene(link, member)
        world.executor.close()

    asyncio.run(run())


def test_a_connection_that_calls_still_use_is_closed_with_the_link() -> None:
    async def scene(link: Link, member: Member) -> None:
        connection = await link.connected()
        connection.stream("/a/B", request_head("/a/B", "localhost"), b"", is_last=False)
        link.leave(connection)
        assert not connection.has_ended
        assert await link.connected() is not connection
        await link.close()
        assert connection.has_ended
        for _ in range(2):
            await member.ended.acquire()
        assert member.accepted == 2

    play(scene)


def test_an_attempt_that_is_cancelled_with_the_servers_answer_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ready = Connection.ready

    async def cancelled(connection: Connection) -> None:
        await ready(connection)
        raise asyncio.CancelledError

    monkeypatch.setattr(Connection, "ready", cancelled)

    async def scene(link: Link, member: Member) -> None:
        with pytest.raises(asyncio.CancelledError):
            await link.connected()
        await member.ended.acquire()
        await link.close()

    play(scene)


@pytest.mark.parametrize(("tls", "explanation"), [(True, "may not use TLS"), (False, "may require TLS")])
def test_a_reset_before_the_first_answer_is_explained(tls: bool, explanation: str) -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def run() -> None:
        world = World.real()
        server = await asyncio.start_server(reset, "127.0.0.1", 0)
        endpoint = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = EtcdSettings(endpoints=(endpoint,), tls=tls)
        link = Link(settings, ssl.create_default_context if tls else lambda: None, world, [endpoint])
        async with server, asyncio.timeout(10):
            with pytest.raises(Unavailable, match=f"{endpoint}: .*{explanation}"):
                await link.connected()
            await link.close()
        world.executor.close()

    asyncio.run(run())
