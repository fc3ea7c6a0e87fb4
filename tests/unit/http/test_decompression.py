"""Compressed bodies."""

from __future__ import annotations

import gzip
import zlib

import pytest

from ostinato.http.decompression import Decompressor, is_compressed
from ostinato.http.errors import InvalidHttp


def test_gzip_is_the_only_encoding() -> None:
    assert not is_compressed({})
    assert not is_compressed({"content-encoding": "Identity"})
    assert is_compressed({"content-encoding": "GZIP"})
    assert is_compressed({"content-encoding": "x-gzip"})
    for encoding in ("br", "deflate", "gzip, gzip", ""):
        with pytest.raises(InvalidHttp):
            is_compressed({"content-encoding": encoding})


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


def test_flushed_gzip_data_is_decompressed_immediately() -> None:
    packer, reading = zlib.compressobj(wbits=31), Decompressor()
    for line in (b"one\n", b"two\n"):
        assert b"".join(reading.pieces(packer.compress(line) + packer.flush(zlib.Z_SYNC_FLUSH))) == line
