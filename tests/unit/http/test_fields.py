"""Header fields."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ostinato.http.encoding import field_lines
from ostinato.http.errors import InvalidHttp
from ostinato.http.fields import MAX_FIELDS, content_length, list_elements, ordered_fields, parse_fields


@pytest.mark.parametrize(
    ("data", "headers", "repeated"),
    [
        (b"", {}, {}),
        (b"A: b", {"a": "b"}, {}),
        (b"A:b", {"a": "b"}, {}),
        (b"A: \t b c\t ", {"a": "b c"}, {}),
        (b"A:", {"a": ""}, {}),
        (b"A: b:c", {"a": "b:c"}, {}),
        (b"!#$%&'*+-.^_`|~09azAZ: x", {"!#$%&'*+-.^_`|~09azaz": "x"}, {}),
        (b"A: 1\r\nb: 2\r\na: 3\r\nA: 1", {"a": "1", "b": "2"}, {"a": ["1", "3", "1"]}),
        (b"A: \xc3\xbc\xff", {"a": "\xfc\udcff"}, {}),
    ],
)
def test_fields_are_parsed(data: bytes, headers: dict[str, str], repeated: dict[str, list[str]]) -> None:
    assert parse_fields(data, "surrogateescape") == (headers, repeated)


@pytest.mark.parametrize(
    "data",
    [
        b"A",
        b": b",
        b"A : b",
        b" A: b",
        b"A: 1\r\n b",
        b"A: 1\r\n\tb: c",
        b"A: 1\r\n\r\nB: 2",
        b"A: 1\r\n",
        b"A: 1\nB: 2",
        b"A: 1\rB: 2",
        b"A: 1\n",
        b"A: 1\r",
        b"A: \x00",
        b"A: \x0b",
        b"A: \x7f",
        b"A(: b",
        b"A\x80: b",
        b"\xc3\x84: b",
        b'"A": b',
        b"A: b\r\n" * MAX_FIELDS + b"A: b",
    ],
)
def test_malformed_fields_are_rejected(data: bytes) -> None:
    with pytest.raises(InvalidHttp):
        parse_fields(data, "replace")


@pytest.mark.parametrize("text", ["", "+1", "-1", " ", "1 1", "1,1", "0x1", "1_0", "1.0", "1e3", "\u0662", "9" * 19])
def test_a_length_is_plain_digits(text: str) -> None:
    with pytest.raises(InvalidHttp, match="bad Content-Length"):
        content_length({"content-length": text}, {})


def test_a_length_may_be_repeated_but_not_contradicted() -> None:
    assert content_length({"content-length": "007"}, {}) == 7
    assert content_length({"content-length": "7"}, {"content-length": ["7", "7"]}) == 7
    assert content_length({}, {}) is None
    for other in ("8", "07", "7, 7"):
        with pytest.raises(InvalidHttp, match="multiple Content-Length"):
            content_length({"content-length": "7"}, {"content-length": ["7", other]})


def test_lists_are_split_at_commas() -> None:
    assert list_elements(["Close, , x", " Upgrade "]) == {"close", "x", "upgrade"}


VALUES = st.text(st.characters(blacklist_categories=["Cc", "Cs"])).map(str.strip)


@given(st.lists(st.tuples(st.from_regex(r"[A-Za-z-]{1,10}", fullmatch=True), VALUES), max_size=8))
def test_encoded_fields_are_parsed_as_they_were(fields: list[tuple[str, str]]) -> None:
    fields = [(name, value.strip(" \t")) for name, value in fields]
    data = field_lines(fields).removesuffix(b"\r\n")
    assert ordered_fields(data, "strict") == fields
    headers, repeated = parse_fields(data, "strict")
    for name in headers:
        values = [value for each, value in fields if each.lower() == name]
        assert repeated.get(name, [headers[name]]) == values
