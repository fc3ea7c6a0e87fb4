"""Answers of HTTP/1.1, put together from pieces."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.client.http_message import Message, MessageReader, NotHttp
from ostinato.client.transport import AnswerTooLarge

LONGEST = 1000
PLAIN = b"HTTP/1.1 201 Created\r\nAudit-Id: 7\r\nContent-Length: 5\r\nWarning: a\r\nwarning: b\r\n\r\nhello"
CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKED_HEAD + b"5;a=b\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n"
CONTINUED = b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN


def whole(data: bytes, longest: int = LONGEST) -> Message:
    message = MessageReader(longest).feed(data)
    assert message is not None
    return message


@pytest.mark.parametrize(
    ("data", "status", "body", "keeps"),
    [
        (PLAIN, 201, b"hello", True),
        (CONTINUED, 201, b"hello", True),
        (CHUNKED, 200, b"hello 0123456789", True),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
        (b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", 200, b"", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx", 200, b"x", False),
    ],
)
def test_an_answer_is_the_same_in_pieces_of_any_size(data: bytes, status: int, body: bytes, keeps: bool) -> None:
    for size in (1, 2, 3, 7, len(data)):
        reader, found = MessageReader(LONGEST), list[Message | None]()
        for at in range(0, len(data), size):
            found.append(reader.feed(data[at : at + size]))
        *before, message = found
        assert not any(before)
        assert message is not None
        assert (message.status, message.body, message.keeps) == (status, body, keeps)


@pytest.mark.parametrize("data", [PLAIN, CHUNKED])
def test_after_more_than_the_answer_the_connection_is_of_no_use(data: bytes) -> None:
    message = whole(data + b"more")
    assert message.body == whole(data).body
    assert not message.keeps


def test_names_of_headers_are_lower_case_the_first_value_counts_and_all_warnings() -> None:
    message = whole(PLAIN)
    assert message.headers == {"audit-id": "7", "content-length": "5", "warning": "a"}
    assert message.warnings == ["a", "b"]


def test_without_a_length_the_end_of_the_connection_is_the_end() -> None:
    reader = MessageReader(LONGEST)
    assert reader.feed(b"HTTP/1.1 200 OK\r\n\r\nhel") is None
    assert reader.feed(b"lo") is None
    message = reader.end()
    assert message is not None
    assert (message.body, message.keeps) == (b"hello", False)
    half = MessageReader(LONGEST)
    half.feed(PLAIN[:-1])
    assert half.end() is None


def test_gzip_is_decompressed_within_bounds() -> None:
    def sent(body: bytes) -> bytes:
        return b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    assert whole(sent(gzip.compress(b"x" * LONGEST))).body == b"x" * LONGEST
    with pytest.raises(AnswerTooLarge):
        whole(sent(gzip.compress(b"x" * (LONGEST + 1))))
    for broken in (b"nonsense", gzip.compress(b"hello")[:-3]):
        with pytest.raises(NotHttp):
            whole(sent(broken))


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + b"x" * 1001,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFF\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001,
    ],
)
def test_more_than_is_allowed_is_refused(data: bytes) -> None:
    with pytest.raises(AnswerTooLarge):
        MessageReader(LONGEST).feed(data)


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
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000,
    ],
)
def test_what_is_no_http_is_refused(data: bytes) -> None:
    with pytest.raises(NotHttp):
        MessageReader(LONGEST).feed(data)


@given(st.binary(max_size=200), st.integers(1, 50))
def test_anything_is_an_answer_or_refused(data: bytes, size: int) -> None:
    reader = MessageReader(LONGEST)
    try:
        for at in range(0, len(data), size):
            if reader.feed(CHUNKED_HEAD * (at == 0) + data[at : at + size]):
                return
    except (NotHttp, AnswerTooLarge):
        pass
