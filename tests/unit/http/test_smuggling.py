"""Framing that two implementations could read differently, in both directions.

A request is rejected, or its connection takes no further request; a response is rejected.
"""

from __future__ import annotations

import pytest

from ostinato.http.errors import InvalidHttp
from ostinato.http.request import parse_head
from ostinato.http.response import ResponseParser

AMBIGUOUS = {
    "length and chunked": "Content-Length: 6\r\nTransfer-Encoding: chunked",
    "chunked and length": "Transfer-Encoding: chunked\r\nContent-Length: 6",
    "two lengths": "Content-Length: 6\r\nContent-Length: 5",
    "two lengths in one": "Content-Length: 6, 6",
    "two spellings of a length": "Content-Length: 6\r\nContent-Length: 06",
    "signed length": "Content-Length: +6",
    "negative length": "Content-Length: -6",
    "hexadecimal length": "Content-Length: 0x6",
    "underscored length": "Content-Length: 1_0",
    "length in other digits": "Content-Length: \u0666",
    "empty length": "Content-Length:",
    "spaced length": "Content-Length: 1 0",
    "space before the colon": "Content-Length : 6",
    "tab before the colon": "Transfer-Encoding\t: chunked",
    "leading space": " Transfer-Encoding: chunked",
    "folded coding": "Transfer-Encoding:\r\n chunked",
    "folded by tab": "X: y\r\n\tTransfer-Encoding: chunked",
    "line feed alone": "X: y\nTransfer-Encoding: chunked",
    "carriage return alone": "X: y\rTransfer-Encoding: chunked",
    "NUL": "X: y\0Transfer-Encoding: chunked",
    "vertical tab before the coding": "Transfer-Encoding: \x0bchunked",
    "two codings": "Transfer-Encoding: gzip, chunked",
    "coding twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "another coding later": "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "unknown coding": "Transfer-Encoding: xchunked",
    "quoted coding": 'Transfer-Encoding: "chunked"',
    "identity": "Transfer-Encoding: identity",
    "empty coding": "Transfer-Encoding:",
    "coding with parameters": "Transfer-Encoding: chunked;q=1",
    "no colon": "Transfer-Encoding chunked",
    "name in other characters": "Transfer\u2010Encoding: chunked",
}


@pytest.mark.parametrize("fields", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_an_ambiguous_request_is_the_last_of_its_connection(fields: str) -> None:
    try:
        head = parse_head(f"POST / HTTP/1.1\r\nHost: a\r\n{fields}".encode())
    except InvalidHttp:
        return
    assert head.chunked
    assert not head.keep_alive


def feed(data: bytes, size: int) -> None:
    response = ResponseParser()
    for at in range(0, len(data), size):
        response.feed(data[at : at + size])


@pytest.mark.parametrize("fields", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_an_ambiguous_response_is_rejected(fields: str) -> None:
    data = f"HTTP/1.1 200 OK\r\n{fields}\r\n\r\n".encode()
    for size in (1, len(data)):
        with pytest.raises(InvalidHttp):
            feed(data, size)


def test_chunked_is_not_accepted_from_http_1_0() -> None:
    head = parse_head(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked")
    assert (head.chunked, head.keep_alive) == (False, False)
    with pytest.raises(InvalidHttp, match="unsupported transfer encoding"):
        ResponseParser().feed(b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
