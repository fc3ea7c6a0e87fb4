"""A page in a hidden tab costs nothing, and catches up when it is shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .conftest import FLAGS, chromium
from .facts import Facts
from .played import Played, played
from .tabs import Tabs, tabs

SECONDS = 60.0
# Resolves after some timers of a visible tab: long enough for a hidden one to do what it should not.
PASSES = "new Promise((done) => { let n = 40; const each = () => (n-- ? setTimeout(each, 100) : done()); each(); })"
COUNTS_FRAMES = "(() => { window.frames_ = 0; const f = () => { frames_ += 1; requestAnimationFrame(f); }; f(); })()"


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.05)


async def _scenario(browser: Tabs, server: Played) -> None:
    handlers = server.handlers

    async def streams(count: int) -> None:
        async def holds() -> bool:
            return handlers.streams == count

        await until(holds)

    page = await browser.open(server.address)
    await streams(1)
    await page.evaluate(COUNTS_FRAMES)

    other = await browser.open("about:blank")
    await until(lambda: page.evaluate("document.hidden"))
    await streams(0)
    asked, frames = handlers.asked, await page.evaluate("frames_")
    await other.evaluate(PASSES)
    assert handlers.asked == asked
    assert await page.evaluate("frames_") - frames <= 1  # one that was under way
    assert not handlers.streams

    missed = server.facts.batch(time.time(), 1)
    missed["writes"][0] |= {"id": "missed", "verb": "create"}
    missed["writes"][0]["ref"] |= {"kind": "Pod", "name": "created-while-hidden"}
    server.facts.rate = 0  # what the page shows comes from the history
    server.facts.recorded.append(missed)
    await page.show()
    await streams(1)
    await until(lambda: page.evaluate("document.body.innerText.includes('created-while-hidden')"))


def test_a_hidden_tab_neither_streams_nor_asks_nor_draws_and_catches_up(tmp_path: Path) -> None:
    binary = chromium()
    if binary is None:
        pytest.skip("no chromium; `apt-get install chromium`, or name one in OSTINATO_CHROMIUM")

    async def main(server: Played) -> None:
        async with tabs(binary, tmp_path / "profile", *FLAGS) as browser:
            await _scenario(browser, server)

    with played(Facts(rate=40)) as server, ThreadPoolExecutor(1) as thread:  # playwright's loop may run in this one
        thread.submit(asyncio.run, main(server)).result()
