"""A connection that is upgraded carries messages, or bytes, both ways."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.unit.server.http.test_connection import HEAD, UPGRADE, Stage, masked

from ostinato.server.request import Answer, Request
from ostinato.streams.upgrade import Socket, Upgrade

Serve = Callable[[Socket], Awaitable[None]]
SPDY = b"POST /exec HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n"


def _play(
    serve: Serve, script: Callable[[Stage], Awaitable[None]], protocol: str = "websocket", sub: str = "p"
) -> None:
    async def handle(_: Request) -> Answer:
        return Upgrade(serve, protocol, sub)

    Stage(handle).run(script)  # type: ignore[arg-type]


async def _echo(socket: Socket) -> None:
    while (data := await socket.receive()) is not None:
        await socket.send(data.upper())


def test_messages_go_both_ways_and_a_message_may_come_in_parts() -> None:
    async def script(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(UPGRADE + HEAD + masked(2, b"early"))
        await stage.settle()
        head, _, frames = wire.sent.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
        assert b"Sec-WebSocket-Protocol: p" in head
        assert frames == b"\x82\x05EARLY"
        wire.sent = b""
        begun = masked(2, b"he")
        connection.data_received(bytes((begun[0] & 0x7F,)) + begun[1:] + masked(9, b"?"))
        connection.data_received(masked(0, b"llo"))
        await stage.settle()
        assert wire.sent == b"\x8a\x01?\x82\x05HELLO"
        connection.data_received(masked(8, b"\x03\xe8"))
        await stage.settle()
        assert wire.sent.endswith(b"\x88\x02\x03\xe8")
        assert wire.closed

    _play(_echo, script)


def test_the_server_that_is_done_waits_for_the_good_bye_of_its_client() -> None:
    async def serve(socket: Socket) -> None:
        await socket.send(b"all")

    async def script(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(UPGRADE + HEAD)
        await stage.settle()
        assert wire.sent.endswith(b"\x82\x03all\x88\x02\x03\xe8")
        await stage.world.clock.sleep(300)
        assert not wire.closed, "the client may be slow to read what is on its way"
        connection.data_received(masked(2, b"ignored") + masked(8, b"\x03\xe8"))
        await stage.settle()
        assert wire.closed
        silent, line = stage.connect()
        silent.data_received(UPGRADE + HEAD)
        await stage.world.clock.sleep(700)
        assert line.closed

    _play(serve, script)


def test_reading_pauses_while_messages_are_not_received() -> None:
    taken: list[int] = []

    async def serve(socket: Socket) -> None:
        await stage_clock(100)
        while (data := await socket.receive()) is not None:
            taken.append(len(data))

    async def stage_clock(seconds: float) -> None:
        await stages[0].world.clock.sleep(seconds)

    stages: list[Stage] = []

    async def script(stage: Stage) -> None:
        stages.append(stage)
        connection, wire = stage.connect()
        connection.data_received(SPDY + HEAD)
        await stage.settle()
        for _ in range(5):
            connection.data_received(b"x" * 60_000)
        assert not wire.reading
        await stage.world.clock.sleep(101)
        assert wire.reading
        assert sum(taken) == 300_000
        connection.connection_lost(None)
        await stage.settle()

    _play(serve, script, "SPDY/3.1", "v4.channel.k8s.io")


def test_another_protocol_gets_bytes_as_they_come() -> None:
    async def script(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(SPDY + HEAD + b"ab")
        await stage.settle()
        connection.data_received(b"c")
        await stage.settle()
        head, _, rest = wire.sent.partition(b"\r\n\r\n")
        assert b"Upgrade: SPDY/3.1" in head
        assert b"X-Stream-Protocol-Version: v4.channel.k8s.io" in head
        assert rest == b"ABC"
        connection.connection_lost(None)
        await stage.settle()

    _play(_echo, script, "SPDY/3.1", "v4.channel.k8s.io")


def test_a_disconnect_cancels_the_upgraded_handler() -> None:
    ended: list[bool] = []

    async def serve(socket: Socket) -> None:
        try:
            await socket.receive()
        finally:
            ended.append(True)

    async def script(stage: Stage) -> None:
        connection, _ = stage.connect()
        connection.data_received(UPGRADE + HEAD)
        await stage.settle()
        connection.connection_lost(None)
        await stage.settle()
        assert ended == [True]

    _play(serve, script)


def test_a_server_that_stops_sends_going_away() -> None:
    async def script(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(UPGRADE + HEAD)
        await stage.settle()
        connection.finish()
        await stage.settle()
        assert wire.sent.endswith(b"\x88\x02\x03\xe9")
        assert wire.closed

    _play(_echo, script)


def test_a_message_beyond_all_bounds_ends_the_connection() -> None:
    async def script(stage: Stage) -> None:
        connection, wire = stage.connect()
        connection.data_received(UPGRADE + HEAD)
        await stage.settle()
        connection.data_received(b"\x82\xff" + (1 << 30).to_bytes(8, "big"))
        await stage.settle()
        assert wire.sent.endswith(b"\x88\x02\x03\xf1")
        assert wire.closed

    _play(_echo, script)
