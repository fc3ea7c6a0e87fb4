"""WebSocket frames and handshake."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.http.errors import InvalidHttp
from ostinato.http.response import ResponseParser
from ostinato.http.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    MAX_MESSAGE,
    PING,
    PONG,
    FrameReader,
    InvalidFrame,
    accept_key,
    check_upgrade,
    close,
    frame,
    handshake,
    upgrade_fields,
)

MASK = b"\x01\x02\x03\x04"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="  # of RFC 6455


@given(st.lists(st.binary(max_size=300), max_size=5), st.integers(1, 50), st.booleans())
def test_messages_are_received_as_they_were_sent_at_any_split(
    messages: list[bytes], size: int, from_client: bool
) -> None:
    received: list[bytes] = []
    reader = FrameReader(received.append, None if from_client else lambda: MASK)
    data = b"".join(frame(BINARY, each, MASK if from_client else b"") for each in messages)
    for at in range(0, len(data), size):
        assert reader.feed(data[at : at + size]) == (b"", False)
    assert received == messages


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536])
def test_lengths_have_three_forms(size: int) -> None:
    received: list[bytes] = []
    FrameReader(received.append).feed(frame(BINARY, bytes(size), MASK))
    FrameReader(received.append, lambda: MASK).feed(frame(BINARY, bytes(size)))
    assert received == [bytes(size)] * 2


def test_each_side_masks_as_it_must() -> None:
    with pytest.raises(InvalidFrame, match="1002"):
        FrameReader().feed(frame(BINARY, b"x"))
    with pytest.raises(InvalidFrame, match="1002"):
        FrameReader(None, lambda: MASK).feed(frame(BINARY, b"x", MASK))
    assert FrameReader().feed(frame(PING, b"x", MASK)) == (frame(PONG, b"x"), False)
    assert FrameReader(None, lambda: MASK).feed(frame(PING, b"x")) == (frame(PONG, b"x", MASK), False)
    assert FrameReader(None, lambda: MASK).feed(close(1001)) == (close(1001, MASK), True)


def test_fragments_are_joined_and_bounded() -> None:
    received: list[bytes] = []
    reader = FrameReader(received.append)
    first = bytearray(frame(BINARY, b"ab", MASK))
    first[0] &= 0x7F
    reader.feed(bytes(first) + frame(PING, b"", MASK) + frame(CONTINUATION, b"cd", MASK))
    assert received == [b"abcd"]
    with pytest.raises(InvalidFrame, match="1009"):
        reader.feed(frame(BINARY, bytes(MAX_MESSAGE + 1), MASK)[:20])
    with pytest.raises(InvalidFrame, match="1002"):
        FrameReader().feed(frame(CLOSE, bytes(126), MASK))


def parsed(data: bytes) -> ResponseParser:
    response = ResponseParser(accepts_upgrade=True)
    response.feed(data)
    return response


def test_the_handshake_is_that_of_the_rfc() -> None:
    assert accept_key(KEY) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert check_upgrade(parsed(handshake(KEY, "b")), KEY, ["a", "b"]) == "b"
    assert check_upgrade(parsed(handshake(KEY, "")), KEY, ["a"]) == ""
    assert dict(upgrade_fields(KEY, ["a", "b"]))["Sec-WebSocket-Protocol"] == "a,b"
    assert "Sec-WebSocket-Protocol" not in dict(upgrade_fields(KEY, []))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Upgrade: websocket", b"Upgrade: h2c"),
        (b"Connection: Upgrade", b"Connection: close"),
        (b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", b"AAAA"),
        (b"Protocol: a", b"Protocol: c"),
        (b"Upgrade: websocket", b"Upgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate"),
    ],
)
def test_an_upgrade_to_anything_else_is_rejected(old: bytes, new: bytes) -> None:
    with pytest.raises(InvalidHttp):
        check_upgrade(parsed(handshake(KEY, "a").replace(old, new, 1)), KEY, ["a"])
