"""The page of a control plane in several processes: a process of its own."""

from __future__ import annotations

import asyncio
from typing import Final

from ostinato.cli.page.address import announce, page_address
from ostinato.cli.page.precedence import Precedence
from ostinato.client.client import Client
from ostinato.client.config.config import Config
from ostinato.manager import Purpose
from ostinato.page.page import SOCKET, Page, PageSettings
from ostinato.page.reporting.reporter import INTERVAL, Reporter
from ostinato.page.reporting.sender import Sender
from ostinato.plane.access import identities, roles
from ostinato.plane.access.local_access import LocalAccess
from ostinato.plane.controllers import ignore_warning
from ostinato.plane.parts import PlaneSettings
from ostinato.server.verbs.watch import INTERVAL_HEADER
from ostinato.world import World
from ostinato.world.supervision import supervised

_MERGED: Final = 200  # waiting events of a kind above which those of an object are merged


class PageProcess:
    """Call `start` once, then `stop`."""

    def __init__(self, world: World, settings: PlaneSettings, address: str, *, writes: bool) -> None:
        """`address`: as given with --page."""
        self._host, port = page_address(address)
        self._access = LocalAccess(world, settings.state)
        self._world = world
        self._precedence = Precedence(world.clock)
        self._yielding: asyncio.Task[None] | None = None
        self._writes = writes
        self._state = settings.state
        self._identity = identity = identities.PAGE_WRITES if writes else identities.PAGE
        interval = (INTERVAL_HEADER, f"{INTERVAL}; merge={_MERGED}; deleted=identity")
        transport = self._access.connect(Purpose("page", identity=identity), interval)
        client = Client(transport, world=world, warn=ignore_warning)
        self._page = Page(
            world,
            client,
            PageSettings(
                mode="plane",
                cluster=str(settings.state),
                host=self._host,
                port=port,
                socket=settings.state / SOCKET,
                writes=writes,
            ),
        )

    async def start(self) -> None:
        """Start the page and print its URL. Raises OSError."""
        config = Config.load(path=self._state / "admin.kubeconfig")
        async with Client.connect(config, world=self._world) as administrator:
            await roles.ensure_page(administrator, self._identity, writes=self._writes)
        self._precedence.yield_()
        self._yielding = asyncio.get_running_loop().create_task(
            supervised("page: precedence", self._precedence.run, self._world.clock)
        )
        await self._page.start()
        announce(self._page.url, self._host)

    async def failed(self) -> None:
        """Wait forever: its tasks are restarted when they fail."""
        await asyncio.get_running_loop().create_future()

    async def stop(self) -> None:
        if self._yielding is not None:
            self._yielding.cancel()
            await asyncio.wait([self._yielding])
        await self._page.stop()
        await self._access.close()


class Reporting:
    """Sends the reports of a process with components to the page. `observer` is for its manager."""

    def __init__(self, world: World, settings: PlaneSettings, process: str) -> None:
        self.observer = Reporter(process, world.clock)
        self._clock = world.clock
        self._sender = Sender(world.clock, settings.state / SOCKET)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        work = supervised("reports to the page", lambda: self.observer.run(self._sender.deliver), self._clock)
        self._task = asyncio.get_running_loop().create_task(work)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self._sender.close()
