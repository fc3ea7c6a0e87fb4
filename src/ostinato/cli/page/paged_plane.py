"""A control plane in this process with a page: the page starts after it and stops before it."""

from __future__ import annotations

from pathlib import Path

from ostinato.cli.page.address import announce, page_address
from ostinato.client.client import Client
from ostinato.manager import Purpose
from ostinato.manager.connecting import Connect
from ostinato.page.page import SOCKET, Page, PageSettings
from ostinato.page.reporting.reporter import Reporter
from ostinato.plane.access import identities, roles
from ostinato.plane.controllers import ignore_warning
from ostinato.plane.plane import Plane, PlaneSettings
from ostinato.world import World


class PagedPlane:
    """See `cli.commands.control_plane.serve.Served`."""

    def __init__(self, world: World, settings: PlaneSettings, address: str, *, writes: bool) -> None:
        """`address`: of the page, as given."""
        self._world = world
        self._address = address
        self._writes = writes
        self._state = settings.state
        self._reporter = Reporter("plane", world.clock)
        self._page: Page | None = None
        self.plane = Plane(world, settings, self._reporter)

    @property
    def url(self) -> str:
        return self.plane.url

    @property
    def kubeconfig(self) -> Path:
        return self.plane.kubeconfig

    async def start(self) -> None:
        await self.plane.start()
        try:
            self._page = await start_page(
                self._world, self.plane, self._state, self._address, self._reporter, writes=self._writes
            )
        except BaseException:
            await self.plane.stop()
            raise

    async def opened(self) -> None:
        """Wait until a browser has opened the page."""
        assert self._page is not None, "started"
        await self._page.opened()

    async def failed(self) -> None:
        await self.plane.failed()

    async def stop(self) -> None:
        if self._page is not None:
            await self._page.stop()
        await self.plane.stop()


async def page_client(connect: Connect, world: World, *, writes: bool) -> Client:
    """Return a client with the identity of the page, whose role is created or updated.

    `connect`: connects to a plane in this process, without an identity as an administrator.
    """
    identity = identities.PAGE_WRITES if writes else identities.PAGE
    async with Client(connect(Purpose("page")), world=world) as administrator:
        await roles.ensure_page(administrator, identity, writes=writes)
    return Client(connect(Purpose("page", identity=identity)), world=world, warn=ignore_warning)


async def start_page(
    world: World, plane: Plane, state: Path, address: str, reporter: Reporter, *, writes: bool
) -> Page:
    """Start the page of a plane in this process, and print its URL."""
    host, port = page_address(address)
    client = await page_client(plane.connect, world, writes=writes)
    settings = PageSettings(
        mode="plane", cluster=str(state), host=host, port=port, socket=state / SOCKET, writes=writes
    )
    page = Page(world, client, settings, reporter)
    await page.start()
    announce(page.url, host)
    return page
