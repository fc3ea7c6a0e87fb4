"""Read container logs from files in the CRI format.

A line of the file is `<time> stdout F <line>`, with P instead of F for a partial line. A file that is rotated while it
is followed is read to its end before the new one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from ostinato.plane.node.volumes.trees import open_regular
from ostinato.world import Clock

_PIECE: Final = 1 << 16  # bytes per read
_LONGEST_LINE: Final = 1 << 20  # bytes of a line in the file; runtimes split lines far earlier
_POLL_INTERVAL: Final = 0.1  # seconds between reads of a followed log


class LogOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a log request. Default to the whole log."""

    follow: bool = False
    timestamps: bool = False
    since: datetime | None = None
    tail_lines: int | None = None
    limit_bytes: int | None = None


async def read_log(
    path: Path, options: LogOptions, clock: Clock, is_running: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """Yield the log in chunks; a followed log until its container has ended. A missing file is empty."""
    left = options.limit_bytes
    lines = _Lines(options)
    tail = _Tail(path, options.tail_lines)
    try:
        while left is None or left > 0:
            running = not options.follow or await is_running()  # checked first, so that output before the exit is read
            while data := tail.read():
                text = lines.feed(data)
                if left is not None:
                    text = text[:left]
                    left -= len(text)
                if text:
                    yield text
                if left == 0:
                    return
                await clock.sleep(0)  # yield to other tasks
            if not options.follow or not running:
                return
            await clock.sleep(_POLL_INTERVAL)
    finally:
        tail.close()


class _Tail:
    """A growing log file that may be rotated."""

    def __init__(self, path: Path, lines: int | None) -> None:
        self._path = path
        self._file = self._open()
        if self._file is not None and lines is not None:
            self._file.seek(_start_of_last(self._file, lines))

    def read(self) -> bytes:
        """Return more data; empty if there is none for now."""
        if self._file is None:
            self._file = self._open()
        while self._file is not None:
            if data := self._file.read(_PIECE):
                return data
            if not self._was_replaced(self._file):
                return b""
            if data := self._file.read(_PIECE):  # written between the read and the rotation
                return data
            self._file.close()
            self._file = self._open()
        return b""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _open(self) -> BinaryIO | None:
        try:
            return open_regular(self._path)
        except OSError:  # missing, or a link planted through a hostPath volume
            return None

    def _was_replaced(self, file: BinaryIO) -> bool:
        try:
            now = self._path.lstat()
        except FileNotFoundError:
            return False
        return not os.path.samestat(now, os.fstat(file.fileno()))


def _start_of_last(file: BinaryIO, lines: int) -> int:
    """Return the offset of the last `lines` lines."""
    position = file.seek(0, os.SEEK_END)
    missing = lines + 1  # line ends, including the one at the end of the file
    while position > 0:
        size = min(_PIECE, position)
        position -= size
        file.seek(position)
        data = file.read(size)
        at = len(data)
        while (at := data.rfind(b"\n", 0, at)) >= 0:
            missing -= 1
            if missing == 0:
                return position + at + 1
    return 0


class _Lines:
    """Converts lines of the file to output."""

    def __init__(self, options: LogOptions) -> None:
        self._options = options
        self._rest = b""  # incomplete line
        self._within = False  # the previous line was partial

    def feed(self, data: bytes) -> bytes:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            self._rest = b""
        return b"".join([self._shown(line) for line in lines])

    def _shown(self, line: bytes) -> bytes:
        parts = line.split(b" ", 3)
        if len(parts) != 4:
            return b""  # not in the CRI format
        time, _, tags, text = parts
        if self._options.since is not None and not _is_since(time, self._options.since):
            return b""
        begins = not self._within
        self._within = tags.split(b":")[0] == b"P"
        end = b"" if self._within else b"\n"
        return time + b" " + text + end if self._options.timestamps and begins else text + end


def _is_since(time: bytes, since: datetime) -> bool:
    try:
        return datetime.fromisoformat(time.decode()) >= since
    except ValueError:
        return False
