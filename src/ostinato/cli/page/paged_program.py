"""The page of a program that `ostinato run` runs, beside its managers."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ostinato.cli.page.address import announce, own_socket, page_address
from ostinato.client.client import Client
from ostinato.page.page import Page, PageSettings
from ostinato.page.reporting.reporter import Reporter
from ostinato.page.watching.cluster import Scope
from ostinato.world import World


class PageOptions(NamedTuple):
    """Of the command line."""

    address: str
    writes: bool


class PagedProgram:
    """See `manager.running.Served`."""

    def __init__(self, world: World, client: Client, scope: Scope, reporter: Reporter, options: PageOptions) -> None:
        self._host, port = page_address(options.address)
        settings = PageSettings(
            mode="plane" if scope.kinds is None else "operator",
            cluster=client.host,
            host=self._host,
            port=port,
            socket=own_socket(),
            writes=options.writes,
            scope=scope,
        )
        self._page = Page(world, client, settings, reporter)
        self._stopping = asyncio.Event()

    async def serve(self) -> None:
        """Serve until `stop`. Raises OSError if the address is taken."""
        await self._page.start()
        try:
            announce(self._page.url, self._host)
            await self._stopping.wait()
        finally:
            await self._page.stop()

    def stop(self) -> None:
        self._stopping.set()

    async def synced(self) -> None:
        """Return at once: nothing waits for the page."""
