"""Lines of several processes never interleave."""

from __future__ import annotations

import asyncio
import io

from ostinato.cli.processes.log_relay import relay


class Target(io.BytesIO):
    """Records each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.writes.append(data)
        return len(data)


class Broken(io.BytesIO):
    def write(self, data: bytes) -> int:  # type: ignore[override]
        raise BrokenPipeError


def copy(target: io.BytesIO, *pieces: bytes) -> None:
    asyncio.run(_copy(target, *pieces))


async def _copy(target: io.BytesIO, *pieces: bytes) -> None:
    source = asyncio.StreamReader()
    copying = asyncio.get_running_loop().create_task(relay(source, target))
    for piece in pieces:
        source.feed_data(piece)
        for _ in range(5):
            await asyncio.sleep(0)
    source.feed_eof()
    await copying


def test_only_whole_lines_are_written() -> None:
    target = Target()
    copy(target, b"one\ntw", b"o\nthree", b" and more\n")
    assert target.writes == [b"one\n", b"two\n", b"three and more\n"]


def test_a_last_line_without_an_end_gets_one() -> None:
    target = Target()
    copy(target, b"Fatal error")
    assert target.writes == [b"Fatal error\n"]


def test_a_target_that_is_closed_does_not_stop_the_relay() -> None:
    copy(Broken(), b"one\n", b"two\n")
