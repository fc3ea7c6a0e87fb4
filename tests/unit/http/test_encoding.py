"""Encoded heads and chunks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ostinato.http.encoding import chunk, chunk_parts, clean, clean_target, date_line, request_head
from ostinato.http.request import parse_head
from ostinato.http.status import status_line


def test_a_request_head_is_parsed_as_it_was_encoded() -> None:
    data = request_head("POST", "/a%20b?c=\xfc", [("Host", "a:1"), ("X", "1"), ("x", "\xfc")])
    assert data.endswith(b"\r\n\r\n")
    head = parse_head(data[:-4])
    assert (head.method, head.path, head.query) == ("POST", "/a%20b", "c=\xfc")
    assert (head.headers, head.repeated) == ({"host": "a:1", "x": "1"}, {"x": ["1", "\xfc"]})


@pytest.mark.parametrize("target", ["/a b", "/\r\nX: y", "/\n", "/\t", "/\x00", "/\x7f", "/\udcff"])
def test_a_target_that_could_end_the_request_line_is_rejected(target: str) -> None:
    with pytest.raises(ValueError, match="percent-encoded"):
        request_head("GET", target, [])
    assert request_head("GET", clean_target(target), [])


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("X", "a\r\nY: b", "a header contains a line break or NUL"),
        ("X", "a\n", "a header contains a line break or NUL"),
        ("X", "a\r", "a header contains a line break or NUL"),
        ("X", "a\0", "a header contains a line break or NUL"),
        ("X", "secret\udcff", "a header contains an unpaired surrogate"),
        ("X:", "a", "'X:' is not a valid header name"),
        ("X Y", "a", "'X Y' is not a valid header name"),
        ("", "a", "'' is not a valid header name"),
        ("X\r\nY", "a", r"'X\\r\\nY' is not a valid header name"),
    ],
)
def test_fields_that_could_be_read_as_others_are_rejected(name: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$") as caught:
        request_head("GET", "/", [(name, value)])
    assert caught.value.__context__ is None or "secret" not in repr(caught.value.__context__)


def test_control_characters_of_values_are_replaced() -> None:
    assert clean("a\tb\xfc") == "a\tb\xfc"
    assert clean("a\r\nb\x00\udcff") == "a  b  "


def test_status_and_date_are_those_of_go() -> None:
    assert status_line(413) == "HTTP/1.1 413 Request Entity Too Large"
    assert status_line(599) == "HTTP/1.1 599 Status"
    assert date_line(datetime(2026, 1, 4, 5, 6, 7, tzinfo=UTC)) == b"Date: Sun, 04 Jan 2026 05:06:07 GMT\r\n"


@pytest.mark.parametrize("data", [b"a", b"\r\n" * 10, b"x" * 70_000])
def test_a_chunk_in_parts_is_the_same_chunk(data: bytes) -> None:
    parts = chunk_parts(data)
    assert b"".join(parts) == chunk(data) == f"{len(data):x}".encode() + b"\r\n" + data + b"\r\n"
    assert parts[1] is data
