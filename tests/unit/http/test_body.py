"""Chunked bodies: the grammar, its limits, and independence of how the data is split."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ostinato.http.body import CHUNKED, UNTIL_CLOSED, BodyParser
from ostinato.http.encoding import LAST_CHUNK, chunk
from ostinato.http.errors import InvalidHttp


class Body(BodyParser):
    def __init__(self, framing: int) -> None:
        self.data = b""
        self.begin_body(framing)

    def add(self, data: bytes) -> None:
        self.data += data


def read(data: bytes, cuts: list[int] | None = None) -> tuple[bool, bytes, bytes] | None:
    """Return whether the body is complete, its data, and what follows it; None if it is malformed."""
    body, rest = Body(CHUNKED), b""
    edges = sorted({0, len(data), *(cut for cut in cuts or () if cut < len(data))})
    try:
        for start, end in pairwise(edges):
            if body.complete:
                rest += data[start:end]
            else:
                rest += body.feed_body(data[start:end])
    except InvalidHttp:
        return None
    return body.complete, body.data, rest


@pytest.mark.parametrize(
    ("data", "body"),
    [
        (b"0\r\n\r\n", b""),
        (b"000\r\n\r\n", b""),
        (b"2\r\nok\r\n0\r\n\r\n", b"ok"),
        (b"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", b"01234567890123456789"),
        (b"02\r\nok\r\n0\r\n\r\n", b"ok"),
        (b"2 \t\r\nok\r\n0\r\n\r\n", b"ok"),
        (b"2;a=b;c\r\nok\r\n0;d\r\n\r\n", b"ok"),
        (b'2 ; a="b\xff"\r\nok\r\n0\r\n\r\n', b"ok"),
        (b"2\r\n\r\n\r\n0\r\n\r\n", b"\r\n"),
        (b"2\r\nok\r\n0\r\nT: 1\r\nU:\r\n\r\n", b"ok"),
        (b"000000000000002\r\nok\r\n0\r\n\r\n", b"ok"),
    ],
)
def test_well_formed_chunks_are_accepted_at_any_split(data: bytes, body: bytes) -> None:
    for size in (1, 2, 3, len(data)):
        assert read(data + b"next", list(range(size, len(data), size))) == (True, body, b"next")


@pytest.mark.parametrize(
    "data",
    [
        b"\r\nok\r\n",
        b"0x2\r\nok\r\n",
        b"0_2\r\nok\r\n",
        b"+2\r\nok\r\n",
        b"-2\r\nok\r\n",
        b" 2\r\nok\r\n",
        b"2 2\r\nok\r\n",
        b"g\r\n",
        b"\xd9\xa2\r\nok\r\n",
        b"0" * 15 + b"2\r\nok\r\n",
        b"f" * 16 + b"\r\n",
        b"2\nok\r\n",
        b"2\rok\r\n",
        b"2\r\r\nok\r\n",
        b"2;a=\x00\r\nok\r\n",
        b"2;a=\nb\r\nok\r\n",
        b"2\r\nok\n",
        b"2\r\nok\rX",
        b"2\r\nokX",
        b"2\r\nok0\r\n\r\n",
        b"0\r\nno colon\r\n\r\n",
        b"0\r\n folded: x\r\n\r\n",
        b"0\r\nT : 1\r\n\r\n",
        b"0\r\nT: \x00\r\n\r\n",
        b"0\r\n\n",
        b"0\r\nT: 1\n\r\n",
    ],
)
def test_malformed_chunks_are_rejected_at_any_split(data: bytes) -> None:
    for size in (1, 2, 3, len(data)):
        assert read(data, list(range(size, len(data), size))) is None


@pytest.mark.parametrize(
    "data",
    [
        b"3" * 5000,
        b"2;" + b"x" * 4100 + b"\r\nok\r\n",
        b"2;" + b"x" * 4100,
        (b"2;" + b"x" * 1000 + b"\r\nok\r\n") * 20,
        (b"1;" + b"x" * 30 + b"\r\no\r\n") * 2000,
        b"0\r\n" + b"T: " + b"x" * 5000 + b"\r\n\r\n",
        b"0\r\n" + b"T: 1\r\n" * 20_000 + b"\r\n",
    ],
    ids=["size", "extension", "open extension", "extensions", "short extensions", "trailer", "trailers"],
)
def test_the_framing_of_chunks_is_bounded(data: bytes) -> None:
    assert read(data) is None
    assert read(data, list(range(0, len(data), 100))) is None


def test_many_small_chunks_and_some_extensions_are_within_the_bounds() -> None:
    assert read(chunk(b"x") * 50_000 + LAST_CHUNK) == (True, b"x" * 50_000, b"")
    assert read(b"400;" + b"e" * 1000 + b"\r\n" + b"x" * 1024 + b"\r\n" + LAST_CHUNK) == (True, b"x" * 1024, b"")
    assert read((b"400;" + b"e" * 1000 + b"\r\n" + b"x" * 1024 + b"\r\n") * 100 + LAST_CHUNK) is not None


GRAMMAR = st.sampled_from(
    [b"0", b"2", b"a", b"\r\n", b"\r", b"\n", b";", b"ok", b"x" * 10, b" ", b"2\r\nok\r\n", b"0\r\n\r\n", b"T: 1\r\n"]
)


@settings(max_examples=300)
@given(
    st.lists(GRAMMAR | st.binary(max_size=3), max_size=20).map(b"".join),
    st.lists(st.integers(1, 60), max_size=20),
)
def test_any_split_of_the_data_gives_the_same_result(data: bytes, cuts: list[int]) -> None:
    assert read(data, cuts) == read(data)


@settings(max_examples=100)
@given(st.lists(st.binary(min_size=1, max_size=50)), st.lists(st.integers(1, 400), max_size=20), st.binary(max_size=9))
def test_encoded_chunks_are_decoded(parts: list[bytes], cuts: list[int], after: bytes) -> None:
    assert read(b"".join(map(chunk, parts)) + LAST_CHUNK + after, cuts) == (True, b"".join(parts), after)


def test_other_bodies_end_with_their_length_or_the_connection() -> None:
    fixed = Body(5)
    assert (fixed.feed_body(b"hel"), fixed.complete, fixed.remaining, fixed.length) == (b"", False, 2, 5)
    assert (fixed.feed_body(b"lonext"), fixed.complete, fixed.data) == (b"next", True, b"hello")
    short = Body(5)
    short.feed_body(b"hel")
    short.end()
    assert not short.complete
    endless = Body(UNTIL_CLOSED)
    assert (endless.feed_body(b"hello"), endless.complete, endless.length) == (b"", False, None)
    endless.end()
    assert (endless.complete, endless.data) == (True, b"hello")
