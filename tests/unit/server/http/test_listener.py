"""What strangers can hold of a server that listens: a bounded number of handshakes and of silent connections."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.unit.server.http.test_connection import HEAD, Stage, echo, play
from tests.unit.server.test_standalone import client
from tests.unit.server.test_standalone import play as serve

from ostinato.server.flow.turns import Turns
from ostinato.server.http import listener, server
from ostinato.server.http.connection import Connection
from ostinato.server.http.listener import AddressLimit, Listener
from ostinato.server.standalone import Standalone
from ostinato.world import World

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def test_one_too_many_costs_the_largest_address_its_oldest() -> None:
    dropped: list[str] = []
    crowd: AddressLimit[str] = AddressLimit(4, dropped.append)
    for address, name in (("a", "a1"), ("b", "b1"), ("b", "b2"), ("c", "c1")):
        crowd.add(address, name)
    assert not dropped
    crowd.add("a", "a2")
    assert dropped == ["a1"]
    crowd.add("b", "b3")
    assert dropped == ["a1", "b1"]
    crowd.discard("c", "c1")
    crowd.discard("c", "c1")
    crowd.discard("nowhere", "x")
    assert len(crowd) == 3
    crowd.add("c", "c2")
    assert len(dropped) == 2


async def connect(standalone: Standalone, context: ssl.SSLContext | None = None) -> Streams:
    host, _, port = standalone.url.removeprefix("https://").rpartition(":")
    return await asyncio.open_connection(host, int(port), ssl=context)


async def ended(streams: Streams) -> None:
    """Returns when the server has closed a connection."""
    with contextlib.suppress(ConnectionError):
        assert await asyncio.wait_for(streams[0].read(1), 10) == b""
    streams[1].close()


async def get(streams: Streams, path: str) -> bytes:
    streams[1].write(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    head = await streams[0].readuntil(b"\r\n\r\n")
    size = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    await streams[0].readexactly(int(size.split()[1]))
    return head.split()[1]


def play_with(tmp_path: Path, script: Callable[[Standalone], Awaitable[None]]) -> None:
    serve(tmp_path, script, store="memory")


def test_handshakes_that_never_end_do_not_keep_others_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MAX_HANDSHAKES", 8)

    async def script(standalone: Standalone) -> None:
        silent = [await connect(standalone) for _ in range(24)]
        for streams in silent[:16]:  # the oldest make room for the newest
            await ended(streams)
        streams = await connect(standalone, client(tmp_path, "admin"))
        assert await get(streams, "/api/v1/namespaces/default") == b"200"
        streams[1].close()
        for left in silent[16:]:
            left[1].close()

    play_with(tmp_path, script)


def test_silent_connections_make_room_for_others_and_clients_that_authenticated_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "MAX_UNAUTHENTICATED", 6)

    async def script(standalone: Standalone) -> None:
        known = await connect(standalone, client(tmp_path, "admin"))
        assert await get(known, "/api/v1/namespaces/default") == b"200"
        watch = await connect(standalone, client(tmp_path, "admin"))
        watch[1].write(b"GET /api/v1/namespaces?watch=1 HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b"200 OK" in await watch[0].readuntil(b"\r\n\r\n")
        anonymous = await connect(standalone, client(tmp_path))
        assert await get(anonymous, "/readyz") == b"200"
        silent = [await connect(standalone, client(tmp_path)) for _ in range(12)]
        await ended(anonymous)
        for streams in silent[:6]:
            await ended(streams)
        assert await get(known, "/api/v1/namespaces/default") == b"200"
        assert await get(silent[-1], "/readyz") == b"200"
        for streams in (known, watch, *silent[6:]):
            streams[1].close()

    play_with(tmp_path, script)


def test_a_connection_without_a_request_ends_before_an_idle_one() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        _, silent = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.world.clock.sleep(34)
        assert (wire.closed, silent.closed) == (False, True)


@contextlib.asynccontextmanager
async def listening() -> AsyncIterator[Listener]:
    world = World.real(workers=1)
    made = Listener(asyncio.Protocol, None, world.clock, Turns(world.clock.monotonic))
    await made.bind("127.0.0.1", 0)
    made.listen()
    try:
        yield made
    finally:
        made.close()
        world.executor.close()


def test_without_file_descriptors_the_listener_pauses_and_resumes(caplog: pytest.LogCaptureFixture) -> None:
    class Exhausted:
        def accept(self) -> None:
            raise OSError(errno.EMFILE, "Too many open files")

    async def main() -> None:
        async with listening() as made:
            with caplog.at_level(logging.ERROR):
                made._accept(Exhausted())  # type: ignore[arg-type]
            assert "cannot accept connections error=Too many open files" in caplog.text
            reader, writer = await asyncio.open_connection("127.0.0.1", made.port)  # waits in the backlog
            made._resume()
            writer.close()
        assert reader is not None

    asyncio.run(main())


def test_a_connection_that_was_accepted_just_before_the_end_is_closed() -> None:
    """Its task is cancelled before it begins."""

    async def main() -> None:
        async with listening() as made:
            with socket.create_connection(("127.0.0.1", made.port)) as client:
                client.settimeout(10)
                made._accept(made._sockets[0])
                made.close()
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert client.recv(1) == b""

    asyncio.run(main())


def test_a_port_that_is_taken_is_an_error() -> None:
    async def main() -> None:
        async with listening() as one:
            other = Listener(asyncio.Protocol, None, one._clock, Turns(one._clock.monotonic))
            with pytest.raises(OSError, match="ddress already in use"):
                await other.bind("127.0.0.1", one.port)

    asyncio.run(main())


def test_a_lost_connection_is_freed_without_the_garbage_collector(tmp_path: Path) -> None:
    """TLS holds 45 kB for a connection; in a cycle they would stay until old objects are looked at."""

    async def script(standalone: Standalone) -> None:
        gc.collect()
        gc.disable()
        try:
            lost: list[weakref.ref[Connection]] = []
            for _ in range(5):
                streams = await connect(standalone, client(tmp_path, "admin"))
                assert await get(streams, "/api/v1/namespaces/default") == b"200"
                assert standalone._http is not None
                lost += [weakref.ref(each) for each in standalone._http._connections]
                streams[1].close()
                await streams[1].wait_closed()
            async with asyncio.timeout(10):
                while any(each() is not None for each in lost):  # noqa: ASYNC110 - there is no event for it
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()

    play_with(tmp_path, script)
