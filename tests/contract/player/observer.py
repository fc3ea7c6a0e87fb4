"""Observer: records the watch events of a server by namespace, in the order of each kind's watch."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import NamedTuple

from tests.contract.player.paths import Object
from tests.contract.player.server import FAILURES, WATCHED, Server


class Observed(NamedTuple):
    """A watch event."""

    type: str
    kind: str
    object: Object


class Observer:
    def __init__(self, server: Server, listener: Callable[[Observed], None] | None = None) -> None:
        self._server = server
        self._listener = listener
        self._log: dict[str, list[Observed]] = defaultdict(list)  # by namespace
        self._written: dict[str, float] = {}  # namespace: time of the last write
        self._news: dict[str, asyncio.Event] = defaultdict(asyncio.Event)  # namespace: set on a write
        self._versions: dict[str, str] = {}  # kind: the last resourceVersion seen
        self._reflectors: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start; return when the current state has been read."""
        synced = []
        for kind in WATCHED:
            synced.append(asyncio.Event())
            self._reflectors.append(asyncio.create_task(self._reflect(kind, synced[-1])))
        async with asyncio.timeout(20):
            await asyncio.gather(*(event.wait() for event in synced))

    async def stop(self) -> None:
        for task in self._reflectors:
            task.cancel()
        await asyncio.gather(*self._reflectors, return_exceptions=True)

    def events(self, namespace: str) -> list[Observed]:
        return list(self._log[namespace])

    def quiet(self, namespace: str) -> float:
        """Seconds since the last write in a namespace."""
        return time.monotonic() - self._written.get(namespace, 0.0)

    def news(self, namespace: str) -> asyncio.Event:
        """An event that is set on a write in a namespace; a waiter clears it first."""
        return self._news[namespace]

    def _observe(self, observed: Observed) -> None:
        namespace = observed.object["metadata"].get("namespace", "")
        self._log[namespace].append(observed)
        self._written[namespace] = time.monotonic()
        self._news[namespace].set()
        if self._listener is not None:
            self._listener(observed)

    async def _reflect(self, kind: str, synced: asyncio.Event) -> None:
        try:
            path = await self._server.path(kind, None)
        except KeyError:
            synced.set()
            return  # the server does not serve this kind
        while True:
            with suppress(*FAILURES):
                if kind not in self._versions:
                    await self._list(kind, path)
                    synced.set()
                await self._watch(kind, path)
            await asyncio.sleep(0.1)

    async def _list(self, kind: str, path: str) -> None:
        code, found = await self._server.call("GET", path)
        if code != 200:
            raise OSError(f"{path}: {code}")
        for item in found.get("items") or []:
            self._observe(Observed("ADDED", kind, item))
        self._versions[kind] = found["metadata"]["resourceVersion"]

    async def _watch(self, kind: str, path: str) -> None:
        """Watch a kind until the watch ends; list again if the server cannot resume."""
        query = f"watch=1&resourceVersion={self._versions[kind]}&timeoutSeconds=3000"
        async with aclosing(self._server.watch(f"{path}?{query}")) as events:
            async for event in events:
                if event["type"] == "ERROR":
                    del self._versions[kind]
                    return
                self._versions[kind] = event["object"]["metadata"]["resourceVersion"]
                self._observe(Observed(event["type"], kind, event["object"]))
