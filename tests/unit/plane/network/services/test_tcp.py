"""TCP relay on uvloop, with peers that go away at any moment."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from contextlib import suppress
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
        writer.close()
    except OSError:
        pass


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


def test_lost_connections_are_no_errors(caplog: pytest.LogCaptureFixture) -> None:
    failures: list[Any] = []

    async def scenario() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
        world = World.real()
        backend = await asyncio.start_server(serve, "127.0.0.1", 0)
        backends = BackendSet((Backend("127.0.0.1", backend.sockets[0].getsockname()[1]),))
        listener = TcpListener(world.clock, Balancer(world, backends), ConnectionLimit(500))
        bound = socket.create_server(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        bound.settimeout(0)
        await listener.open(bound)
        for _ in range(10):
            await asyncio.gather(*(visit(port) for _ in range(40)))
        await listener.end()
        backend.close()
        world.executor.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())
    assert failures == []
    assert caplog.records == []
