"""Responses on byte streams."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.http.errors import InvalidHttp
from ostinato.http.exchange import read_body, read_response
from ostinato.http.response import ResponseParser

OK = b"HTTP/1.1 200 OK\r\n"


class Bytes:
    """A `ByteStream` whose peer has sent everything and closed the connection."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    async def read(self, size: int) -> bytes:
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def unread(self, data: bytes) -> None:
        self.data = data + self.data

    async def write(self, data: bytes) -> None: ...

    def close(self) -> None: ...


def read(data: bytes) -> tuple[ResponseParser, bytes, bytes]:
    """Return the response, its body, and what follows it."""

    async def whole() -> tuple[ResponseParser, bytes, bytes]:
        stream = Bytes(data)
        response = await read_response(stream)
        body = b"".join([piece async for piece in read_body(stream, response)])
        return response, body, response.rest + stream.data

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
def test_a_response_is_read_to_its_end_and_no_further(data: bytes, body: bytes, rest: bytes) -> None:
    _, *found = read(data)
    assert found == [body, rest]


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
def test_ambiguous_heads_are_rejected_with_the_reason(data: bytes, says: str) -> None:
    with pytest.raises(InvalidHttp, match=says):
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
def test_malformed_chunks_fail_the_response(chunks: bytes) -> None:
    with pytest.raises(ConnectionError):
        read(OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)


def test_a_body_shorter_than_its_length_fails_the_response() -> None:
    with pytest.raises(ConnectionError, match="unexpected EOF"):
        read(OK + b"Content-Length: 5\r\n\r\nok")


@pytest.mark.parametrize(
    ("data", "keep_alive"),
    [
        (OK + b"Content-Length: 0\r\n\r\n", True),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", True),
        (OK + b"Content-Length: 0\r\nConnection: keep-alive, Close\r\n\r\n", False),
        (OK + b"\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", False),
    ],
)
def test_a_connection_is_reused_only_if_the_end_of_the_response_is_certain(data: bytes, keep_alive: bool) -> None:
    assert read(data)[0].keep_alive == keep_alive


def test_a_connection_closed_without_a_response_is_eof() -> None:
    with pytest.raises(ConnectionError, match=r"^EOF$"):
        read(b"")


PIECES = (
    *(b"HTTP/1.1", b"HTTP/1.0", b" ", b"200", b"101", b"100", b"204", b"OK", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b": "),
    *(b"Content-Length", b"Transfer-Encoding", b"chunked", b"Connection", b"close", b"2", b"0", b"ok", b";", b"\x00"),
)


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=40))
def test_any_input_is_a_response_or_a_connection_error(pieces: list[bytes]) -> None:
    for data in (b"".join(pieces), OK + b"".join(pieces)):
        try:
            _, body, rest = read(data)
        except ConnectionError:
            continue
        assert len(body) + len(rest) <= len(data)
