"""Progress: say on a terminal what a command is waiting for, if it takes longer than a second.

Whole lines, on standard error: log lines and output of the program may come between them.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO, TypeVar

from ostinato.api.text.colour import FAINT, colour_enabled, coloured
from ostinato.world import Clock, World

T = TypeVar("T")

_FIRST_SECONDS: Final = 1.0
_FURTHER_SECONDS: Final = 10.0


async def progress(what: str, work: Awaitable[T], clock: Clock, stream: TextIO | None = None) -> T:
    """Await and return `work`. `what`: e.g. "starting the cluster". `stream`: defaults to standard error."""
    stream = stream or sys.stderr
    if not stream.isatty():
        return await work
    reporting = asyncio.get_running_loop().create_task(_report(what, clock, stream))
    try:
        return await work
    finally:
        reporting.cancel()


@contextmanager
def blocking_progress(what: str, world: World, stream: TextIO | None = None) -> Iterator[None]:
    """Report the progress of the block, which blocks this thread, from another one."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield
        return
    thread = world.executor.thread("progress", lambda: _report(what, world.clock, stream))
    try:
        yield
    finally:
        thread.stop()


async def _report(what: str, clock: Clock, stream: TextIO) -> None:
    began = clock.monotonic()
    await clock.sleep(_FIRST_SECONDS)
    _write(f"{what} ...", stream)
    while True:
        await clock.sleep(_FURTHER_SECONDS)
        _write(f"{what} ... {clock.monotonic() - began:.0f} s", stream)


def _write(line: str, stream: TextIO) -> None:
    stream.write((coloured(line, FAINT) if colour_enabled(stream) else line) + "\n")
    stream.flush()
