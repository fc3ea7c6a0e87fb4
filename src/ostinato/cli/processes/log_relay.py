"""Log lines of several processes, written to standard error one whole line after the other."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from typing import BinaryIO, Final

_PIECE: Final = 1 << 16
_MAX_LINE: Final = 1 << 20  # bytes of a line without its end that are kept; then it is written as it is


async def relay_pipe(descriptor: int) -> None:
    """Copy lines from a pipe to standard error until it ends, and close it."""
    source = asyncio.StreamReader()
    pipe = open(descriptor, "rb", buffering=0)  # noqa: SIM115, ASYNC230 - a descriptor, closed by its transport
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(source), pipe
    )
    try:
        await relay(source)
    finally:
        transport.close()


async def relay(source: asyncio.StreamReader, target: BinaryIO | None = None) -> None:
    """Copy lines until the source ends. A target that cannot be written loses them. `target`: defaults to stderr."""
    target = target or sys.stderr.buffer
    rest = b""
    while data := await source.read(_PIECE):
        lines, newline, rest = (rest + data).rpartition(b"\n")
        if len(rest) > _MAX_LINE:
            lines, newline, rest = lines + newline + rest, b"\n", b""
        _write(target, lines + newline)
    _write(target, rest + b"\n" if rest else b"")


def _write(target: BinaryIO, data: bytes) -> None:
    if data:
        with suppress(OSError, ValueError):  # closed
            target.write(data)
            target.flush()
