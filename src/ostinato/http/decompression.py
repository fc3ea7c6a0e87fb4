"""Decompression of gzip bodies."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Final

from ostinato.http.errors import InvalidHttp

_MAX_PIECE: Final = 1024 * 1024  # bytes of decompressed output at a time
_GZIP: Final = 31  # zlib's window bits for the gzip format


def is_compressed(headers: Mapping[str, str]) -> bool:
    """Whether the body of a response is in gzip. Raises `InvalidHttp` for other encodings: they are not supported."""
    encoding = headers.get("content-encoding")
    if encoding is None or encoding.lower() == "identity":
        return False
    if encoding.lower() not in ("gzip", "x-gzip"):
        raise InvalidHttp("unsupported content encoding")
    return True


class Decompressor:
    """Decompressor of a gzip body of one or more members."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(_GZIP)  # of the current member
        self._begun = False

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Decompress data, in pieces of bounded size however well it was compressed."""
        self._begun = True
        while data or not self._inner.eof:
            if self._inner.eof:
                self._inner = zlib.decompressobj(_GZIP)
            try:
                piece = self._inner.decompress(data, _MAX_PIECE)
            except zlib.error:
                raise InvalidHttp("malformed gzip body") from None
            if piece:
                yield piece
            data = self._inner.unused_data or self._inner.unconsumed_tail
            if not data and len(piece) < _MAX_PIECE:
                return

    def end(self) -> None:
        """Check that the body was complete."""
        if self._begun and not self._inner.eof:
            raise InvalidHttp("the gzip body ends early")
