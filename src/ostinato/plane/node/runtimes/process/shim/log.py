"""Container log in the CRI format: time, stream, F (full) or P (partial), and the line. Part of the shim.

A log that exceeds its size is rotated (`0.log.1`, `0.log.2`, ...); the oldest files are removed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from machine_time import gmtime, strftime, time_ns  # type: ignore[import-not-found]

_LONGEST = 16384  # bytes per line; longer lines are split into partial ones
_NAMES = {1: b"stdout", 2: b"stderr"}


class Log:
    def __init__(self, path: str, size: int, files: int) -> None:
        self._path = path
        self._size = size
        self._files = files
        self._begun: dict[int, bytes] = {1: b"", 2: b""}  # unterminated line of each stream
        self._open()

    def write(self, stream: int, data: bytes) -> None:
        *lines, rest = (self._begun[stream] + data).split(b"\n")
        head = _now() + b" " + _NAMES[stream]
        whole, part = head + b" F ", head + b" P "
        out = []
        for line in lines:
            start = 0
            while len(line) - start > _LONGEST:
                out.append(part + line[start : start + _LONGEST] + b"\n")
                start += _LONGEST
            out.append(whole + line[start:] + b"\n")
        while len(rest) >= _LONGEST:
            out.append(part + rest[:_LONGEST] + b"\n")
            rest = rest[_LONGEST:]
        self._begun[stream] = rest
        self._put(b"".join(out))

    def end(self, stream: int) -> None:
        """Write the unterminated line of a stream that has ended."""
        rest, self._begun[stream] = self._begun[stream], b""
        if rest:
            self._put(_now() + b" " + _NAMES[stream] + b" P " + rest + b"\n")

    def close(self) -> None:
        for stream in _NAMES:
            self.end(stream)
        os.close(self._file)

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self._written = os.fstat(self._file).st_size

    def _put(self, data: bytes) -> None:
        if not data:
            return
        with suppress(OSError):  # disk full: output is lost, the container continues
            os.write(self._file, data)
        self._written += len(data)
        if self._written >= self._size:
            self._rotate()

    def _rotate(self) -> None:
        os.close(self._file)
        for number in range(self._files - 1, 0, -1):
            before = f"{self._path}.{number - 1}" if number > 1 else self._path
            with suppress(FileNotFoundError):
                os.replace(before, f"{self._path}.{number}")
        self._open()


def _now() -> bytes:
    seconds, nanoseconds = divmod(time_ns(), 1_000_000_000)
    text: str = strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
    return text.encode() + b".%09dZ" % nanoseconds
