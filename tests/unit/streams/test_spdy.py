"""SPDY/3.1: frames and streams."""

from __future__ import annotations

import asyncio
import hashlib
import zlib
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.streams.sockets import ends

from ostinato.streams import spdy_frames as frames
from ostinato.streams.spdy import SpdyConnection
from ostinato.world import Simulation


def _run(play: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await play()

    Simulation(1).run(main())


def test_the_dictionary_is_that_of_the_protocol() -> None:
    assert len(frames.DICTIONARY) == 1423
    assert hashlib.sha256(frames.DICTIONARY).hexdigest().startswith("51d27341373f923f")


def test_frames_are_read_as_they_were_written_however_they_are_cut() -> None:
    writer = frames.FrameWriter()
    written = b"".join(
        [
            writer.open(1, {"streamtype": "data", "port": "80"}),
            writer.accept(1),
            writer.open(3, {"streamtype": "error", "port": "80"}),
            frames.data_frame(1, b"hello"),
            frames.data_frame(1, b"", last=True),
            frames.reset(3, frames.CANCEL),
            frames.ping(7),
            frames.go_away(3),
        ]
    )
    wanted = [
        frames.Frame(frames.SYN_STREAM, 1, headers={"streamtype": "data", "port": "80"}),
        frames.Frame(frames.SYN_REPLY, 1),
        frames.Frame(frames.SYN_STREAM, 3, headers={"streamtype": "error", "port": "80"}),
        frames.Frame(None, 1, data=b"hello"),
        frames.Frame(None, 1, frames.FIN),
        frames.Frame(frames.RST_STREAM, 3, code=frames.CANCEL),
        frames.Frame(frames.PING, 7),
        frames.Frame(frames.GOAWAY),
    ]
    for size in (1, 3, 11, len(written)):
        reader = frames.FrameReader()
        pieces = [written[at : at + size] for at in range(0, len(written), size)]
        assert [frame for piece in pieces for frame in reader.feed(piece)] == wanted


def _control(kind: int, body: bytes) -> bytes:
    return (1 << 31 | 3 << 16 | kind).to_bytes(4, "big") + b"\0" + len(body).to_bytes(3, "big") + body


def _headers(plain: bytes) -> bytes:
    deflate = zlib.compressobj(zdict=frames.DICTIONARY)
    return bytes(10) + deflate.compress(plain) + deflate.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x00\x00\x00\x01\x00\xff\xff\xff", "exceeds the limit"),
        (b"\x80\x02\x00\x01\x00\x00\x00\x00", "version 2"),
        (_control(frames.SYN_STREAM, b"\0\0"), "at least 10"),
        (_control(frames.SYN_STREAM, bytes(10) + b"nonsense"), "cannot be decompressed"),
        (_control(frames.SYN_STREAM, _headers(b"\0\0\0\x01\0\0\0\x05ab")), "truncated"),
        (_control(frames.SYN_STREAM, _headers(b"\xff\xff\xff\xff")), "truncated"),
        (_control(frames.SYN_STREAM, _headers(bytes(1 << 20))), "headers exceed"),
    ],
    ids=["too long", "another version", "too short", "no headers", "cut headers", "many headers", "a bomb"],
)
def test_invalid_frames_are_rejected(data: bytes, why: str) -> None:
    with pytest.raises(frames.SpdyError, match=why):
        list(frames.FrameReader().feed(data))


@given(st.lists(st.binary(max_size=60), max_size=8))
def test_bytes_of_any_kind_are_frames_or_an_error(pieces: list[bytes]) -> None:
    reader = frames.FrameReader()
    try:
        for piece in pieces:
            list(reader.feed(piece))
    except frames.SpdyError:
        return


@given(st.integers(1, 9), st.binary(max_size=80))
def test_a_control_frame_of_any_content_is_a_frame_or_an_error(kind: int, body: bytes) -> None:
    try:
        assert len(list(frames.FrameReader().feed(_control(kind, body)))) == 1
    except frames.SpdyError:
        return


def test_streams_carry_bytes_both_ways_and_each_side_closes_its_own() -> None:
    async def play() -> None:
        mine, theirs = ends()
        async with SpdyConnection(mine, server=False) as client, SpdyConnection(theirs, server=True) as server:
            opening = asyncio.ensure_future(client.open({"streamtype": "data"}))
            accepted = await server.accept()
            stream = await opening
            assert accepted is not None
            assert accepted.headers == {"streamtype": "data"}
            big = bytes(range(256)) * 1000
            sending = asyncio.ensure_future(stream.write(big))
            got = b""
            while len(got) < len(big):
                got += await accepted.read() or b""
            await sending
            assert got == big
            await stream.close()
            assert await accepted.read() is None
            await accepted.write(b"after")
            await accepted.close()
            assert await stream.read() == b"after"
            assert await stream.read() is None
            assert not client._streams
            assert not server._streams

    _run(play)


def test_a_stream_that_is_reset_ends_on_the_other_side_and_its_neighbours_go_on() -> None:
    async def play() -> None:
        mine, theirs = ends()
        async with SpdyConnection(mine, server=False) as client, SpdyConnection(theirs, server=True) as server:
            streams = await asyncio.gather(client.open({"n": "1"}), client.open({"n": "2"}))
            first, second = await server.accept(), await server.accept()
            assert first is not None
            assert second is not None
            await first.reset()
            assert await streams[0].read() is None
            await streams[0].write(b"dropped")
            await second.write(b"here")
            assert await streams[1].read() == b"here"

    _run(play)


def test_a_connection_that_is_lost_ends_all_streams() -> None:
    async def play() -> None:
        mine, theirs = ends()
        async with SpdyConnection(mine, server=False) as client, SpdyConnection(theirs, server=True) as server:
            stream = await client.open({})
            accepted = await server.accept()
            assert accepted is not None
            mine.close()
            assert await accepted.read() is None
            assert await server.accept() is None
            theirs.close()
            assert await stream.read() is None
            with pytest.raises(ConnectionError):
                await client.open({})

    _run(play)


async def _answers(data: bytes) -> list[frames.Frame]:
    """What a server says to bytes of a client that then goes."""
    mine, theirs = ends()
    async with SpdyConnection(theirs, server=True) as server:
        await mine.send(data)
        mine.close()
        while await server.accept() is not None:
            pass
    theirs.close()
    reader, said = frames.FrameReader(), []
    while (piece := await mine.receive()) is not None:
        said += list(reader.feed(piece))
    return said


def test_a_ping_is_answered_and_bytes_that_mean_nothing_end_the_connection() -> None:
    async def play() -> None:
        assert await _answers(frames.ping(5)) == [frames.Frame(frames.PING, 5)]
        assert await _answers(frames.ping(6)) == [], "an answer to one of the server's own"
        assert await _answers(b"GET / HTTP/1.1\r\n\r\n") == [frames.Frame(frames.GOAWAY)]

    _run(play)


def test_a_stream_with_a_number_that_is_not_the_clients_is_rejected() -> None:
    async def play() -> None:
        writer = frames.FrameWriter()
        wrong = await _answers(writer.open(2, {}))
        assert wrong == [frames.Frame(frames.RST_STREAM, 2, code=frames.PROTOCOL_ERROR)]
        writer = frames.FrameWriter()
        twice = await _answers(writer.open(1, {}) + writer.open(1, {}))
        assert [frame.type for frame in twice] == [frames.SYN_REPLY, frames.RST_STREAM]

    _run(play)


def test_an_unread_stream_blocks_its_sender_and_a_dropped_one_does_not() -> None:
    async def play() -> None:
        mine, theirs = ends()
        async with SpdyConnection(mine, server=False) as client, SpdyConnection(theirs, server=True) as server:
            stream = await client.open({})
            accepted = await server.accept()
            assert accepted is not None
            sending = asyncio.ensure_future(stream.write(bytes(1 << 22)))
            for _ in range(500):
                await asyncio.sleep(0)
            assert not sending.done()
            accepted.drop()
            await sending

    _run(play)
