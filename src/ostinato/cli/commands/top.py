"""`ostinato top`: the queues of all controllers, live: depth, workers, rates, latencies, and what is wrong."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, Final, TextIO

from ostinato.api.text.colour import colour_enabled
from ostinato.cli.page.asking import PageClient, asked, required_page
from ostinato.cli.page.plain_text import plain
from ostinato.manager.running import new_runner
from ostinato.world import World

Json = dict[str, Any]

_HEAD: Final = ("CONTROLLER", "DEPTH", "BUSY", "RATE/S", "P50", "P99", "ERRORS/S", "RETRIES/S", "OLDEST")
_CLEAR: Final = "\x1b[H\x1b[J"
_BOLD, _RED, _PLAIN = "\x1b[1m", "\x1b[31m", "\x1b[0m"


def top(socket: str | None, state: Path, seconds: float, count: int) -> int:
    """Show samples until interrupted. `count`: of samples; 0 for no limit."""
    found = required_page(socket, state)
    try:
        with new_runner() as runner:
            runner.run(_run(found, seconds, count))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 0
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


async def _run(socket: Path, seconds: float, count: int) -> None:
    world = World.real()
    screen = _Screen(sys.stdout)
    try:
        async with asked(socket, world) as page:
            shown = 0
            while True:
                screen.show(await page.get("about"), *await _sample(page))
                shown += 1
                if shown == count:
                    return
                await world.clock.sleep(seconds)
    finally:
        world.executor.close()


async def _sample(page: PageClient) -> tuple[list[Json], list[Json]]:
    controllers = (await page.get("controllers"))["controllers"]
    alarms = (await page.get("alarms"))["alarms"]
    return sorted(
        controllers, key=lambda each: (not each["reason"], -each["rate"], -each["depth"], each["name"])
    ), alarms


class _Screen:
    """A table that is drawn again on a terminal, and lines in a pipe."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_terminal = out.isatty()
        self._colour = colour_enabled(out)

    def show(self, about: Json, controllers: list[Json], alarms: list[Json]) -> None:
        lines = [self._styled(f"{about['mode']} {about['cluster']}", _BOLD)] if self._is_terminal else []
        lines += table([_HEAD, *map(row, controllers)])
        for each in controllers:
            if each["reason"]:
                lines.append(self._styled(f"{each['name']} is behind: {each['reason']}", _RED))
        lines += [
            self._styled(f"{each['severity']}: {each['message']}", _RED) for each in alarms if each["type"] != "backlog"
        ]
        lines += [plain(f"not visible to the page: {each['what']}: {each['why']}") for each in about["denied"]]
        text = "\n".join(lines) + "\n"
        self._out.write(f"{_CLEAR}{text}" if self._is_terminal else text)
        self._out.flush()

    def _styled(self, text: str, style: str) -> str:
        return f"{style}{plain(text)}{_PLAIN}" if self._colour else plain(text)


def row(stats: Json) -> tuple[str, ...]:
    return (
        plain(stats["name"]),
        str(stats["depth"]),
        f"{stats['busy']}/{stats['workers']}",
        f"{stats['rate']:.1f}",
        duration(stats["p50"]),
        duration(stats["p99"]),
        f"{stats['errors']:.1f}",
        f"{stats['retries']:.1f}",
        duration(stats["oldest"]),
    )


def duration(seconds: float) -> str:
    """Return a duration in a unit that fits."""
    if seconds <= 0:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.1f}ms" if seconds < 0.1 else f"{seconds * 1000:.0f}ms"
    return f"{seconds:.1f}s" if seconds < 60 else f"{seconds / 60:.0f}m"


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows as aligned columns."""
    widths = [max(len(each[at]) for each in rows) for at in range(len(rows[0]))]
    return ["  ".join(text.ljust(width) for text, width in zip(each, widths, strict=True)).rstrip() for each in rows]
