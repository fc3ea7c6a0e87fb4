"""Answers of HTTP/1.1, put together from pieces."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.http.response import Decompressor, InvalidHttp, MessageReader

PLAIN = b"HTTP/1.1 201 Created\r\nAudit-Id: 7\r\nContent-Length: 5\r\nWarning: a\r\nwarning: b\r\n\r\nhello"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKED_HEAD + b"5;a=b\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


def whole(data: bytes) -> MessageReader:
    reader = MessageReader()
    reader.feed(data)
    assert reader.complete
    return reader


@pytest.mark.parametrize(
    ("data", "status", "body", "keeps"),
    [
        (PLAIN, 201, b"hello", True),
        (CONTINUED, 201, b"hello", True),
        (CHUNKED, 200, b"hello 0123456789", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, b"", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
        (b"HTTP/1.1 200 OK\r\nConnection: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
    ],
)
def test_a_response_is_parsed_the_same_in_pieces_of_any_size(
    data: bytes, status: int, body: bytes, keeps: bool
) -> None:
    for size in (1, 2, 3, 7, len(data)):
        reader = MessageReader()
        for at in range(0, len(data), size):
            assert not reader.complete
            reader.feed(data[at : at + size])
        assert reader.complete
        assert (reader.status, reader.buffered, reader.keep_alive) == (status, len(body), keeps)
        assert reader.take() == body
        assert reader.buffered == 0


@pytest.mark.parametrize("data", [PLAIN, CHUNKED])
def test_data_beyond_the_response_prevents_reuse_of_the_connection(data: bytes) -> None:
    message = whole(data + b"more")
    assert message.take() == whole(data).take()
    assert not message.keep_alive


def test_names_of_headers_are_lower_case_the_first_value_counts_and_all_warnings() -> None:
    message = whole(PLAIN)
    assert message.headers == {"audit-id": "7", "content-length": "5", "warning": "a"}
    assert message.warnings == ["a", "b"]


def test_without_a_length_the_end_of_the_connection_is_the_end() -> None:
    reader = MessageReader()
    reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel")
    reader.feed(b"lo")
    assert not reader.complete
    reader.end()
    assert (reader.complete, reader.take(), reader.keep_alive) == (True, b"hello", False)
    half = MessageReader()
    half.feed(PLAIN[:-1])
    half.end()
    assert not half.complete


def test_the_response_to_head_has_no_body_whatever_its_headers_say() -> None:
    reader = MessageReader(bodiless=True)
    reader.feed(PLAIN[: -len(b"hello")])
    assert (reader.complete, reader.keep_alive, reader.take()) == (True, True, b"")


def test_a_partial_body_is_available_before_its_end() -> None:
    reader = MessageReader()
    reader.feed(CHUNKED_HEAD + b"a\r\n012")
    assert reader.take() == b"012"
    reader.feed(b"3456")
    reader.feed(b"789\r\n2\r\nab\r\n3\r\nc")
    assert reader.take() == b"3456789abc"
    assert not reader.complete
    plain = MessageReader()
    plain.feed(PLAIN[:-3])
    assert (plain.take(), plain.complete) == (b"he", False)


def test_gzip_is_decompressed_incrementally_in_bounded_pieces() -> None:
    for content in (b"hello", bytes(5_000_000), bytes(range(256)) * 9_000):
        packed = gzip.compress(content)
        for size in (1000, len(packed)):
            reading = Decompressor()
            pieces = [p for at in range(0, len(packed), size) for p in reading.pieces(packed[at : at + size])]
            assert b"".join(pieces) == content
            assert max(map(len, pieces)) <= 1024 * 1024
            reading.end()
    with pytest.raises(InvalidHttp):
        list(Decompressor().pieces(b"nonsense"))
    reading = Decompressor()
    assert list(reading.pieces(gzip.compress(b"hello")[:-3])) == [b"hello"]
    with pytest.raises(InvalidHttp):
        reading.end()


def test_gzip_in_several_parts_is_read_to_its_end_and_nothing_else_may_follow() -> None:
    contents = [b"hello", b"", bytes(3_000_000), b" world"]
    packed = b"".join(map(gzip.compress, contents))
    for size in (1, 20, len(packed)):
        reading = Decompressor()
        pieces = [p for at in range(0, len(packed), size) for p in reading.pieces(packed[at : at + size])]
        assert b"".join(pieces) == b"".join(contents)
        reading.end()
    for cut in (5, len(gzip.compress(b"hello")) + 5):
        reading = Decompressor()
        list(reading.pieces(packed[:cut]))
        with pytest.raises(InvalidHttp):
            reading.end()
    with pytest.raises(InvalidHttp):
        list(Decompressor().pieces(packed + b"rubbish"))
    Decompressor().end()  # nothing came at all, as with a HEAD


def test_a_piece_of_gzip_that_was_flushed_is_given_at_once() -> None:
    packer, reading = zlib.compressobj(wbits=31), Decompressor()
    for line in (b"one\n", b"two\n"):
        assert b"".join(reading.pieces(packer.compress(line) + packer.flush(zlib.Z_SYNC_FLUSH))) == line


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    ],
)
def test_invalid_http_is_rejected(data: bytes) -> None:
    with pytest.raises(InvalidHttp):
        MessageReader().feed(data)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_any_input_is_a_response_or_rejected(data: bytes, size: int) -> None:
    reader = MessageReader()
    try:
        for at in range(0, len(data), size):
            reader.feed(CHUNKED_HEAD * (at == 0) + data[at : at + size])
            if reader.complete:
                return
    except InvalidHttp:
        pass
