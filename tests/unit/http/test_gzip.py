"""gzip with a middle that is compressed once."""

from __future__ import annotations

import gzip as reference
import zlib

from hypothesis import given
from hypothesis import strategies as st

from ostinato.http.gzip import deflate, gzip

_DATA = st.one_of(st.binary(max_size=64), st.integers(0, 200_000).map(lambda size: b"abc" * (size // 3)))


@given(head=_DATA, pieces=st.lists(_DATA, max_size=4), tail=_DATA)
def test_the_whole_is_valid_gzip_of_its_parts(head: bytes, pieces: list[bytes], tail: bytes) -> None:
    whole = gzip(head, deflate(pieces), tail)
    assert reference.decompress(whole) == b"".join([head, *pieces, tail])


def test_it_is_one_member_as_many_clients_read_only_the_first() -> None:
    decompressor = zlib.decompressobj(31)
    assert decompressor.decompress(gzip(b"[", deflate([b"1,2"]), b"]")) == b"[1,2]"
    assert decompressor.eof
    assert decompressor.unused_data == b""


def test_a_compressed_middle_serves_many_heads() -> None:
    middle = deflate([b"x" * 100_000])
    assert len(middle.data) < 1000
    for head in (b"", b"a", b"b" * 70_000):
        assert reference.decompress(gzip(head, middle, b"]")) == head + b"x" * 100_000 + b"]"
