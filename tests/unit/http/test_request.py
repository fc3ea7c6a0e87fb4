from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.http.errors import InvalidHttp
from ostinato.http.request import RequestBody, RequestHead, parse_head

DATA = Path(__file__).parents[2] / "data" / "http" / "requests.json"  # what Go's net/http made of each
RECORDED: list[dict[str, Any]] = json.loads(DATA.read_text())

# Where we are stricter, or say less: each is allowed, and none lets two readers see different requests.
OTHERWISE = {
    "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n": "a folded line is refused",
    "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n": "a folded line is refused",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n": "another reason is named first",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n": "an HTTP/1.0 connection is closed",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n": "the core answers it",
    "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1 \r\n\r\n": "both wait for the body",
}


def read(raw: bytes) -> RequestHead | InvalidHttp:
    try:
        return parse_head(raw.partition(b"\r\n\r\n")[0])
    except InvalidHttp as error:
        return error


def ids(case: dict[str, Any]) -> str:
    return str(case["raw"][:60])


@pytest.mark.parametrize("case", [case for case in RECORDED if case["raw"] not in OTHERWISE], ids=ids)
def test_a_request_is_accepted_or_rejected_as_by_net_http(case: dict[str, Any]) -> None:
    raw = case["raw"].encode("latin-1")
    head = read(raw)
    if isinstance(head, InvalidHttp):
        assert (str(head.status), head.detail) == (case["status"], case.get("text", "").partition(": ")[2])
        return
    assert case["status"] == "200"
    if head.method == "HEAD":  # the recorded answer has no body to tell what was read
        return
    path = case["path"]
    if path.lower().startswith("http"):
        path = "/" + path.partition("//")[2].partition("/")[2]
    assert (head.method, head.path, head.query) == (case["method"], path, case.get("query", ""))
    body = RequestBody(head)
    left, broken = raw.partition(b"\r\n\r\n")[2], False
    try:
        left = left if body.complete else body.feed(left)
    except InvalidHttp:
        broken = True
    assert (broken or not body.complete) == case.get("body_error", False)
    if body.complete:
        assert left == b""
        assert bytes(body.data or b"").decode("latin-1") == case.get("body", "")
        both = head.chunked and "content-length" in head.headers  # Go goes on after it; we do not
        assert (not head.keep_alive) == (case["closes"] or both)


@pytest.mark.parametrize("raw", OTHERWISE)
def test_differences_from_net_http_are_stricter_or_harmless(raw: str) -> None:
    head = read(raw.encode())
    if isinstance(head, InvalidHttp):
        assert head.status == 400
    else:
        assert not head.keep_alive or head.method == "OPTIONS" or head.length


def test_header_names_are_lower_case_and_the_first_value_counts() -> None:
    head = parse_head(b"GET / HTTP/1.1\r\nHost: a\r\nX-Thing:  one \r\nx-thing: two")
    assert head.headers == {"host": "a", "x-thing": "one"}
    assert head.repeated == {"x-thing": ["one", "two"]}


def test_header_values_are_text_whatever_their_bytes() -> None:
    head = parse_head("GET /ü HTTP/1.1\r\nHost: a\r\nX: grün".encode() + b"\xff")
    assert head.path == "/ü"
    assert head.headers["x"] == "grün�"


@pytest.mark.parametrize(
    ("lines", "upgrade"),
    [
        ("Connection: Upgrade\r\nUpgrade: websocket", True),
        ("Connection: keep-alive, upgrade\r\nUpgrade: WebSocket", True),
        ("Connection: keep-alive\r\nConnection: upgrade\r\nUpgrade: websocket", True),
        ("Connection: Upgrade\r\nUpgrade: SPDY/3.1", False),
        ("Upgrade: websocket", False),
    ],
)
def test_a_websocket_upgrade_needs_two_headers(lines: str, upgrade: bool) -> None:
    assert parse_head(f"GET / HTTP/1.1\r\nHost: a\r\n{lines}".encode()).websocket == upgrade


def chunked(parts: list[bytes], trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part) + b"0\r\n" + trailer + b"\r\n"


@settings(max_examples=80)
@given(
    parts=st.lists(st.binary(min_size=1, max_size=40), max_size=5),
    cuts=st.lists(st.integers(0, 300), max_size=8),
    after=st.binary(max_size=20),
    in_chunks=st.booleans(),
)
def test_a_body_is_the_same_however_it_is_cut_into_packets(
    parts: list[bytes], cuts: list[int], after: bytes, in_chunks: bool
) -> None:
    whole = b"".join(parts)
    framing = b"Transfer-Encoding: chunked" if in_chunks else b"Content-Length: %d" % len(whole)
    body = RequestBody(parse_head(b"POST / HTTP/1.1\r\nHost: a\r\n" + framing))
    wire = (chunked(parts) if in_chunks else whole) + after
    edges = sorted({0, len(wire), *(cut for cut in cuts if cut < len(wire))})
    left = b""
    for start, end in pairwise(edges):
        left += wire[start:end]
        if not body.complete:
            left = body.feed(left)
    assert body.complete
    assert bytes(body.data or b"") == whole
    assert left == after
    assert body.size == len(whole)


def test_trailers_are_skipped() -> None:
    body = RequestBody(parse_head(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked"))
    assert body.feed(chunked([b"abc"], b"X: y\r\n") + b"next") == b"next"
    assert body.data == b"abc"


@pytest.mark.parametrize(
    "wire",
    [b"3" * 5000, b"3;" + b"x" * 5000 + b"\r\n", b"0\r\n" + (b"x" * 1000 + b"\r\n") * 70],
    ids=["an endless size", "an endless extension", "an endless trailer"],
)
def test_the_framing_of_chunks_is_bounded(wire: bytes) -> None:
    body = RequestBody(parse_head(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked"))
    with pytest.raises(InvalidHttp):
        body.feed(wire)


def test_a_discarded_body_is_counted() -> None:
    body = RequestBody(parse_head(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10"))
    body.data = None
    assert body.feed(b"0123456789GET") == b"GET"
    assert (body.complete, body.size) == (True, 10)


@settings(max_examples=150)
@given(st.binary(max_size=200))
def test_no_bytes_break_the_parser(data: bytes) -> None:
    for raw in (data, b"GET / HTTP/1.1\r\nHost: a\r\n" + data, b"GET " + data + b" HTTP/1.1\r\nHost: a"):
        head = read(raw)
        assert isinstance(head, RequestHead) or head.status in (400, 417, 431, 501, 505)
