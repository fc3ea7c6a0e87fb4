"""Container watch: detects the exit of containers, as kubelet's evented PLEG.

- Exits are received as CRI events. All containers are relisted every ten seconds besides, because events can be lost,
  and every second if the runtime has no events. Without watched containers no request is sent.
- Large logs are rotated with each relist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing, suppress
from typing import Final

from ostinato.grpc import Code, RpcError
from ostinato.plane.node.runtimes.containerd.container import RUNNING, CriContainer
from ostinato.plane.node.runtimes.containerd.cri import Cri
from ostinato.plane.node.runtimes.containerd.rotation import is_large, rotate
from ostinato.world import Clock
from ostinato.world.supervision import supervised

_END_EVENTS: Final = (2, 3)  # events: stopped, deleted
_RELIST_INTERVAL: Final = 10.0  # seconds
_POLL_INTERVAL: Final = 1.0


class ContainerWatch:
    def __init__(self, cri: Cri, clock: Clock) -> None:
        self._cri = cri
        self._clock = clock
        self._watched: dict[str, tuple[CriContainer, Callable[[], None]]] = {}  # by container id
        self._has_events = True  # until the runtime reports Code.UNIMPLEMENTED
        self._wake = asyncio.Event()  # relist now
        self._tasks: list[asyncio.Task[None]] = []

    def add(self, container: CriContainer, ended: Callable[[], None]) -> None:
        """Call `ended` when a container exits; exited containers are ignored."""
        if container.exit is not None:
            return
        self._watched[container.key] = (container, ended)
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(supervised("container events", self._receive_events, self._clock)),
                loop.create_task(supervised("container relist", self._relist_periodically, self._clock)),
            ]
        self._wake.set()  # it may have exited before it was added

    def remove(self, key: str) -> None:
        self._watched.pop(key, None)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _receive_events(self) -> None:
        while self._has_events:
            try:
                async with aclosing(self._cri.stream("GetContainerEvents", {})) as events:
                    async for event in events:
                        key = event.get("container_id", "")
                        if event.get("container_event_type", 0) in _END_EVENTS:
                            await self._refresh(key)
            except RpcError as error:
                self._has_events = error.code != Code.UNIMPLEMENTED
            self._wake.set()  # events may have been missed
            await self._clock.sleep(_POLL_INTERVAL)

    async def _relist_periodically(self) -> None:
        while True:
            self._wake.clear()
            if self._watched:
                await self._relist()
            try:
                async with self._clock.timeout(_RELIST_INTERVAL if self._has_events else _POLL_INTERVAL):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _relist(self) -> None:
        try:
            answer = await self._cri.call("ListContainers", {"filter": {"state": {"state": RUNNING}}})
        except RpcError:
            return  # the runtime is unavailable; containers keep running
        running = {each["id"] for each in answer.get("containers", [])}
        for key in [key for key in self._watched if key not in running]:
            await self._refresh(key)
        for container, _ in [*self._watched.values()]:
            if container.log is not None and is_large(container.log):
                rotate(container.log)
                with suppress(RpcError):  # exited; otherwise the next relist retries
                    await self._cri.call("ReopenContainerLog", {"container_id": container.key})

    async def _refresh(self, key: str) -> None:
        watched = self._watched.get(key)
        if watched is None:  # removed, or reported by the other task
            return
        container, ended = watched
        await container.refresh()
        if container.exit is not None and self._watched.pop(key, None) is not None:
            ended()
