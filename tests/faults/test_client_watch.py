"""A watch over real sockets, against a server that breaks off, falls silent and forgets."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest

from ostinato.api.errors import Expired, Gone
from ostinato.client import Client, Config
from ostinato.client.list_watch import STALL_TIMEOUT
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.world import World
from tests.faults.hurried import hurried

RATE = 400.0  # seconds of the client's clock in one of ours

EVENTS = [
    (kind, msgspec.json.encode({"metadata": {"name": name, "resourceVersion": str(version)}}))
    for kind, name, version in (
        ("ADDED", "a", 2),
        ("MODIFIED", "a", 3),
        ("BOOKMARK", "", 5),
        ("ADDED", "\u00fc", 7),
        ("DELETED", "a", 9),
    )
]
TOLD = [("ADDED", "2"), ("MODIFIED", "3"), ("ADDED", "7"), ("DELETED", "9")]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


def _chunks(since: int) -> bytes:
    """The events after a version, each a chunk of its own."""
    parts = []
    for kind, body in EVENTS:
        if int(msgspec.json.decode(body)["metadata"]["resourceVersion"]) > since:
            line = b'{"type":"%b","object":%b}\n' % (kind.encode(), body)
            parts.append(b"%x\r\n%b\r\n" % (len(line), line))
    return b"".join(parts)


Answer = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


class FaultServer:
    """Answers watches as a test says, over TCP, without any library that could be too kind."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.since: list[int] = []  # of every watch that was asked for

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._tasks: set[asyncio.Task[Any]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            target = head.split(b" ", 2)[1].decode()
            since = int(parse_qs(urlsplit(target).query)["resourceVersion"][0])
            self.since.append(since)
            await self._answer(since, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client has gone, or the test has ended
        finally:
            writer.transport.abort()

    def client(self, world: World) -> Client:
        return Client.connect(Config(server=f"http://127.0.0.1:{self.port}"), world=world)


async def _hang() -> None:
    await asyncio.get_running_loop().create_future()


async def _events(client: Client, count: int) -> list[tuple[str, str]]:
    found = []
    async with client.watch(ConfigMap, since="1") as events:
        async for event in events:
            found.append((event.type, event.object.metadata.resource_version))
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("end", ["reset", "finished"])
def test_a_connection_cut_at_every_byte_loses_nothing_and_repeats_nothing(end: str) -> None:
    world = hurried(RATE)
    whole = HEAD + _chunks(1)

    async def one(cut: int) -> None:
        first = True

        async def answer(since: int, writer: asyncio.StreamWriter) -> None:
            nonlocal first
            if first:
                first = False
                writer.write(whole[:cut])
                await writer.drain()
                if end == "finished":
                    writer.close()
                    await writer.wait_closed()
                return
            writer.write(HEAD + _chunks(since))
            await _hang()

        async with FaultServer(answer) as server, server.client(world) as client:
            assert await _events(client, 4) == TOLD, f"cut after {cut} bytes"

    async def main() -> None:
        async with asyncio.timeout(120):
            for start in range(len(HEAD) - 4, len(whole) + 1, 16):
                await asyncio.gather(*map(one, range(start, min(start + 16, len(whole) + 1))))

    asyncio.run(main())


def test_a_server_that_is_silent_without_an_end_is_noticed_and_left() -> None:
    world = hurried(RATE)

    async def answer(since: int, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        if since > 1 or len(server.since) > 1:
            writer.write(_chunks(since))
        else:
            writer.write(_chunks(1)[:60])  # in the middle of an event
        await _hang()

    server = FaultServer(answer)

    async def main() -> None:
        async with asyncio.timeout(30), server, server.client(world) as client:
            begun = world.clock.monotonic()
            assert await _events(client, 4) == TOLD
            assert STALL_TIMEOUT <= world.clock.monotonic() - begun < 10 * STALL_TIMEOUT
        assert server.since == [1, 1]

    asyncio.run(main())


def test_a_watch_with_occasional_events_is_kept_open() -> None:
    world = hurried(RATE / 2)
    bookmark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n'

    async def answer(since: int, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        begun = world.clock.monotonic()
        while world.clock.monotonic() - begun < 2.5 * STALL_TIMEOUT:
            writer.write(b"%x\r\n%b\r\n" % (len(bookmark), bookmark))
            await world.clock.sleep(STALL_TIMEOUT / 5)
        writer.write(_chunks(since))
        await _hang()

    server = FaultServer(answer)

    async def main() -> None:
        async with asyncio.timeout(30), server, server.client(world) as client:
            assert await _events(client, 4) == TOLD
        assert server.since == [1]

    asyncio.run(main())


def test_a_server_that_accepts_and_never_answers_is_left_too() -> None:
    world = hurried(RATE)

    async def answer(since: int, writer: asyncio.StreamWriter) -> None:
        if len(server.since) > 1:
            writer.write(HEAD + _chunks(since))
        await _hang()

    server = FaultServer(answer)

    async def main() -> None:
        async with asyncio.timeout(30), server, server.client(world) as client:
            assert await _events(client, 4) == TOLD

    asyncio.run(main())


def test_a_server_that_is_away_for_a_while_is_waited_for() -> None:
    world = hurried(RATE)

    async def answer(since: int, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + _chunks(since))
        await _hang()

    async def main() -> None:
        async with asyncio.timeout(30):
            async with FaultServer(answer) as server:
                port, client = server.port, server.client(world)
            waiting = asyncio.ensure_future(_events(client, 4))
            await asyncio.sleep(0.05)  # some of its tries are refused
            assert not waiting.done()
            listener = await asyncio.start_server(server._serve, "127.0.0.1", port)
            assert await waiting == TOLD
            await client.close()
            listener.close()
            for task in server._tasks:
                task.cancel()
            await asyncio.gather(*server._tasks)

    asyncio.run(main())


def _refusals() -> Iterator[tuple[bytes, type[Exception]]]:
    for reason, error in (("Expired", Expired), ("Gone", Gone)):
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": 410}
        body = msgspec.json.encode({**status, "message": "too old resource version: 1 (5)"})
        yield b"HTTP/1.1 410 Gone\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body), error
        line = b'{"type":"ERROR","object":%b}\n' % body
        yield HEAD + b"%x\r\n%b\r\n0\r\n\r\n" % (len(line), line), error


@pytest.mark.parametrize(("sent", "error"), list(_refusals()))
def test_both_forms_of_410_are_raised(sent: bytes, error: type[Exception]) -> None:
    world = hurried(RATE)

    async def answer(_: int, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await _hang()

    async def main() -> None:
        async with asyncio.timeout(30), FaultServer(answer) as server, server.client(world) as client:
            with pytest.raises(error, match="too old resource version"):
                await _events(client, 1)
            assert server.since == [1]

    asyncio.run(main())


def test_a_storm_of_429_ends_in_the_events() -> None:
    world = hurried(RATE)

    async def answer(since: int, writer: asyncio.StreamWriter) -> None:
        if len(server.since) <= 25:
            writer.write(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
            return
        writer.write(HEAD + _chunks(since))
        await _hang()

    server = FaultServer(answer)

    async def main() -> None:
        async with asyncio.timeout(30), server, server.client(world) as client:
            begun = world.clock.monotonic()
            assert await _events(client, 4) == TOLD
            assert world.clock.monotonic() - begun >= 25 - 3, "it waited as it was told"

    asyncio.run(main())
