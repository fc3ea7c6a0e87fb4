"""One session of a workload: clients and watchers at work while a fault disturbs the servers, then a quiet end.

The same in virtual time and against real processes. With several servers the clients and watchers are spread over them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from ostinato.world import Rng
from tests.faults.history.records import OK
from tests.faults.workload.api import Api, Lost, path_of
from tests.faults.workload.clients import ClientTask, Mix, Shared
from tests.faults.workload.watchers import SORTS, Sort, WatcherTask, caught_up, ended

CLIENTS = 8
_LIMIT = 900.0  # seconds of a session: beyond it, something hangs


@dataclass
class Pace:
    """How time passes for a workload."""

    sleep: Callable[[float], Awaitable[None]]
    monotonic: Callable[[], float]
    timeout: Callable[[float], AbstractAsyncContextManager[object]]
    pause: float = 0.02  # between two operations of a client, at most


class Session:
    def __init__(self, apis: Sequence[Api], shared: Shared, rng: Rng, pace: Pace, mix: Mix = Mix.HOSTILE) -> None:
        self._apis = apis
        self._shared = shared
        self._rng = rng
        self._pace = pace
        self._mix = mix

    async def run(
        self,
        operations: int,
        disturb: Callable[[], Awaitable[None]],
        settle: Callable[[asyncio.Task[None]], Awaitable[None]],
        *,
        clients: int = CLIENTS,
        watchers: Sequence[tuple[Sort, Api]] = (),
        outlast: int | None = None,
    ) -> None:
        """Run at least so many operations beside the fault; return when the first two watchers have seen the last one.

        `settle` ends the fault, and returns when all servers can work again. `watchers`: defaults to one of each sort.
        `outlast`: go on until the fault has ended and so many writes have been acknowledged.
        """
        rng, apis, pace, history = self._rng, self._apis, self._pace, self._shared.history
        done = 0

        def is_over() -> bool:
            return done >= operations and (outlast is None or (trouble.done() and history.acknowledged >= outlast))

        async def client(number: int) -> None:
            nonlocal done
            own = rng.fork(f"client {number}")
            task = self._client(f"client {number}", own, apis[number % len(apis)])
            while not is_over():
                done += 1
                await task.step()
                await pace.sleep(own.uniform(0.0, pace.pause))

        trouble = asyncio.create_task(_task(disturb), name="fault")
        working = [asyncio.create_task(client(number), name=f"client {number}") for number in range(clients)]
        random = rng.fork("watchers").random
        chosen = watchers or [(sort, apis[number % len(apis)]) for number, sort in enumerate(SORTS)]
        tasks = [WatcherTask(sort, api, self._shared, pace.sleep, random) for sort, api in chosen]
        watching = [asyncio.create_task(each.run(), name=f"watcher {each.sort.name}") for each in tasks]
        try:
            async with pace.timeout(_LIMIT):
                await asyncio.gather(*working)
                await settle(trouble)
                await self._finish(tasks)
        finally:
            await ended([*working, *watching, trouble])

    def _client(self, name: str, rng: Rng, api: Api) -> ClientTask:
        return ClientTask(name, api, self._shared, rng, self._pace.monotonic, self._mix)

    async def _finish(self, watchers: list[WatcherTask]) -> None:
        """Write until a write succeeds, read everything on every server, and let watchers catch up."""
        operations = self._shared.history.operations
        last = self._client("last", self._rng.fork("last"), self._apis[0])
        async with self._pace.timeout(120):
            while operations[-1].outcome != OK or operations[-1].kind != "update":
                await last.create()
                await last.update()
                await self._pace.sleep(self._pace.pause)
            version = operations[-1].version
            for number, api in enumerate(self._apis):
                reader = self._client(f"reader {number}", self._rng.fork(f"reader {number}"), api)
                while operations[-1].outcome != OK or operations[-1].client != f"reader {number}":
                    await reader.list_all()
                    await self._pace.sleep(self._pace.pause)
            await caught_up(watchers[:2], version - 1, self._pace.sleep)


async def delete_all(api: Api, shared: Shared) -> None:
    """Delete the objects of a session, some at a time."""
    left = list(shared.keys)

    async def delete() -> None:
        while left:
            key = left.pop()
            try:
                await api.call("DELETE", path_of(key))
            except Lost:
                left.append(key)
                await api.available()

    await asyncio.gather(*(delete() for _ in range(CLIENTS)))


async def _task(work: Callable[[], Awaitable[None]]) -> None:
    await work()
