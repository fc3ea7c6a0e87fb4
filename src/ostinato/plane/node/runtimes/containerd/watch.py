"""Watching containers: notices the end of each that is followed.

The runtime tells of ends as they come. All containers are looked at now and then besides, for what it tells can be
lost, and every second where it tells nothing. Nothing is asked while nothing is followed. Logs that have grown are
rotated at these looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Final

from ostinato.plane.node.runtimes.containerd.container import RUNNING, CriContainer
from ostinato.plane.node.runtimes.containerd.cri import Cri
from ostinato.plane.node.runtimes.containerd.grpc import UNIMPLEMENTED
from ostinato.plane.node.runtimes.containerd.http2 import RpcError
from ostinato.plane.node.runtimes.containerd.rotation import is_large, rotate
from ostinato.world import Clock

_ENDS: Final = (2, 3)  # events: stopped, deleted
_LOOK_EVERY: Final = 10.0  # seconds
_LOOK_OFTEN: Final = 1.0


class Watch:
    def __init__(self, cri: Cri, clock: Clock) -> None:
        self._cri = cri
        self._clock = clock
        self._followed: dict[str, tuple[CriContainer, Callable[[], None]]] = {}  # by the runtime's id
        self._tells = True  # of events
        self._wake = asyncio.Event()  # it is time to look
        self._tasks: list[asyncio.Task[None]] = []

    def follow(self, container: CriContainer, ended: Callable[[], None]) -> None:
        """Call `ended` at its end. One that has ended is of no interest."""
        if container.exit is not None:
            return
        self._followed[container.key] = (container, ended)
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._hear()), loop.create_task(self._look_now_and_then())]
        self._wake.set()  # it may have ended before it was followed

    def forget(self, key: str) -> None:
        self._followed.pop(key, None)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _hear(self) -> None:
        while self._tells:
            try:
                async with aclosing(self._cri.stream("GetContainerEvents", {})) as events:
                    async for event in events:
                        key = event.get("container_id", "")
                        if event.get("container_event_type", 0) in _ENDS and key in self._followed:
                            await self._look_at(key)
            except RpcError as error:
                self._tells = error.code != UNIMPLEMENTED
            self._wake.set()  # something may have been missed
            await self._clock.sleep(_LOOK_OFTEN)

    async def _look_now_and_then(self) -> None:
        while True:
            self._wake.clear()
            if self._followed:
                await self._look()
            try:
                async with self._clock.timeout(_LOOK_EVERY if self._tells else _LOOK_OFTEN):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        try:
            answer = await self._cri.call("ListContainers", {"filter": {"state": {"state": RUNNING}}})
        except RpcError:
            return  # nobody answers; what runs goes on
        running = {each["id"] for each in answer.get("containers", [])}
        for key in [key for key in self._followed if key not in running]:
            await self._look_at(key)
        for container, _ in [*self._followed.values()]:
            if container.log is not None and is_large(container.log):
                rotate(container.log)
                with suppress(RpcError):  # it has ended; or the next look tries again
                    await self._cri.call("ReopenContainerLog", {"container_id": container.key})

    async def _look_at(self, key: str) -> None:
        container, ended = self._followed[key]
        await container.look()
        if container.exit is not None:
            self.forget(key)
            ended()
