"""Responses, parsed from pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.http.errors import InvalidHttp
from ostinato.http.response import ResponseParser

PLAIN = b"HTTP/1.1 201 Created\r\nAudit-Id: 7\r\nContent-Length: 5\r\nWarning: a\r\nwarning: b\r\n\r\nhello"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKED_HEAD + b"5;a=b\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


def whole(data: bytes) -> ResponseParser:
    reader = ResponseParser()
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
        reader = ResponseParser()
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
    assert message.values("warning") == ["a", "b"]


def test_without_a_length_the_end_of_the_connection_is_the_end() -> None:
    reader = ResponseParser()
    reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel")
    reader.feed(b"lo")
    assert not reader.complete
    reader.end()
    assert (reader.complete, reader.take(), reader.keep_alive) == (True, b"hello", False)
    half = ResponseParser()
    half.feed(PLAIN[:-1])
    half.end()
    assert not half.complete


def test_the_response_to_head_has_no_body_whatever_its_headers_say() -> None:
    reader = ResponseParser(bodiless=True)
    reader.feed(PLAIN[: -len(b"hello")])
    assert (reader.complete, reader.keep_alive, reader.take()) == (True, True, b"")


def test_a_partial_body_is_available_before_its_end() -> None:
    reader = ResponseParser()
    reader.feed(CHUNKED_HEAD + b"a\r\n012")
    assert reader.take() == b"012"
    reader.feed(b"3456")
    reader.feed(b"789\r\n2\r\nab\r\n3\r\nc")
    assert reader.take() == b"3456789abc"
    assert not reader.complete
    plain = ResponseParser()
    plain.feed(PLAIN[:-3])
    assert (plain.take(), plain.complete) == (b"he", False)


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
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000,
    ],
)
def test_invalid_http_is_rejected(data: bytes) -> None:
    with pytest.raises(InvalidHttp):
        ResponseParser().feed(data)


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
@pytest.mark.parametrize(
    ("fields", "keep_alive"),
    [
        (b"", True),
        (b"Content-Length: 0\r\n", True),
        (b"Content-Length: 2\r\n", False),
        (b"Transfer-Encoding: chunked\r\n", False),
        (b"Connection: close\r\n", False),
    ],
)
def test_a_status_without_body_that_announces_one_prevents_reuse(
    status: bytes, fields: bytes, keep_alive: bool
) -> None:
    response = whole(b"HTTP/1.1 " + status + b"\r\n" + fields + b"\r\n")
    assert (response.take(), response.keep_alive) == (b"", keep_alive)


def test_an_upgrade_is_accepted_only_where_it_was_requested() -> None:
    data = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nContent-Length: 4\r\n\r\nnext"
    response = ResponseParser(accepts_upgrade=True)
    response.feed(data)
    assert (response.status, response.complete, response.take(), response.rest) == (101, True, b"", b"next")
    with pytest.raises(InvalidHttp, match="switched protocols"):
        ResponseParser().feed(data)


def test_fields_keep_their_order_names_and_bytes() -> None:
    response = whole(
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nX:\t \xc3\xbc\xff \r\nset-cookie: b\r\nContent-Length: 0\r\n\r\n"
    )
    assert response.fields == [("Set-Cookie", "a"), ("X", "\xfc\udcff"), ("set-cookie", "b"), ("Content-Length", "0")]
    assert response.values("set-cookie") == ["a", "b"]
    assert response.values("absent") == ()


def test_a_head_received_byte_by_byte_is_not_searched_again_and_again() -> None:
    response = ResponseParser()
    head = b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 100_000 + b"\r\nContent-Length: 0\r\n\r\n"
    for at in range(0, len(head), 7):
        response.feed(head[at : at + 7])
    assert response.complete


def test_line_feeds_alone_are_accepted_where_that_is_requested() -> None:
    for data in (b"HTTP/1.1 200 OK\nA: b\n\nx\ny\n", b"HTTP/1.1 200 OK\r\nA: b\n\r\nx\ny\n"):
        for size in (1, 2, len(data)):
            response = ResponseParser(lenient_line_ends=True)
            for at in range(0, len(data), size):
                response.feed(data[at : at + size])
            assert (response.status, dict(response.headers), response.take()) == (200, {"a": "b"}, b"x\ny\n")
    with pytest.raises(InvalidHttp, match="carriage return"):
        ResponseParser().feed(b"HTTP/1.1 200 OK\nA: b\n\n")


PIECES = (
    *(b"HTTP/1.1 200 OK", b"HTTP/1.1 100 Continue", b"HTTP/1.0 204 x", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b": "),
    *(b"Content-Length: ", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n", b"5", b"0", b"hello", b";a=b"),
    *(b"5\r\nhello\r\n", b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"\x00", b" ", b"A: b\r\n"),
)
MESSAGES = st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=25).map(b"".join)


def outcome(data: bytes, cuts: list[int]) -> object:
    """Return what is received from data that is cut at some positions, and then the end of the connection."""
    response, rest = ResponseParser(), b""
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    try:
        for start, end in pairwise(edges):
            if response.complete:
                rest += data[start:end]
            else:
                response.feed(data[start:end])
                rest += response.rest
    except InvalidHttp:
        return "invalid"
    response.end()
    return response.status, response.fields if response.status else None, response.complete, response.take(), rest


@settings(max_examples=300)
@given(
    st.sampled_from([b"", b"HTTP/1.1 200 OK\r\n", CHUNKED_HEAD]),
    MESSAGES | st.sampled_from([PLAIN, CHUNKED, CONTINUED]),
    st.lists(st.integers(1, 200), max_size=30),
)
def test_any_split_of_the_stream_gives_the_same_result(begin: bytes, data: bytes, cuts: list[int]) -> None:
    assert outcome(begin + data, cuts) == outcome(begin + data, [])
