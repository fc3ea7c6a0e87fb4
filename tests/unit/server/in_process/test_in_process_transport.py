"""The in-process transport implements the transport protocol."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest
from tests.stage.server import started_server

from ostinato.client.transport.protocol import (
    ConnectionLost,
    DeadlinePassed,
    RequestTimedOut,
    TransportError,
    UpgradeRefused,
)
from ostinato.client.transport.protocol import Request as Asked
from ostinato.server.core import Server
from ostinato.server.flow.turns import Turns
from ostinato.server.in_process.socket import InProcessWebSocket
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request import Request, Response, Stream
from ostinato.streams.upgrade import Socket, Upgrade
from ostinato.world import Simulation

Handler = Callable[[Request], Awaitable[Response | Stream]]
GET = Asked("GET", "/api/v1/namespaces/default")


class Core:
    """A core with scripted responses."""

    def __init__(self, world: Simulation, handler: Handler) -> None:
        self.world = world
        self.turns = Turns(world.clock.monotonic)
        self.handle = handler


def _transport(world: Simulation, handler: Handler, **options: Any) -> InProcessTransport:
    return InProcessTransport(cast("Server", Core(world, handler)), **options)


async def _ok(_: Request) -> Response:
    return Response(200, b"{}")


def _served(play: Callable[[Simulation, Server], Awaitable[None]]) -> None:
    world = Simulation(1)

    async def main() -> None:
        async with started_server(world) as server:
            await play(world, server)

    world.run(main())


def test_an_answer_has_its_status_headers_and_body() -> None:
    async def play(_: Simulation, server: Server) -> None:
        transport = InProcessTransport(server)
        async with await transport.request(GET) as answer:
            assert answer.status == 200
            assert answer.headers["content-type"] == "application/json"
            body = await answer.read()
        assert b'"name":"default"' in body
        again = await transport.request(GET)
        assert b"".join([chunk async for chunk in again.chunks()]) == body
        missing = await transport.request(Asked("GET", "/api/v1/namespaces/nope"))
        assert missing.status == 404

    _served(play)


def test_the_default_user_is_an_administrator() -> None:
    async def play(_: Simulation, server: Server) -> None:
        answer = await InProcessTransport(server, user=("jane", ["dev"])).request(GET)
        assert answer.status == 403
        assert b'User \\"jane\\" cannot get resource' in await answer.read()

    _served(play)


def test_a_repeated_header_is_passed_on() -> None:
    async def play(_: Simulation, server: Server) -> None:
        headers = [("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
        path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = await InProcessTransport(server).request(Asked("POST", path, [], headers, b"{}"))
        assert b'"groups":["a","b","system:authenticated"]' in await answer.read()

    _served(play)


def test_the_request_arrives_as_it_was_sent() -> None:
    world = Simulation(1)
    seen: list[Request] = []

    async def keep(request: Request) -> Response:
        seen.append(request)
        return Response(200, await request.read())

    async def parts() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    async def main() -> None:
        transport = _transport(world, keep, user_agent="me/1")
        asked = Asked("POST", "/a%20b", [("x", "1 2"), ("x", "&")], [("Content-Type", "text/plain")], parts())
        assert await (await transport.request(asked)).read() == b"one two"

    world.run(main())
    [request] = seen
    assert (request.method, request.path, request.query) == ("POST", "/a%20b", {"x": ["1 2", "&"]})
    assert request.headers == {"user-agent": "me/1", "content-type": "text/plain"}


def test_warnings_and_the_first_of_each_header_are_returned() -> None:
    world = Simulation(1)

    async def warn(_: Request) -> Response:
        return Response(200, [b"a", b"b"], "text/plain", [("Warning", '299 - "old"'), ("X-A", "1"), ("X-A", "2")])

    async def main() -> None:
        answer = await _transport(world, warn).request(GET)
        assert answer.warnings == ["old"]
        assert answer.headers["x-a"] == "1"
        assert await answer.read() == b"ab"

    world.run(main())


def test_a_request_that_takes_too_long_times_out() -> None:
    world = Simulation(1)

    async def slow(_: Request) -> Response:
        await world.clock.sleep(100)
        return Response(200, b"{}")

    async def main() -> None:
        for transport, timeout in ((_transport(world, slow), 5.0), (_transport(world, slow, timeout=5.0), None)):
            begun = world.clock.monotonic()
            with pytest.raises(RequestTimedOut, match="namespaces/default: timed out: no response"):
                await transport.request(GET._replace(timeout=timeout))
            assert world.clock.monotonic() - begun == pytest.approx(5)
        stream = await _transport(world, slow, timeout=5.0).request(GET._replace(stream=True))
        assert stream.status == 200, "a stream has no limit unless it names one"

    world.run(main())


def test_a_time_out_within_the_server_is_not_mistaken_for_ours() -> None:
    world = Simulation(1)

    async def broken(_: Request) -> Response:
        raise TimeoutError("within")

    async def main() -> None:
        with pytest.raises(TimeoutError, match="within"):
            await _transport(world, broken).request(GET._replace(timeout=5))

    world.run(main())


@pytest.mark.parametrize(("refusals", "answers"), [(3, 4), (10, 11), (99, 11)])
def test_retry_after_is_honoured_at_most_ten_times(refusals: int, answers: int) -> None:
    world = Simulation(1)
    asked: list[float] = []

    async def busy(_: Request) -> Response:
        asked.append(world.clock.monotonic())
        if len(asked) <= refusals:
            return Response(429, b"", headers=[("Retry-After", "2")])
        return Response(200, b"{}")

    async def main() -> int:
        return (await _transport(world, busy).request(GET)).status

    assert world.run(main()) == (200 if refusals < 11 else 429)
    assert len(asked) == answers
    assert asked[-1] == pytest.approx(2 * (answers - 1))


def test_a_request_that_is_not_replayable_is_sent_once() -> None:
    world = Simulation(1)
    asked = 0

    async def busy(_: Request) -> Response:
        nonlocal asked
        asked += 1
        return Response(503, b"", headers=[("Retry-After", "1")])

    async def body() -> AsyncIterator[bytes]:
        yield b"x"

    async def main() -> None:
        assert (await _transport(world, busy).request(Asked("POST", "/a", body=body()))).status == 503

    world.run(main())
    assert asked == 1


def test_nothing_is_sent_past_the_deadline() -> None:
    world = Simulation(1)
    until: list[float | None] = [None]

    async def main() -> None:
        transport = _transport(world, _ok, deadline=lambda: until[0])
        await transport.request(GET)
        until[0] = world.clock.monotonic() + 10
        await transport.request(GET)
        await world.clock.sleep(11)
        with pytest.raises(DeadlinePassed, match="not sent"):
            await transport.request(GET)

    world.run(main())


WATCH = Asked("GET", "/api/v1/configmaps", [("watch", "true")], stream=True)


def _watchers(server: Server) -> int:
    resource = server.registry.get("", "v1", "configmaps")
    assert resource is not None
    assert resource.collection is not None
    return len(resource.collection.hub)


def test_a_stream_that_is_closed_or_left_ends_on_the_server_too() -> None:
    async def play(world: Simulation, server: Server) -> None:
        transport = InProcessTransport(server)
        answer = await transport.request(WATCH)
        waiting = asyncio.ensure_future(anext(answer.chunks()))
        await world.clock.sleep(1)
        assert _watchers(server) == 1
        answer.close()
        answer.close()
        with pytest.raises(ConnectionLost, match="closed"):
            await waiting
        with pytest.raises(StopAsyncIteration):
            await anext(answer.chunks())
        await world.clock.sleep(1)
        assert _watchers(server) == 0

    _served(play)


def test_a_cancelled_reader_raises_cancelled_error() -> None:
    async def play(world: Simulation, server: Server) -> None:
        answer = await InProcessTransport(server).request(WATCH)
        waiting = asyncio.ensure_future(anext(answer.chunks()))
        await world.clock.sleep(1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    _served(play)


def test_a_stream_may_be_read_to_its_end() -> None:
    async def play(_: Simulation, server: Server) -> None:
        asked = WATCH._replace(query=[*WATCH.query, ("timeoutSeconds", "5"), ("allowWatchBookmarks", "true")])
        answer = await InProcessTransport(server).request(asked)
        assert b"BOOKMARK" in await answer.read()

    _served(play)


def test_closing_the_transport_closes_streams_and_rejects_requests() -> None:
    async def play(world: Simulation, server: Server) -> None:
        transport = InProcessTransport(server)
        answers = [await transport.request(WATCH) for _ in range(3)]
        waiting = asyncio.ensure_future(anext(answers[0].chunks()))
        await world.clock.sleep(1)
        await transport.close()
        await transport.close()
        with pytest.raises(ConnectionLost):
            await waiting
        with pytest.raises(TransportError, match="the transport is closed"):
            await transport.request(GET)
        await world.clock.sleep(1)
        assert _watchers(server) == 0

    _served(play)


def test_a_rejected_websocket_has_the_servers_response() -> None:
    async def play(_: Simulation, server: Server) -> None:
        asked = Asked("GET", "/api/v1/namespaces/default/pods/nope/exec", [("command", "x")])
        with pytest.raises(UpgradeRefused, match="WebSocket not opened: the server returned 404") as caught:
            await InProcessTransport(server).websocket(asked, ["v5.channel.k8s.io"])
        assert caught.value.status == 404
        assert b"not found" in caught.value.body

    _served(play)


def test_a_websocket_that_is_closed_at_once_releases_its_resources() -> None:
    """Its task is cancelled before it begins."""
    released: list[bytes | None] = []

    async def serve(socket: Socket) -> None:
        released.append(await socket.receive())

    async def main() -> None:
        socket = InProcessWebSocket(Upgrade(serve, "websocket"))
        await socket.close()
        await socket.close()

    asyncio.run(main())
    assert released == [None]
