"""Answers of backends: what is read, and what is refused because it could be read in two ways."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.http.exchange import Head, MalformedAnswer, body_of, read_head

OK = b"HTTP/1.1 200 OK\r\n"


class Bytes:
    """A `ByteStream` of bytes that have all come, and of an end."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def read(self, size: int) -> bytes:
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    async def read_exactly(self, size: int) -> bytes:
        if len(self.data) < size:
            raise ConnectionError("unexpected EOF")
        return await self.read(size)

    async def read_until(self, mark: bytes) -> bytes:
        at = self.data.find(mark)
        if at < 0:
            raise ConnectionError("unexpected EOF" if self.data else "EOF")
        return await self.read(at + len(mark))

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def read(data: bytes) -> tuple[Head, bytes, bytes]:
    """Head, body, and what is left after that."""

    async def whole() -> tuple[Head, bytes, bytes]:
        stream = Bytes(data)
        head = await read_head(stream)
        body = b"".join([piece async for piece in body_of(stream, head)])
        return head, body, stream.data

    return asyncio.run(whole())


@pytest.mark.parametrize(
    ("data", "body", "rest"),
    [
        (OK + b"Content-Length: 2\r\n\r\nokrest", b"ok", b"rest"),
        (OK + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok", b"ok", b""),
        (OK + b"\r\nto the end", b"to the end", b""),
        (b"HTTP/1.0 200\r\n\r\nold", b"old", b""),
        (OK + b"Transfer-Encoding: Chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nT: 1\r\n\r\nrest", b"ok", b"rest"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\na \r\n0123456789\r\n0\r\n\r\n", b"0123456789", b""),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", b"", b"ok"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n" + OK + b"\r\nx", b"x", b""),
    ],
)
def test_answers_are_read_to_their_end_and_no_further(data: bytes, body: bytes, rest: bytes) -> None:
    _, *told = read(data)
    assert told == [body, rest]


def test_all_values_of_a_header_are_kept_in_order() -> None:
    head, *_ = read(OK + b"Set-Cookie: a=1\r\nX: \t y \r\nset-cookie: b=2\r\nContent-Length: 0\r\n\r\n")
    assert head.fields[:3] == [("Set-Cookie", "a=1"), ("X", "y"), ("set-cookie", "b=2")]
    assert head.values("set-cookie") == ["a=1", "b=2"]
    assert head.headers["set-cookie"] == "a=1"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"HTTP/1.1 200 OK\n\n", "carriage return"),
        (OK + b"A: 1\nB: 2\r\n\r\n", "carriage return"),
        (OK + b"A: 1\rB: 2\r\n\r\n", "malformed MIME header line"),
        (OK + b"A: 1\x00\r\n\r\n", "malformed MIME header line"),
        (OK + b"A: 1\r\n 2\r\n\r\n", "malformed MIME header line"),
        (OK + b"A : 1\r\n\r\n", "malformed MIME header line"),
        (OK + b": 1\r\n\r\n", "malformed MIME header line"),
        (OK + b"A\r\n\r\n", "malformed MIME header line"),
        (OK + b"A(: 1\r\n\r\n", "malformed MIME header line"),
        (OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nok!", "multiple Content-Length"),
        (OK + b"Content-Length: 2, 2\r\n\r\nok", "bad Content-Length"),
        (OK + b"Content-Length: +2\r\n\r\nok", "bad Content-Length"),
        (OK + b"Content-Length: -2\r\n\r\nok", "bad Content-Length"),
        (OK + b"Content-Length: 0x2\r\n\r\nok", "bad Content-Length"),
        (OK + b"Content-Length: 2_0\r\n\r\nok", "bad Content-Length"),
        (OK + "Content-Length: ٢\r\n\r\nok".encode(), "bad Content-Length"),
        (OK + b"Content-Length:\r\n\r\nok", "bad Content-Length"),
        (OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\nok", "bad Content-Length"),
        (OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "both"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", "unsupported transfer encoding"),
        (OK + b"Transfer-Encoding: identity\r\n\r\n", "unsupported transfer encoding"),
        (OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "too many transfer encodings"),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "unsupported transfer encoding"),
        (b"HTTP/2.0 200 OK\r\n\r\n", "malformed HTTP version"),
        (b"HTTP/1.1 99 OK\r\n\r\n", "malformed HTTP status code"),
        (b"HTTP/1.1 099 OK\r\n\r\n", "malformed HTTP status code"),
        (b"HTTP/1.1 1000 OK\r\n\r\n", "malformed HTTP status code"),
        (b"HTTP/1.1 +20 OK\r\n\r\n", "malformed HTTP status code"),
        (b"HTTP/1.1\r\n\r\n", "malformed HTTP response"),
        (b"\r\n", "malformed HTTP response"),
        (OK + b"A: b\r\n" * 200_000 + b"\r\n", "exceeded"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 9 + OK + b"\r\n", "too many 1xx"),
    ],
)
def test_heads_that_can_be_read_in_two_ways_are_refused(data: bytes, says: str) -> None:
    with pytest.raises(MalformedAnswer, match=says):
        read(data)


@pytest.mark.parametrize(
    "chunks",
    [
        *(b"2\nok\r\n0\r\n\r\n", b"2\r\nok\n0\r\n\r\n", b"0x2\r\nok\r\n0\r\n\r\n", b"+2\r\nok\r\n0\r\n\r\n"),
        *(b"-2\r\nok\r\n0\r\n\r\n", b"0_2\r\nok\r\n0\r\n\r\n", b" 2\r\nok\r\n0\r\n\r\n", b"\r\nok\r\n0\r\n\r\n"),
        *(
            b"2\r\nokXX0\r\n\r\n",
            b"f" * 17 + b"\r\nok\r\n",
            b"2;\x00\r\nok\r\n0\r\n\r\n",
            b"2\r\nok\r\n0\r\nbad trailer\r\n\r\n",
        ),
        *(b"5\r\nok", b"2\r\nok\r\n", b"", b"2\r\nok\r\n0\r\n" + b"T: 1\r\n" * 20_000 + b"\r\n"),
    ],
)
def test_chunks_that_are_not_well_formed_break_the_answer_off(chunks: bytes) -> None:
    with pytest.raises(ConnectionError):
        read(OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)


def test_a_body_that_is_shorter_than_its_length_breaks_off() -> None:
    with pytest.raises(ConnectionError, match="unexpected EOF"):
        read(OK + b"Content-Length: 5\r\n\r\nok")


@pytest.mark.parametrize(
    ("data", "is_last"),
    [
        (OK + b"Content-Length: 0\r\n\r\n", False),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", False),
        (OK + b"Content-Length: 0\r\nConnection: keep-alive, Close\r\n\r\n", True),
        (OK + b"\r\n", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", True),
    ],
)
def test_a_connection_is_used_again_only_if_the_end_of_the_answer_is_certain(data: bytes, is_last: bool) -> None:
    assert read(data)[0].is_last == is_last


def test_nothing_at_all_is_an_end() -> None:
    with pytest.raises(ConnectionError, match=r"^EOF$"):
        read(b"")


PIECES = (
    *(b"HTTP/1.1", b"HTTP/1.0", b" ", b"200", b"101", b"100", b"204", b"OK", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b": "),
    *(b"Content-Length", b"Transfer-Encoding", b"chunked", b"Connection", b"close", b"2", b"0", b"ok", b";", b"\x00"),
)


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=40))
def test_whatever_comes_is_read_or_refused_as_a_broken_connection(pieces: list[bytes]) -> None:
    for data in (b"".join(pieces), OK + b"".join(pieces)):
        try:
            _, body, rest = read(data)
        except ConnectionError:
            continue
        assert len(body) + len(rest) <= len(data)
