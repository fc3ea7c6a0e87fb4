"""What a process of `ostinato up` runs: the API server, or components. Imports only the modules that these need."""

from __future__ import annotations

import argparse
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from ostinato.cli.error import CommandError
from ostinato.cli.options.control_plane.cluster_dns import used_cluster_dns
from ostinato.cli.options.server import settings as server_options
from ostinato.cli.processes.attachment import Attachment
from ostinato.cli.processes.division import APISERVER, PAGE
from ostinato.cli.processes.workers import is_worker
from ostinato.cli.startup_errors import startup_errors
from ostinato.server.state import StateDirectory
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.cli.page.page_process import PageProcess, Reporting
    from ostinato.plane.processes.component_process import ComponentProcess
    from ostinato.plane.processes.server_process import ServerProcess
    from ostinato.server.standalone import Standalone

Begun = Callable[[], Awaitable[str]]
"""Waits until the API server is ready, and returns its URL."""


class Process:
    """Call `start` once, then `stop`."""

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self._options = argparse.Namespace(**attachment.options)
        self._world = World.real()
        self._part: ServerProcess | ComponentProcess | Standalone | PageProcess | None = None
        self._reporting: Reporting | None = None  # to the page

    async def start(self, begun: Begun) -> str:
        """Start the parts; return the URL of the API server. CommandError if that fails."""
        with startup_errors(self._options.listen):
            if is_worker(self._attachment.parts):
                return await self._start_worker(begun)
            if APISERVER in self._attachment.parts:
                return await self._start_server()
            if PAGE in self._attachment.parts:
                return await self._start_page(begun)
            return await self._start_components(begun)

    async def failed(self) -> None:
        """Wait until a part fails and raise its error."""
        assert self._part is not None, "started"
        await self._part.failed()

    async def stop(self) -> None:
        if self._part is not None:
            await self._part.stop()
        if self._reporting is not None:
            await self._reporting.stop()
        self._world.executor.close()

    async def _start_server(self) -> str:
        from ostinato.plane.processes.server_process import ServerProcess  # noqa: PLC0415

        options, attachment = self._options, self._attachment
        settings = server_options.settings(options)
        if attachment.port:
            settings = msgspec.structs.replace(settings, port=attachment.port)
        state = StateDirectory.shared(settings.state, attachment.lock)
        measures_usage = options.nodes > 0 and options.runtime != "simulated"
        server = ServerProcess(
            self._world,
            settings,
            state,
            listening=socket.socket(fileno=attachment.listening),
            nodes=options.nodes,
            measures_usage=measures_usage,
            dns=used_cluster_dns(options),
            csi=bool(options.csi_socket),
        )
        await server.start()
        self._part = server
        return server.url

    async def _start_worker(self, begun: Begun) -> str:
        from ostinato.server.standalone import Standalone  # noqa: PLC0415

        attachment = self._attachment
        settings = msgspec.structs.replace(server_options.settings(self._options), port=attachment.port, is_worker=True)
        server = Standalone(self._world, settings, StateDirectory.shared(settings.state, attachment.lock))
        await begun()  # the first worker creates the files
        await server.start()
        self._part = server
        return server.url

    async def _start_components(self, begun: Begun) -> str:
        from ostinato.cli.options.control_plane.plane import plane_settings  # noqa: PLC0415
        from ostinato.plane.node.runtimes import UnusableRuntime  # noqa: PLC0415
        from ostinato.plane.processes.component_process import ComponentProcess  # noqa: PLC0415

        settings, parts = plane_settings(self._options), self._attachment.parts
        if self._options.page:
            from ostinato.cli.page.page_process import Reporting  # noqa: PLC0415 - only with a page

            self._reporting = Reporting(self._world, settings, ",".join(parts))
        observer = None if self._reporting is None else self._reporting.observer
        components = ComponentProcess(self._world, settings, parts, observer)
        try:
            await components.prepare()
        except UnusableRuntime as error:
            raise CommandError(str(error)) from error
        url = await begun()
        await components.start(url)
        self._part = components
        if self._reporting is not None:
            self._reporting.start()
        return url

    async def _start_page(self, begun: Begun) -> str:
        from ostinato.cli.options.control_plane.plane import plane_settings  # noqa: PLC0415
        from ostinato.cli.page.page_process import PageProcess  # noqa: PLC0415

        options = self._options
        page = PageProcess(self._world, plane_settings(options), options.page, writes=options.page_writes)
        url = await begun()
        try:
            await page.start()
        except OSError as error:
            raise CommandError(f"--page {options.page}: {error.strerror or error}") from None
        self._part = page
        return url
