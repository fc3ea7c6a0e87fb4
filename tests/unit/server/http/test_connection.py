"""A connection, its transport played by the test, in virtual time."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import pytest

from ostinato.server.core import Server
from ostinato.server.http import HttpServer
from ostinato.server.http.connection import Connection
from ostinato.server.request import Later, Peer, Request, Response, Stream
from ostinato.world import Simulation

Handler = Callable[[Request], Awaitable[Response | Stream]]
HEAD = b"Host: a\r\n\r\n"


class Wire(asyncio.Transport):
    """The other end: what was sent to the client, and whether it still listens."""

    def __init__(self, certificate: Any = None) -> None:
        super().__init__({"peercert": certificate})
        self.sent = b""
        self.closed = False
        self.aborted = False
        self.reading = True
        self.protocol: Connection | None = None

    def write(self, data: Any) -> None:
        assert not self.closed, f"written after the end: {data!r}"
        self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            assert self.protocol is not None
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True


class Core:
    """A core that answers as the test says."""

    def __init__(self, world: Simulation, handler: Handler) -> None:
        self.world = world
        self.handler = handler
        self.requests: list[Request] = []
        self.ready: dict[str, Response | Later] = {}  # what needs no task, by path

    def handle_now(self, request: Request) -> Response | Later | None:
        return self.ready.get(request.path)

    async def handle(self, request: Request) -> Response | Stream:
        self.requests.append(request)
        return await self.handler(request)


class Stage:
    """A simulation with one server; `connect` as many clients as needed."""

    def __init__(self, handler: Handler) -> None:
        self.world = Simulation(1)
        self.core = Core(self.world, handler)
        self.http: HttpServer

    def run(self, play: Callable[[Stage], Awaitable[None]]) -> None:
        async def main() -> None:
            self.http = HttpServer(cast("Server", self.core), None)
            self.http._sweep()
            await play(self)
            assert self.http._sweeper is not None
            self.http._sweeper.cancel()

        self.world.run(main())

    def connect(self, certificate: Any = None) -> tuple[Connection, Wire]:
        wire = Wire(certificate)
        connection = wire.protocol = Connection(self.http)
        connection.connection_made(wire)
        return connection, wire

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)


async def echo(request: Request) -> Response:
    return Response(200, await request.read(), "text/plain")


def answers(sent: bytes) -> list[tuple[int, dict[str, str], bytes]]:
    """The whole answers in what was sent."""
    found = []
    while sent:
        head, _, rest = sent.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        headers = {line.partition(": ")[0].lower(): line.partition(": ")[2] for line in lines[1:]}
        length = int(headers.get("content-length", "0"))
        found.append((int(lines[0].split()[1]), headers, rest[:length]))
        sent = rest[length:]
    return found


def play(handler: Handler) -> Callable[[Callable[[Stage], Awaitable[None]]], None]:
    """Runs the decorated coroutine at once, on a stage of its own."""

    def decorate(script: Callable[[Stage], Awaitable[None]]) -> None:
        Stage(handler).run(script)

    return decorate


def test_responses_have_the_headers_of_kube_apiserver() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST /x?y=1 HTTP/1.1\r\nContent-Length: 3\r\n" + HEAD + b"abc")
        await stage.settle()
        ((status, headers, body),) = answers(wire.sent)
        assert (status, body) == (200, b"abc")
        assert headers["content-type"] == "text/plain"
        assert headers["cache-control"] == "no-cache, private"
        assert headers["date"] == "Thu, 01 Jan 2026 00:00:00 GMT"
        assert len(headers["audit-id"]) == 36
        request = stage.core.requests[0]
        assert (request.method, request.path, request.query_string) == ("POST", "/x", "y=1")
        assert not wire.closed


def test_the_client_may_choose_the_audit_id_and_the_core_the_caching() -> None:
    async def cached(request: Request) -> Response:
        return Response(200, b"", headers=[("Cache-Control", "public"), ("Warning", '299 - "one\r\ntwo ü"')])

    @play(cached)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\nAudit-Id: mine\r\n" + HEAD)
        await stage.settle()
        ((_, headers, _),) = answers(wire.sent)
        assert headers["audit-id"] == "mine"
        assert headers["cache-control"] == "public"
        assert headers["warning"] == '299 - "one  two ü"'


def test_pipelined_requests_are_handled_in_order_one_at_a_time() -> None:
    under_way: list[str] = []

    async def slow(request: Request) -> Response:
        assert not under_way
        under_way.append(request.path)
        await stage_of[0].world.clock.sleep(1)
        under_way.remove(request.path)
        return Response(200, request.path.encode())

    stage_of: list[Stage] = []

    @play(slow)
    async def _(stage: Stage) -> None:
        stage_of.append(stage)
        connection, wire = stage.connect()
        connection.data_received(b"".join(b"GET /%d HTTP/1.1\r\n" % n + HEAD for n in range(5)))
        await stage.world.clock.sleep(10)
        assert [body for _, _, body in answers(wire.sent)] == [b"/0", b"/1", b"/2", b"/3", b"/4"]


@pytest.mark.parametrize("rest", [b"", b"GET /cut HT"])
@pytest.mark.parametrize("at_once", [False, True])
def test_requests_before_a_half_close_are_handled(at_once: bool, rest: bytes) -> None:
    async def told(request: Request) -> Response:
        return Response(200, request.path.encode())

    @play(told)
    async def _(stage: Stage) -> None:
        if at_once:
            stage.core.ready = {f"/{n}": Response(200, b"/%d" % n) for n in range(3)}
        connection, wire = stage.connect()
        connection.data_received(b"".join(b"GET /%d HTTP/1.1\r\n" % n + HEAD for n in range(3)) + rest)
        assert connection.eof_received()
        await stage.settle()
        assert [body for _, _, body in answers(wire.sent)] == [b"/0", b"/1", b"/2"]
        assert wire.closed


def test_a_request_may_come_byte_by_byte() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        for byte in b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD + b"3\r\nabc\r\n0\r\n\r\n":
            connection.data_received(bytes([byte]))
            await asyncio.sleep(0)
        await stage.settle()
        assert answers(wire.sent)[0][2] == b"abc"


@pytest.mark.parametrize("size", [1, 7, 64, 90, 95, 1000])
def test_a_body_ends_at_its_length_at_any_split(size: int) -> None:
    bodies = [b"", b"abc", b"GET / HTTP/1.1\r\n\r\n", b"d"]
    sent = b"".join(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n" % len(body) + HEAD + body for body in bodies)

    @play(echo)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        for start in range(0, len(sent), size):
            connection.data_received(sent[start : start + size])
            await asyncio.sleep(0)
        await stage.settle()
        assert [body for _, _, body in answers(wire.sent)] == bodies


def test_a_request_waits_until_the_client_reads_the_previous_response() -> None:
    class Full(Wire):
        def write(self, data: Any) -> None:
            super().write(data)
            assert self.protocol is not None
            self.protocol.pause_writing()

    @play(echo)
    async def _(stage: Stage) -> None:
        wire = Full()
        connection = wire.protocol = Connection(stage.http)
        connection.connection_made(wire)
        connection.data_received(b"GET /one HTTP/1.1\r\n" + HEAD + b"GET /two HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert [request.path for request in stage.core.requests] == ["/one"]
        connection.resume_writing()
        await stage.settle()
        assert [request.path for request in stage.core.requests] == ["/one", "/two"]


def test_head_gets_the_length_without_the_body_and_304_neither() -> None:
    async def handler(request: Request) -> Response:
        return Response(304 if request.path == "/same" else 200, b"abc")

    @play(handler)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"HEAD / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert b"Content-Length: 3\r\n" in wire.sent
        assert wire.sent.endswith(b"\r\n\r\n")
        wire.sent = b""
        connection.data_received(b"GET /same HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert wire.sent.startswith(b"HTTP/1.1 304 Not Modified\r\n")
        assert b"Content-Length" not in wire.sent


def test_an_immediate_response_is_written_before_other_tasks_run() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        stage.core.ready = {"/now": Response(200, b"abc"), "/long": Response(200, b"x" * 100_000)}
        connection, wire = stage.connect()
        connection.data_received(b"GET /now HTTP/1.1\r\n" + HEAD)
        assert [(code, body) for code, _, body in answers(wire.sent)] == [(200, b"abc")]
        assert not stage.core.requests
        wire.sent = b""
        names = (b"now", b"later", b"now", b"long", b"now")
        connection.data_received(b"".join(b"GET /%b HTTP/1.1\r\n" % name + HEAD for name in names))
        await stage.settle()
        assert [body for _, _, body in answers(wire.sent)] == [b"abc", b"", b"abc", b"x" * 100_000, b"abc"]
        assert [request.path for request in stage.core.requests] == ["/later"]
        wire.sent = b""
        connection.data_received(b"GET /now HTTP/1.1\r\nConnection: close\r\n" + HEAD)
        assert wire.closed
        assert b"Connection: close\r\n" in wire.sent


def test_a_client_that_does_not_read_gets_no_immediate_response() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        stage.core.ready = {"/now": Response(200, b"abc")}
        connection, wire = stage.connect()
        connection.pause_writing()
        connection.data_received(b"GET /now HTTP/1.1\r\n" + HEAD)
        connection.data_received(b"GET /now HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert len(answers(wire.sent)) == 1
        connection.resume_writing()
        await stage.settle()
        assert len(answers(wire.sent)) == 2


@pytest.mark.parametrize("parts", [[b"a"], [b""], [b"a", b"b"], [b"x" * 9, b"", b"y" * 40], [b"ab"] * 100])
@pytest.mark.parametrize("size", [1, 10, 64])
def test_the_pieces_of_a_response_are_its_body(parts: list[bytes], size: int) -> None:
    for between in (b"", b","):
        answer = Response(200, parts, between=between)
        pieces = list(answer.pieces(size))
        assert b"".join(pieces) == answer.body == between.join(parts)
        assert answer.size == len(answer.body)


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        (b"nonsense\r\n\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 400 Bad Request: missing required Host header\r\n"),
        (b"GET / HTTP/2.0\r\n" + HEAD, b"HTTP/1.1 505 HTTP Version Not Supported: unsupported protocol version\r\n"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 140_000, b"HTTP/1.1 431 Request Header Fields Too Large\r\n"),
        (b"GET / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n" + HEAD, b"HTTP/1.1 501 Not Implemented\r\n"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD + b"x\r\n", b"HTTP/1.1 400 Bad Request\r\n"),
    ],
)
def test_invalid_requests_are_rejected_and_the_connection_is_closed(raw: bytes, answer: bytes) -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(raw)
        await stage.settle()
        assert wire.sent.startswith(answer)
        assert b"Connection: close\r\n" in wire.sent
        assert stage.core.requests == []
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)  # what still comes is thrown away
        await stage.world.clock.sleep(5)
        assert wire.closed
        assert stage.core.requests == []


# Bodies


def test_a_body_is_read_only_on_demand_and_read_ahead_is_bounded() -> None:
    asked = asyncio.Event()

    async def patient(request: Request) -> Response:
        await asked.wait()
        return Response(200, str(len(await request.read())).encode())

    @play(patient)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST / HTTP/1.1\r\nContent-Length: 200000\r\n" + HEAD)
        for _ in range(2):
            connection.data_received(b"x" * 50_000)
        await stage.settle()
        assert not wire.reading
        asked.set()
        await stage.settle()
        assert wire.reading
        connection.data_received(b"x" * 100_000)
        await stage.settle()
        assert answers(wire.sent)[0][2] == b"200000"
        assert wire.reading


def test_a_body_that_is_too_large_is_rejected_before_it_is_sent() -> None:
    @play(_told)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST / HTTP/1.1\r\nContent-Length: 3145729\r\n" + HEAD)
        await stage.settle()
        ((status, headers, body),) = answers(wire.sent)
        assert status == 413
        assert body == b"Request entity too large: limit is 3145728"
        assert headers["connection"] == "close"
        connection.data_received(b"x" * 1000)
        await stage.world.clock.sleep(5)
        assert wire.closed


def test_a_chunked_body_is_rejected_when_it_becomes_too_large() -> None:
    @play(_told)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD)
        await stage.settle()
        for _ in range(4):
            connection.data_received(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
            await stage.settle()
        assert answers(wire.sent)[0][0] == 413


async def _told(request: Request) -> Response:
    from ostinato.api.errors import APIError

    try:
        return Response(200, await request.read())
    except APIError as error:
        return Response(error.code, str(error).encode())


def test_a_small_unread_body_is_discarded_and_the_connection_reused() -> None:
    async def refuse(request: Request) -> Response:
        return Response(401, b"")

    @play(refuse)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST /1 HTTP/1.1\r\nContent-Length: 100000\r\n" + HEAD + b"x" * 10)
        await stage.settle()
        assert b"Connection: close" not in wire.sent
        connection.data_received(b"x" * 99_990 + b"GET /2 HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert [request.path for request in stage.core.requests] == ["/1", "/2"]
        wire.sent = b""
        connection.data_received(b"POST /3 HTTP/1.1\r\nContent-Length: 1000000\r\n" + HEAD)
        await stage.settle()
        assert b"Connection: close" in wire.sent


def test_an_endless_unread_body_closes_the_connection() -> None:
    async def refuse(request: Request) -> Response:
        return Response(401, b"")

    @play(refuse)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST /1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD)
        await stage.settle()
        for _ in range(10):
            connection.data_received(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        await stage.world.clock.sleep(3)
        assert wire.closed


def test_100_continue_is_sent_when_the_body_is_read() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n" + HEAD)
        await stage.settle()
        assert wire.sent == b"HTTP/1.1 100 Continue\r\n\r\n"
        wire.sent = b""
        connection.data_received(b"abc")
        await stage.settle()
        assert answers(wire.sent)[0][2] == b"abc"


def test_100_continue_is_not_sent_when_the_request_is_rejected() -> None:
    async def refuse(request: Request) -> Response:
        return Response(401, b"")

    @play(refuse)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n" + HEAD)
        await stage.settle()
        assert answers(wire.sent)[0][0] == 401
        assert b"Connection: close" in wire.sent


@pytest.mark.parametrize("early", [True, False])
def test_a_body_that_ends_too_soon_is_an_error(early: bool) -> None:
    @play(_told)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n" + HEAD + b"a")
        if not early:
            await stage.settle()
        assert connection.eof_received()
        await stage.settle()
        assert answers(wire.sent)[0][2] == b"unexpected EOF"
        await stage.world.clock.sleep(3)
        assert wire.closed


def test_chunks_that_break_while_they_are_read_are_an_error() -> None:
    @play(_told)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" + HEAD)
        await stage.settle()
        connection.data_received(b"zz\r\n")
        await stage.settle()
        assert answers(wire.sent)[0][2] == b"malformed chunked encoding"
        await stage.world.clock.sleep(3)
        assert wire.closed


# Clients that take their time, or go


def test_a_head_that_does_not_come_to_its_end_ends_the_connection() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HT")
        for _ in range(31):
            await stage.world.clock.sleep(1)
            connection.data_received(b"T")
        assert not wire.closed
        await stage.world.clock.sleep(4)
        assert wire.aborted


def test_an_idle_connection_is_closed_after_a_while() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        await stage.world.clock.sleep(30)
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.world.clock.sleep(80)
        assert not wire.closed
        await stage.world.clock.sleep(20)
        assert wire.closed


def test_a_request_that_takes_too_long_gets_a_timeout_status() -> None:
    async def never(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    @play(never)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.world.clock.sleep(65)
        ((status, _, body),) = answers(wire.sent)
        assert status == 504
        assert json.loads(body)["message"] == "Timeout: request did not complete within the allotted timeout"
        await stage.settle()
        assert wire.closed


def test_a_client_that_does_not_read_its_response_is_disconnected() -> None:
    async def large(request: Request) -> Response:
        return Response(200, b"x" * 100_000)

    @play(large)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.pause_writing()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD + b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert len(stage.core.requests) == 1  # the second waits until the first is read
        await stage.world.clock.sleep(62)
        assert wire.aborted


def test_a_request_completes_although_its_client_disconnects() -> None:
    done: list[bool] = []

    async def slow(request: Request) -> Response:
        await stage_of[0].world.clock.sleep(1)
        done.append(True)
        return Response(200, b"")

    stage_of: list[Stage] = []

    @play(slow)
    async def _(stage: Stage) -> None:
        stage_of.append(stage)
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        wire.closed = True
        connection.connection_lost(None)
        await stage.world.clock.sleep(2)
        assert done == [True]


def test_an_error_of_the_core_closes_the_connection() -> None:
    async def broken(request: Request) -> Response:
        raise ValueError("broken")

    @play(broken)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert wire.sent == b""
        assert wire.closed


# Answers


def test_a_large_response_is_compressed_if_the_client_accepts_gzip() -> None:
    async def large(request: Request) -> Response:
        return Response(200, b"x" * int(request.path[1:]))

    @play(large)
    async def _(stage: Stage) -> None:
        for size, accept, compressed in (
            (131_072, b"gzip", False),
            (131_073, b"gzip", True),
            (131_073, b"deflate, gzip", True),
            (131_073, b"br", False),
            (131_073, b"", False),
            (1_000_000, b"gzip", True),
        ):
            connection, wire = stage.connect()
            connection.data_received(b"GET /%d HTTP/1.1\r\nAccept-Encoding: %b\r\n" % (size, accept) + HEAD)
            await stage.world.clock.sleep(0.1)
            ((_, headers, body),) = answers(wire.sent)
            assert ("content-encoding" in headers, "vary" in headers) == (compressed, compressed)
            assert (gzip.decompress(body) if compressed else body) == b"x" * size


async def _count(request: Request) -> Stream:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"one\n"
        yield b""
        yield b"two\nthree\n"

    return Stream(200, chunks())


def test_a_stream_is_chunked_and_the_connection_reused() -> None:
    @play(_count)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        head, _, body = wire.sent.partition(b"\r\n\r\n")
        assert b"Transfer-Encoding: chunked" in head
        assert body == b"4\r\none\n\r\na\r\ntwo\nthree\n\r\n0\r\n\r\n"
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert len(stage.core.requests) == 2


def test_a_stream_to_an_old_client_ends_with_the_connection() -> None:
    @play(_count)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.0\r\n\r\n")
        await stage.settle()
        assert wire.sent.endswith(b"\r\n\r\none\ntwo\nthree\n")
        assert wire.closed


class Endless:
    """A stream that goes on until it is closed."""

    def __init__(self) -> None:
        self.sent = 0
        self.closed = False
        self.more = asyncio.Event()

    async def handle(self, request: Request) -> Stream:
        return Stream(200, self.chunks())

    async def chunks(self) -> AsyncIterator[bytes]:
        try:
            while True:
                await self.more.wait()
                self.sent += 1
                yield b"line\n"
        finally:
            self.closed = True


def test_the_head_of_a_stream_is_sent_immediately() -> None:
    stream = Endless()

    @play(stream.handle)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        assert wire.sent.startswith(b"HTTP/1.1 200 OK\r\n")
        await stage.world.clock.sleep(1000)
        assert not wire.closed  # a stream has no deadline


@pytest.mark.parametrize("end", ["lost", "eof"])
def test_a_stream_ends_when_its_client_disconnects(end: str) -> None:
    stream = Endless()

    @play(stream.handle)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        if end == "eof":
            assert not connection.eof_received()  # the transport closes the connection
        wire.closed = True
        connection.connection_lost(None)
        await stage.settle()
        assert stream.closed


def test_a_stream_waits_for_its_client_to_read_and_drops_one_that_does_not() -> None:
    stream = Endless()

    @play(stream.handle)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        connection.pause_writing()
        stream.more.set()
        await stage.settle()
        stream.more.clear()
        assert stream.sent == 1
        connection.resume_writing()
        await stage.world.clock.sleep(200)
        assert not wire.closed
        connection.pause_writing()
        await stage.world.clock.sleep(62)
        assert wire.aborted
        await stage.settle()
        assert stream.closed


def test_a_forwarded_chunk_is_written_at_once_unless_the_client_does_not_read_or_flows_contend() -> None:
    stream = Endless()
    writers: list[Callable[[bytes], bool]] = []

    async def handle(request: Request) -> Stream:
        return Stream(200, stream.chunks(), forward=writers.append)

    @play(handle)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        [write] = writers
        assert write(b"event\n")
        assert wire.sent.endswith(b"\r\n\r\n6\r\nevent\n\r\n")
        sent = wire.sent
        connection.pause_writing()
        assert not write(b"event\n")
        connection.resume_writing()
        stage.http.turns.contended = True
        assert not write(b"event\n")
        assert wire.sent == sent


# Stopping


def test_stopping_ends_streams_in_order_and_lets_requests_finish() -> None:
    stream = Endless()

    async def handler(request: Request) -> Response | Stream:
        if request.path == "/watch":
            return await stream.handle(request)
        await stage_of[0].world.clock.sleep(1)
        return Response(200, b"done")

    stage_of: list[Stage] = []

    @play(handler)
    async def _(stage: Stage) -> None:
        stage_of.append(stage)
        clients = [stage.connect() for _ in range(3)]
        clients[0][0].data_received(b"GET /watch HTTP/1.1\r\n" + HEAD)
        clients[1][0].data_received(b"GET /slow HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        began = stage.world.clock.monotonic()
        await stage.http.stop()
        assert stage.world.clock.monotonic() - began < 2
        assert stream.closed
        assert clients[0][1].sent.endswith(b"0\r\n\r\n")
        assert answers(clients[1][1].sent)[0][2] == b"done"
        assert b"Connection: close" in clients[1][1].sent
        assert all(wire.closed and not wire.aborted for _, wire in clients)


def test_stopping_does_not_wait_for_long() -> None:
    async def never(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    @play(never)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
        await stage.settle()
        began = stage.world.clock.monotonic()
        await stage.http.stop()
        assert stage.world.clock.monotonic() - began < 5
        assert wire.aborted


# Who asks


def test_the_client_certificate_identifies_the_peer() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        subject = ((("organizationName", "a"),), (("organizationName", "b"),), (("commonName", "jane"),))
        for certificate, peer in (({"subject": subject}, Peer("jane", ("a", "b"))), ({}, None), (None, None)):
            connection, _ = stage.connect(certificate)
            connection.data_received(b"GET / HTTP/1.1\r\n" + HEAD)
            await stage.settle()
            assert stage.core.requests[-1].peer == peer


def test_repeated_headers_are_all_there() -> None:
    @play(echo)
    async def _(stage: Stage) -> None:
        connection, _ = stage.connect()
        connection.data_received(b"GET / HTTP/1.1\r\nImpersonate-Group: a\r\nImpersonate-Group: b\r\n" + HEAD)
        await stage.settle()
        assert stage.core.requests[0].repeated == {"impersonate-group": ["a", "b"]}
        assert stage.core.requests[0].headers["impersonate-group"] == "a"


# WebSocket


def masked(opcode: int, payload: bytes) -> bytes:
    mask = b"\x01\x02\x03\x04"
    return bytes((0x80 | opcode, 0x80 | len(payload))) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload))


UPGRADE = (
    b"GET /watch HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
)


def test_a_stream_over_websocket_is_a_message_a_line() -> None:
    @play(_count)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(
            UPGRADE + b"Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.x, b\r\n" + HEAD
        )
        await stage.settle()
        head, _, frames = wire.sent.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
        assert b"Sec-WebSocket-Protocol: b" in head
        assert frames == b"\x81\x04one\n\x81\x04two\n\x81\x06three\n\x88\x02\x03\xe8"
        assert wire.closed


def test_a_websocket_client_may_ping_send_and_close() -> None:
    stream = Endless()

    @play(stream.handle)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(UPGRADE + HEAD + masked(9, b"hi")[:4])
        await stage.settle()
        wire.sent = b""
        connection.data_received(masked(9, b"hi")[4:] + masked(1, b"ignored"))
        assert wire.sent == b"\x8a\x02hi"
        connection.data_received(masked(8, b"\x03\xe8"))
        assert wire.sent == b"\x8a\x02hi\x88\x02\x03\xe8"
        await stage.settle()
        assert wire.closed
        assert stream.closed


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x81\x02hi", 1002),
        (b"\xc1\x80\x00\x00\x00\x00", 1002),
        (b"\x89\xfe\x00\x80", 1002),
        (b"\x81\xff" + (1 << 20).to_bytes(8, "big"), 1009),
    ],
    ids=["not masked", "an extension", "a long ping", "too long"],
)
def test_a_websocket_protocol_violation_closes_the_connection(data: bytes, code: int) -> None:
    stream = Endless()

    @play(stream.handle)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(UPGRADE + HEAD)
        await stage.settle()
        wire.sent = b""
        connection.data_received(data)
        assert wire.sent == b"\x88\x02" + code.to_bytes(2, "big")
        await stage.settle()
        assert stream.closed


def test_a_long_line_over_websocket_has_a_long_length() -> None:
    async def handler(request: Request) -> Stream:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"x" * 200
            yield b"x" * 70_000

        return Stream(200, chunks())

    @play(handler)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(UPGRADE + HEAD)
        await stage.settle()
        frames = wire.sent.partition(b"\r\n\r\n")[2]
        assert frames[:4] == b"\x81\x7e\x00\xc8"
        assert frames[204:214] == b"\x81\x7f" + (70_000).to_bytes(8, "big")


def test_a_response_that_is_not_a_stream_is_sent_over_http_despite_a_websocket_request() -> None:
    async def refuse(request: Request) -> Response:
        return Response(403, b"no")

    @play(refuse)
    async def _(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(UPGRADE + HEAD)
        await stage.settle()
        assert answers(wire.sent)[0][0] == 403


class Waiting:
    """Responses that come later, when the test says."""

    def __init__(self) -> None:
        self.answered: list[Callable[[Response | None], None]] = []

    def __call__(self, answered: Callable[[Response | None], None]) -> None:
        self.answered.append(answered)


def test_a_response_may_come_later_without_a_task() -> None:
    @play(echo)
    async def script(stage: Stage) -> None:
        later = Waiting()
        stage.core.ready["/later"] = later
        connection, wire = stage.connect()
        connection.data_received(
            b"GET /later HTTP/1.1\r\nHost: a\r\n\r\nPOST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nnext"
        )
        await stage.settle()
        assert wire.sent == b""
        assert not connection.idle
        later.answered[0](Response(200, b"found", "text/plain"))
        await stage.settle()
        assert [each[2] for each in answers(wire.sent)] == [b"found", b"next"]
        assert connection.idle


def test_a_request_without_a_response_that_could_come_later_is_handled_in_a_task() -> None:
    @play(echo)
    async def script(stage: Stage) -> None:
        later = Waiting()
        stage.core.ready["/later"] = later
        connection, wire = stage.connect()
        connection.data_received(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n")
        later.answered[0](None)
        await stage.settle()
        assert [each[:1] for each in answers(wire.sent)] == [(200,)]
        assert [each.path for each in stage.core.requests] == ["/later"]


def test_a_response_that_comes_after_its_client_has_left_is_dropped() -> None:
    @play(echo)
    async def script(stage: Stage) -> None:
        later = Waiting()
        stage.core.ready["/later"] = later
        for answer in (Response(200, b"found", "text/plain"), None):
            connection, wire = stage.connect()
            connection.data_received(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n")
            wire.abort()
            await stage.settle()
            later.answered[-1](answer)
            await stage.settle()
            assert wire.sent == b""
        assert stage.core.requests == []


def test_a_stopping_server_sends_a_response_that_comes_later_and_closes() -> None:
    @play(echo)
    async def script(stage: Stage) -> None:
        later = Waiting()
        stage.core.ready["/later"] = later
        connection, wire = stage.connect()
        connection.data_received(b"GET /later HTTP/1.1\r\nHost: a\r\n\r\n")
        connection.finish()
        assert not wire.closed
        later.answered[0](Response(200, b"found", "text/plain"))
        status, headers, body = answers(wire.sent)[0]
        assert (status, headers["connection"], body) == (200, "close", b"found")
        assert wire.closed
