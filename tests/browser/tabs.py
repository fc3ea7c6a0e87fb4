"""Tabs of a chromium that is driven without playwright, which makes every tab a visible one."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

START = 60.0  # seconds


class Tab:
    def __init__(self, browser: Tabs, target: str, session: str) -> None:
        self._browser = browser
        self._target = target
        self._session = session

    async def show(self) -> None:
        """Bring the tab to the front: the others are hidden."""
        await self._browser.call("Target.activateTarget", targetId=self._target)

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, or what its promise resolves to."""
        options = {"expression": expression, "awaitPromise": True, "returnByValue": True}
        answer = await self._browser.call("Runtime.evaluate", self._session, **options)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


class Tabs:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._calls = 0

    async def open(self, url: str) -> Tab:
        """Open a tab in front of the others."""
        target = (await self.call("Target.createTarget", url=url))["targetId"]
        session = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        tab = Tab(self, target, session)
        await tab.show()
        return tab

    async def call(self, method: str, session: str = "", **parameters: Any) -> Any:
        """Call a method of the Chrome DevTools Protocol, one at a time."""
        self._calls += 1
        about = {"sessionId": session} if session else {}
        await self._socket.send_json({"id": self._calls, "method": method, "params": parameters, **about})
        while True:
            answer = await self._socket.receive_json(timeout=START)
            if answer.get("id") == self._calls:
                assert "result" in answer, answer
                return answer["result"]


@contextlib.asynccontextmanager
async def tabs(binary: str, profile: Path, *flags: str) -> AsyncIterator[Tabs]:
    command = [*flags, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
    process = await asyncio.create_subprocess_exec(
        binary, *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(START):
            while (found := re.search(r"ws://\S+", (line := await process.stderr.readline()).decode())) is None:
                assert line, "chromium ended"
        async with aiohttp.ClientSession() as session, session.ws_connect(found[0], max_msg_size=0) as socket:
            yield Tabs(socket)
    finally:
        process.terminate()
        await process.communicate()
