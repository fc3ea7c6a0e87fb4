"""The live page of a process: what happens in a cluster, and why.

    reporter = Reporter("operator", world.clock)
    manager = Manager(..., observer=reporter)
    page = Page(world, client, PageSettings(mode="operator", cluster="default"), reporter)
    await page.start()
    ...                                     # page.url is for the browser
    await page.stop()

- Objects are watched through the API, as by any client. Runs are reported by controllers (`reporting`).
- Its failures are logged and affect nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from ostinato.client.client import Client
from ostinato.page.history.history import History
from ostinato.page.live.server_alarms import ServerAlarms
from ostinato.page.live.stream import TICK, Stream
from ostinato.page.live.symptoms import Symptoms
from ostinato.page.reporting.reporter import Reporter
from ostinato.page.serving.access import check_host
from ostinato.page.serving.listening import BrowserServer, LocalServer
from ostinato.page.serving.routes import About, Routes
from ostinato.page.watching.cluster import Cluster, Scope
from ostinato.world import World
from ostinato.world.supervision import supervised

LOOPBACK: Final = "127.0.0.1"
SOCKET: Final = "page.sock"
_CHECK: Final = 2.0  # seconds between two checks for symptoms


class PageSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `mode`: whether it shows a control plane, or an operator.
    - `cluster`: its name for people.
    - `host`, `port`: to listen on. Default to the loopback address and a free port.
    - `socket`: Unix socket for commands and reports. Defaults to None.
    - `writes`: allow to delete objects and to open shells. Defaults to False.
    - `scope`: what is watched. Defaults to everything.
    """

    mode: Literal["plane", "operator"]
    cluster: str
    host: str = LOOPBACK
    port: int = 0
    socket: Path | None = None
    writes: bool = False
    scope: Scope = Scope()

    def __post_init__(self) -> None:
        check_host(self.host)


class Page:
    """Call `start` once, then `stop`."""

    def __init__(self, world: World, client: Client, settings: PageSettings, reporter: Reporter | None = None) -> None:
        """
        - `client`: closed by `stop`.
        - `reporter`: of controllers in this process. Defaults to None: all reports come through the socket.
        """
        self._world = world
        self._client = client
        self._settings = settings
        self._history = History(world.clock)
        self._cluster = Cluster(client, world, self._history.changes, settings.scope)
        self._symptoms = Symptoms(world.clock, self._cluster, self._history.alarms, self._history.graph)
        self._stream = Stream(world.clock, self._history)
        self._about = About(
            mode=settings.mode,
            cluster=settings.cluster,
            version=version("ostinato"),
            writes=settings.writes,
            started=world.clock.wall(),
        )
        self._server_alarms = ServerAlarms(
            world.clock, self._cluster, self._history.alarms, lambda: self._stream.is_viewed
        )
        routes = Routes(self._described, world.clock, client, self._cluster, self._history, self._stream)
        self._browsers = BrowserServer(world, routes)
        self._local = LocalServer(world, routes, self._history.receive, self._browsers.renew)
        self._tasks: list[asyncio.Task[None]] = []
        self._reporter = reporter

    @property
    def url(self) -> str:
        """URL for the browser, with the token, which works once."""
        return self._browsers.url

    async def start(self) -> None:
        """Listen, and begin to watch. Raises OSError."""
        settings = self._settings
        await self._browsers.start(settings.host, settings.port)
        try:
            if settings.socket is not None:
                await self._local.start(settings.socket)
        except BaseException:
            await self._browsers.stop()
            raise
        self._run("page: cluster", self._cluster.run)
        if self._reporter is not None:
            self._run("page: reports", partial(self._reporter.run, self._receive))
        self._run("page: stream", self._tick)
        self._run("page: symptoms", self._check)
        self._run("page: server alarms", self._server_alarms.run)

    async def opened(self) -> None:
        """Wait until a browser has opened the page."""
        await self._stream.opened.wait()

    async def synced(self) -> None:
        """Wait until the kinds that are watched have synced."""
        await self._cluster.synced()

    async def stop(self) -> None:
        await self._browsers.stop()
        await self._local.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    def _described(self) -> About:
        denied = [*self._cluster.denied, *self._server_alarms.denied]
        return msgspec.structs.replace(self._about, denied=denied)

    async def _receive(self, body: bytes) -> bool:
        self._history.receive(body)
        return False

    async def _tick(self) -> None:
        while True:
            await self._world.clock.sleep(TICK)
            self._history.tidy()
            self._stream.tick()

    async def _check(self) -> None:
        while True:
            await self._world.clock.sleep(_CHECK)
            self._symptoms.check()

    def _run(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = asyncio.get_running_loop().create_task(supervised(name, work, self._world.clock), name=name)
        self._tasks.append(task)
