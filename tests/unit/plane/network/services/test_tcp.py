"""TCP relay on uvloop, with peers that go away at any moment."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from ostinato.plane.network.services.balancer import Balancer
from ostinato.plane.network.services.table import Backend, BackendSet
from ostinato.plane.network.services.tcp import ConnectionLimit, TcpListener
from ostinato.world import World

uvloop = pytest.importorskip("uvloop")
RESET = struct.pack("ii", 1, 0)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A backend that ends in one of several ways."""
    way = random.randrange(4)
    try:
        if way == 0:
            writer.transport.abort()
            return
        if way == 1:
            writer.write(b"x" * 200_000)
        if way == 2:
            while data := await reader.read(1000):
                writer.write(data)
    except OSError:
        pass
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def visit(port: int) -> None:
    """A client that ends in one of several ways."""
    way = random.randrange(4)
    writer: asyncio.StreamWriter | None = None
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if way == 0:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()
            return
        writer.write(b"a" * random.randrange(1, 100_000))
        if way == 1:
            writer.transport.abort()
            return
        if way == 2:
            writer.write_eof()
            await reader.read()
    except OSError:
        pass
    finally:
        if writer is not None:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Scenario = Callable[[TcpListener, int], Awaitable[None]]


class Backends:
    """Backends that serve with a function. They end with their connections: an event loop must be left with none."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._tasks: set[asyncio.Task[Any]] = set()

    async def listen(self) -> BackendSet:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return BackendSet((Backend("127.0.0.1", self._server.sockets[0].getsockname()[1]),))

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await self._serve(reader, writer)

    async def end(self) -> None:
        self._server.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=30)


def relay(
    scenario: Scenario,
    limit: ConnectionLimit | None = None,
    serve: Serve = serve,
) -> list[dict[str, Any]]:
    """Run with a relay on a port, on uvloop. Returns what the event loop had to report."""
    failures: list[dict[str, Any]] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        world = World.real()
        backends = Backends(serve)
        listener = TcpListener(world.clock, Balancer(world, await backends.listen()), limit or ConnectionLimit(500))
        bound = socket.create_server(("127.0.0.1", 0))
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # of the connections too: they are soon full
        bound.settimeout(0)
        port = bound.getsockname()[1]
        await listener.open(bound)
        try:
            await scenario(listener, port)
        finally:
            await listener.end()
            await backends.end()
            world.executor.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    return failures


def test_lost_connections_are_no_errors(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(_: TcpListener, port: int) -> None:
        for _ in range(10):
            await asyncio.gather(*(visit(port) for _ in range(40)))

    assert relay(scenario) == []
    assert caplog.records == []


def test_a_connection_that_was_accepted_just_before_the_end_is_reset() -> None:
    """Its task is cancelled before it begins."""

    class EndAtOnce(ConnectionLimit):
        listener: TcpListener
        ending: asyncio.Task[None] | None = None

        def acquire(self) -> bool:
            self.ending = asyncio.get_running_loop().create_task(self.listener.end())
            return super().acquire()

    limit = EndAtOnce(10)

    async def scenario(listener: TcpListener, port: int) -> None:
        limit.listener = listener
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with closing(writer), pytest.raises(ConnectionResetError):
            await asyncio.wait_for(reader.read(), 10)
        assert limit.ending is not None
        await limit.ending

    assert relay(scenario, limit) == []


def test_a_connection_counts_until_its_client_has_read_everything() -> None:
    size = 60_000  # more than the kernel keeps, less than pauses the relay

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * size)
        writer.close()

    def slow(port: int) -> socket.socket:
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.shutdown(socket.SHUT_WR)
        client.settimeout(0)
        return client

    async def received(client: socket.socket, least: int = sys.maxsize) -> int:
        total = 0
        async with asyncio.timeout(10):
            while total < least and (data := await asyncio.get_running_loop().sock_recv(client, 1000)):
                total += len(data)
        return total

    async def scenario(listener: TcpListener, port: int) -> None:
        with slow(port) as first:
            count = await received(first, 1000)
            await asyncio.sleep(0.2)
            with slow(port) as second, pytest.raises(ConnectionResetError):
                await received(second)
            assert count + await received(first) == size
        async with asyncio.timeout(10):
            while True:
                with slow(port) as third, suppress(ConnectionResetError):
                    await received(third, 1000)
                    await listener.end()
                    with pytest.raises(ConnectionResetError):
                        await received(third)
                    return

    assert relay(scenario, ConnectionLimit(1), answer) == []
