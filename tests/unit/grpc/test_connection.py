"""HTTP/2 of the gRPC client: limits, lost connections, hostile bytes."""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Awaitable, Callable

import pytest

from ostinato.grpc import Connection, Limits, RpcError, frames, request_head
from ostinato.grpc.frames import frame
from ostinato.world import World

HEAD = request_head("/a/B", "localhost")
OK_HEADERS = b"\x88"  # :status 200
OK_TRAILERS = b"\x00\x0bgrpc-status\x010"
Answer = Callable[[bytes], bytes]


class Wire(asyncio.Transport):
    """A transport that records what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closed = False
        self.connection: Connection | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += bytes(data)

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            assert self.connection is not None
            asyncio.get_running_loop().call_soon(self.connection.connection_lost, None)

    abort = close

    def frames(self) -> list[tuple[int, int, int, bytes]]:
        """Type, flags, stream and payload of each frame that was sent."""
        found, rest = [], self.sent.removeprefix(frames.PREFACE)
        while rest:
            high, low, kind, flags, stream = frames.HEAD.unpack_from(rest)
            end = 9 + (high << 8 | low)
            found.append((kind, flags, stream, rest[9:end]))
            rest = rest[end:]
        return found


LIMITS = Limits()


def connected(limits: Limits = LIMITS) -> tuple[Connection, Wire]:
    wire = Wire()
    wire.connection = connection = Connection(World.real().clock, "peer", limits)
    connection.connection_made(wire)
    connection.data_received(frames.settings({frames.MAX_CONCURRENT_STREAMS: 2}))
    return connection, wire


def play(scene: Callable[[Connection, Wire], Awaitable[None]]) -> None:
    async def run() -> None:
        connection, wire = connected()
        try:
            await asyncio.wait_for(scene(connection, wire), 10)
        finally:
            await connection.close()

    asyncio.run(run())


def begin(connection: Connection, message: bytes = b"x", within: float = 10) -> asyncio.Task[bytes]:
    return asyncio.ensure_future(connection.call("/a/B", HEAD, message, within))


def answer(stream: int, message: bytes) -> bytes:
    body = b"\0" + len(message).to_bytes(4, "big") + message
    return (
        frame(frames.HEADERS, frames.END_HEADERS, stream, OK_HEADERS)
        + frame(frames.DATA, 0, stream, body)
        + frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream, OK_TRAILERS)
    )


def test_calls_beyond_the_limit_of_streams_wait() -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        calls = [begin(connection) for _ in range(5)]
        await asyncio.sleep(0.01)
        assert [each[2] for each in wire.frames() if each[0] == frames.HEADERS] == [1, 3]
        connection.data_received(answer(3, b"three"))
        calls[0].cancel()
        await asyncio.sleep(0.01)
        assert [each[2] for each in wire.frames() if each[0] == frames.HEADERS] == [1, 3, 5, 7]
        assert (frames.RST_STREAM, 0, 1, b"\0\0\0\x08") in wire.frames()
        connection.data_received(answer(5, b"five") + answer(7, b"seven"))
        connection.data_received(answer(9, b"nine"))
        assert [await call for call in calls[1:]] == [b"three", b"five", b"seven", b"nine"]

    play(scene)


def test_a_response_may_come_byte_by_byte_with_padding_and_continuations() -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        call = begin(connection)
        await asyncio.sleep(0.01)
        data = (
            frame(frames.HEADERS, 0, 1, OK_HEADERS)
            + frame(frames.CONTINUATION, frames.END_HEADERS, 1, b"\x00\x01a\x01b")
            + frame(frames.PRIORITY, 0, 1, bytes(5))
            + frame(frames.DATA, frames.PADDED, 1, b"\x03\0\0\0\0\x05heXXX")
            + frame(99, 0, 1, b"unknown")
            + frame(frames.PING, 0, 0, b"pingping")
            + frame(frames.DATA, 0, 1, b"llo")
            + frame(frames.HEADERS, 0x25, 1, bytes(5) + OK_TRAILERS)
        )
        for index in range(len(data)):
            connection.data_received(data[index : index + 1])
        assert await call == b"hello"

    play(scene)


def test_a_ping_is_answered_soon_and_a_second_one_at_once() -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        def pongs() -> list[bytes]:
            return [each[3] for each in wire.frames() if each[:3] == (frames.PING, frames.ACK, 0)]

        connection.data_received(frame(frames.PING, 0, 0, b"12345678"))
        assert pongs() == []  # not with a write of its own for each call
        connection.data_received(frame(frames.PING, 0, 0, b"87654321"))
        assert pongs() == [b"12345678", b"87654321"]
        connection.data_received(frame(frames.PING, 0, 0, b"lastping"))
        while len(pongs()) < 3:  # noqa: ASYNC110 - a timer of the connection
            await asyncio.sleep(0.01)
        assert pongs()[2] == b"lastping"

    play(scene)


def test_a_ping_is_answered_at_once_while_data_waits_for_a_window() -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        call = begin(connection, bytes(100_000))
        await asyncio.sleep(0)
        connection.data_received(frame(frames.PING, 0, 0, b"pingping"))
        assert (frames.PING, frames.ACK, 0, b"pingping") in wire.frames()
        call.cancel()

    play(scene)


@pytest.mark.parametrize(
    ("data", "message", "may_have_run"),
    [
        (frame(frames.RST_STREAM, 0, 1, struct.pack(">I", 7)), "stream reset by the server, error code 7", False),
        (frame(frames.RST_STREAM, 0, 1, struct.pack(">I", 2)), "stream reset by the server, error code 2", True),
        (frame(frames.GOAWAY, 0, 0, struct.pack(">II", 0, 0) + b"bye"), "peer: bye", False),
        (frame(frames.HEADERS, 5, 1, b"\x88"), "not a gRPC response; HTTP status 200", True),
        (frame(frames.HEADERS, 5, 1, b"\x8d"), "not a gRPC response; HTTP status 404", True),
        (frame(frames.HEADERS, 5, 1, b"\x88" + OK_TRAILERS), "no response message", True),
        (frame(frames.DATA, 1, 1, b"\0\0\0\0\0"), "not a gRPC response; no status", True),
        (frame(frames.DATA, 0, 1, b"\x01\0\0\0\0"), "unexpected compressed response", True),
        (frame(frames.DATA, 0, 1, b"\0\0\0\0\0\0"), "more than one response", True),
        (frame(frames.DATA, 0, 1, b"\0\x7f\0\0\0"), "exceeds 16777216", True),
        (frame(frames.DATA, 0, 5, b""), "frame of stream 5, which was never opened", True),
        (frame(frames.HEADERS, 5, 1, b"\xff\xff\xff\xff\xff\xff"), "integer too large", True),
        (frame(frames.HEADERS, 5, 1, b"\xbe"), "no header has the index 62", True),
        (frame(frames.HEADERS, 5, 1, b"\x3f\xe1\x1f"), "dynamic table of 4096 bytes; 0 was announced", True),
        (frame(frames.HEADERS, 5, 1, b"\x00\x7f"), "truncated header block", True),
        (frame(frames.HEADERS, 1, 1, b"\x88") + frame(frames.PING, 0, 0, bytes(8)), "headers were not continued", True),
        (frame(frames.HEADERS, 0xD, 1, b"\x09a"), "padding is longer than its frame", True),
        (frame(frames.WINDOW_UPDATE, 0, 0, b"\x7f\xff\xff\xff"), "window of the connection is too large", True),
        (frame(frames.SETTINGS, 0, 0, b"\0"), "SETTINGS of 1 bytes", True),
        (frame(frames.PUSH_PROMISE, 4, 1, bytes(4)), "PUSH_PROMISE, which was disabled", True),
        (b"HTTP/1.1 400 Bad Request\r\n", "frame of 4740180 bytes", True),
    ],
)
def test_a_failed_call_reports_whether_it_may_have_run(data: bytes, message: str, may_have_run: bool) -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        call = begin(connection)
        await asyncio.sleep(0.01)
        connection.data_received(data)
        with pytest.raises(RpcError) as caught:
            await call
        assert message in str(caught.value)
        assert caught.value.may_have_run is may_have_run

    play(scene)


def test_a_request_that_was_not_sent_completely_has_not_run() -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        calls = [begin(connection, bytes(100_000)), begin(connection), begin(connection)]  # larger than the window
        await asyncio.sleep(0.01)
        sizes = [len(each[3]) for each in wire.frames() if each[0] == frames.DATA and each[2] == 1]
        assert sum(sizes) == frames.DEFAULT_WINDOW
        assert max(sizes) <= frames.MAX_FRAME
        connection.data_received(frames.window_update(0, 10))
        connection.connection_lost(ConnectionResetError("reset"))
        errors = await asyncio.gather(*calls, return_exceptions=True)
        assert [(str(each), each.may_have_run) for each in errors if isinstance(each, RpcError)] == [
            ("peer: connection reset", False),
            ("peer: connection reset", True),
            ("peer: connection reset", False),  # waits for a stream
        ]

    play(scene)


def test_each_call_ends_at_its_own_deadline() -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        ended: list[str] = []

        def begun(within: float) -> None:
            connection.begin("/a/B", HEAD, b"x", within, lambda result: ended.append(str(result)))

        for within in (0.3, 0.1, 0.2):  # the last one waits for a stream
            begun(within)
        await asyncio.sleep(0)
        while len(ended) < 3:  # noqa: ASYNC110 - timers of the connection
            await asyncio.sleep(0.01)
        assert ended == [f"/a/B: no response within {within:g} s" for within in (0.1, 0.2, 0.3)]
        connection.flush()  # frames leave at the end of a turn of the loop, which may be this one
        assert [each[2] for each in wire.frames() if each[0] == frames.RST_STREAM] == [3, 5, 1]
        begun(0.05)  # with no other call in progress
        while len(ended) < 4:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert connection._checked_at == float("inf")

    play(scene)


def test_a_call_that_is_ended_by_the_end_of_another_ends_once() -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        ended: list[str] = []

        def first(result: object) -> None:
            ended.append(f"first {result}")
            connection.abort()

        connection.begin("/a/B", HEAD, b"x", 0.01, first)
        connection.begin("/a/B", HEAD, b"x", 0.01, lambda result: ended.append(f"second {result}"))
        while not wire.closed:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.03)
        assert ended == [
            "first /a/B: no response within 0.01 s",
            "second peer: the client closed the connection",
        ]

    play(scene)


def test_a_silent_peer_is_given_up() -> None:
    async def scene(connection: Connection, wire: Wire) -> None:
        call = begin(connection)
        await asyncio.sleep(0)
        for _ in range(2):
            connection._tick()
        assert wire.frames()[-1] != (frames.PING, 0, 0, b"ostinato")
        connection._tick()
        await asyncio.sleep(0.01)
        assert wire.frames()[-1] == (frames.PING, 0, 0, b"ostinato")
        connection.data_received(frame(frames.PING, frames.ACK, 0, b"ostinato"))
        for _ in range(5):  # no second one so soon
            connection._tick()
        await asyncio.sleep(0.01)
        assert [each[0] for each in wire.frames()].count(frames.PING) == 1
        for _ in range(4):
            connection._tick()
        with pytest.raises(RpcError, match="peer: no answer for 8 s"):
            await call
        assert wire.closed

    play(scene)


def test_hostile_bytes_end_the_connection_and_nothing_else(request: pytest.FixtureRequest) -> None:
    rng = random.Random(20)

    async def once() -> None:
        connection, wire = connected(Limits(message=100_000, window=10_000))
        calls = [begin(connection, within=1), begin(connection, bytes(70_000), within=1)]
        stream = connection.stream("/a/C", HEAD, b"x", is_last=False)
        await asyncio.sleep(0)
        valid = b"".join(
            (
                *(answer(1, bytes(300)), frames.window_update(3, 100), frames.settings({4: 100, 5: 20_000})),
                *(answer(3, b"x" * 50), frame(frames.PING, 0, 0, bytes(8)), answer(5, bytes(2000))),
                frame(frames.GOAWAY, 0, 0, bytes(8)),
            )
        )
        data = bytearray(valid)
        for _ in range(rng.randint(1, 8)):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at : at + rng.randint(1, 4)] = rng.randbytes(rng.randint(0, 6))
                case 1:
                    data[at] = rng.choice(b"\x00\x01\x04\x05\x08\x09\x7f\xff")
                case 2:
                    del data[at : at + rng.randint(1, 40)]
                case _:
                    start = rng.randrange(len(data))
                    data[at:at] = data[start : start + rng.randint(1, 60)]
        while data and not wire.closed:
            size = rng.choice((1, 9, 50, 5000))
            connection.data_received(bytes(data[:size]))
            del data[:size]
        await asyncio.sleep(0)
        stream.close()
        await connection.close()
        for call in calls:
            if not call.done():
                await asyncio.wait([call])
            assert isinstance(call.exception(), RpcError | None)

    async def run() -> None:
        for _ in range(request.config.getoption("--fuzz") or 300):
            await once()

    asyncio.run(run())
