"""The embedded cluster of `ostinato run --embedded`: a control plane in this process while the command runs.

- The API server listens on a free port with HTTPS, for kubectl. The program's controllers use in-process transports.
- It has one node.
- Its log is that of the logger `ostinato.plane`, also for records of loggers that it shares with the program.
- Without a state directory, objects are kept in memory, and certificates and kubeconfig in a temporary directory that
  is removed at the end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, NoReturn

from ostinato.cli.error import CommandError
from ostinato.client.config.config import Config
from ostinato.client.transport.protocol import Transport
from ostinato.controllers.reports.observing import Observer
from ostinato.manager.connecting import Connect, Purpose, over_http
from ostinato.manager.logs import limited_by
from ostinato.plane.plane import Plane, PlaneSettings
from ostinato.server.standalone import Settings
from ostinato.server.state import StateError
from ostinato.server.store.records import UnusableStore
from ostinato.world import World


class Embedded:
    """`start` once, then `close`. Served together with the managers that use it; if it fails, they stop."""

    def __init__(
        self,
        world: World,
        state: Path | None,
        *,
        accept_data_loss: bool = False,
        observer: Observer | None = None,
    ) -> None:
        """`observer`: receives what the components of the cluster do. Defaults to None."""
        self._world = world
        self._temporary = None if state is not None else Path(tempfile.mkdtemp(prefix="ostinato-"))
        directory = state or self._temporary
        assert directory is not None
        store = "" if state is not None else "memory"
        server = Settings(state=directory, port=0, store=store, accept_data_loss=accept_data_loss)
        self._plane = Plane(world, PlaneSettings(server=server, nodes=1), observer)
        self._over_http: Connect | None = None
        self._failing: asyncio.Task[None] | None = None
        self._log_context = limited_by(logging.getLogger("ostinato.plane"))

    @property
    def url(self) -> str:
        return self._plane.url

    @property
    def kubeconfig(self) -> Path:
        return self._plane.kubeconfig

    async def start(self) -> None:
        try:
            await self._limited(self._plane.start())
        except (StateError, UnusableStore) as error:
            self._remove()
            raise CommandError(str(error)) from None
        except BaseException:
            self._remove()
            raise
        self._over_http = over_http(Config.load(path=self.kubeconfig), self._world)

    async def close(self) -> None:
        await self._limited(self._plane.stop())
        self._remove()

    async def _limited(self, work: Coroutine[Any, Any, None]) -> None:
        """Run with the log level of the control plane, which its tasks inherit."""
        await asyncio.get_running_loop().create_task(work, context=self._log_context.copy())

    async def serve(self) -> None:
        """Wait until `stop`; raise the error of a component that fails."""
        self._failing = asyncio.get_running_loop().create_task(self._plane.failed())
        await asyncio.wait([self._failing])
        if not self._failing.cancelled():
            self._failing.result()

    def stop(self) -> None:
        if self._failing is not None:
            self._failing.cancel()

    async def synced(self) -> None:
        """Return at once: the cluster has no caches to wait for."""

    def connect(self, purpose: Purpose) -> Transport:
        """Return a transport for a manager: in-process, except for leader election, which runs in another thread."""
        assert self._over_http is not None, "connect() needs start()"
        return self._over_http(purpose) if purpose.name == "leader-election" else self._plane.connect(purpose)

    def exit(self, code: int) -> NoReturn:
        """Remove the temporary directory and end the process."""
        self._remove()
        os._exit(code)

    def _remove(self) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
