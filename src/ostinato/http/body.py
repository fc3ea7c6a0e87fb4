"""Parser of message bodies: of known length, chunked, or ended by the close of the connection.

What surrounds chunks is bounded: size lines with their extensions, all extensions together, and trailers, which are
checked and dropped.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Final

from ostinato.http.errors import InvalidHttp
from ostinato.http.fields import FIELD_LINE

UNTIL_CLOSED: Final = -1
CHUNKED: Final = -2

_MAX_LINE: Final = 4096  # bytes of a chunk's size with its extensions, line end included
_MAX_TRAILERS: Final = 1 << 16  # bytes
_MAX_EXCESS: Final = 1 << 14  # bytes around chunks, beyond 16 for each and twice their data
_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?\r\n")
_USUAL_LINE: Final = 16  # bytes
_SIZE, _CHUNK_END, _TRAILERS = range(3)  # what comes after the current chunk's data


class BodyParser:
    """Parser of one body. Subclasses define what becomes of the data.

    An instance starts with an empty body; `begin_body` sets what is to be received.
    """

    complete = False  # the whole body has been received
    remaining = 0  # bytes of the body, or of the current chunk, still to be received
    _framing = 0  # length of the body, or one of the constants above
    _partial = b""  # received, but not parsed yet: part of a line around chunks
    _next = _SIZE
    _excess = 0
    _trailers = 0  # bytes of trailers received

    @abstractmethod
    def add(self, data: bytes) -> None:
        """Take a piece of the body."""

    @property
    def length(self) -> int | None:
        """The length of the body; None if it is not known."""
        return self._framing if self._framing >= 0 else None

    @property
    def chunked(self) -> bool:
        return self._framing == CHUNKED

    def begin_body(self, framing: int) -> None:
        """`framing`: the length of the body, `CHUNKED` or `UNTIL_CLOSED`."""
        self._framing = framing
        self.remaining = max(0, framing)

    def feed_body(self, data: bytes) -> bytes:
        """Parse received data, and return what follows the body. An empty body is complete after the first call."""
        framing = self._framing
        if framing >= 0:
            size, remaining = len(data), self.remaining
            if size < remaining:
                self.remaining = remaining - size
                self.add(data)
                return b""
            self.remaining = 0
            self.complete = True
            if size == remaining:
                self.add(data)
                return b""
            self.add(data[:remaining])
            return data[remaining:]
        if framing == CHUNKED:
            return self._feed_chunks(data)
        self.add(data)
        return b""

    def end(self) -> None:
        """The peer closed the connection, which completes a body without length."""
        if self._framing == UNTIL_CLOSED:
            self.complete = True

    def _feed_chunks(self, data: bytes) -> bytes:
        if self._partial:
            data, self._partial = self._partial + data, b""
        at, size = 0, len(data)
        while at < size:
            if self.remaining:
                piece = data[at : at + self.remaining]
                at += len(piece)
                self.remaining -= len(piece)
                self.add(piece)
            elif self._next == _SIZE:
                line = _SIZE_LINE.match(data, at)
                if line is None or line.end() - at > _MAX_LINE:
                    if _line_end(data, at):
                        raise InvalidHttp("malformed chunked encoding")
                    break
                self.remaining = int(line[1], 16)
                self._next = _CHUNK_END if self.remaining else _TRAILERS
                end = line.end()
                if end - at > _USUAL_LINE or self._excess:
                    self._bound_excess(end - at)
                at = end
            elif self._next == _CHUNK_END:
                if not data.startswith(b"\r\n", at):
                    if data[at:] == b"\r":
                        break
                    raise InvalidHttp("malformed chunked encoding")
                at += 2
                self._next = _SIZE
            else:
                end = _line_end(data, at)
                if not end:
                    break
                self._check_trailer(data[at:end])
                at = end
                if self.complete:
                    return data[at:]
        self._partial = data[at:]
        return b""

    def _bound_excess(self, line: int) -> None:
        """`line`: bytes of the current chunk's size line."""
        self._excess = max(0, self._excess + line - _USUAL_LINE - 2 * self.remaining)
        if self._excess > _MAX_EXCESS:
            raise InvalidHttp("chunked encoding contains too much non-data")

    def _check_trailer(self, line: bytes) -> None:
        """`line`: a field, or the empty line after the last one."""
        self._trailers += len(line)
        if line == b"\r\n":
            self.complete = True
        elif self._trailers > _MAX_TRAILERS or not line.endswith(b"\r\n") or not FIELD_LINE.fullmatch(line[:-2]):
            raise InvalidHttp("malformed trailers")


def _line_end(data: bytes, at: int) -> int:
    """Return the position after the line that begins at a position; 0 if its end has not been received."""
    end = data.find(b"\n", at, at + _MAX_LINE) + 1
    if not end and len(data) - at >= _MAX_LINE:
        raise InvalidHttp("malformed chunked encoding: a line is too long")
    return end
