"""The embedded cluster of `ostinato run --embedded`: a control plane in this process, for as long as the command runs.

Its API server listens with HTTPS at a free port, so that kubectl can be used; the controllers talk to it without HTTP.
It has one node, which says that it runs Pods. It keeps everything in memory, and its certificates and kubeconfig in a
directory that it removes at the end; in a state directory that it is given it keeps everything.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from pathlib import Path
from typing import NoReturn

from ostinato.cli.error import Failure
from ostinato.client.config.config import Config
from ostinato.client.transport.protocol import Transport
from ostinato.manager.connecting import Connect, Purpose, over_http
from ostinato.plane.plane import Plane, PlaneSettings
from ostinato.server.standalone import Settings
from ostinato.server.state import StateError
from ostinato.server.store.index import UnusableStore
from ostinato.world import World


class Embedded:
    """`start` it once, then `close` it. It is served beside the managers that use it, and ends them if it fails."""

    def __init__(self, world: World, state: Path | None, *, accept_data_loss: bool = False) -> None:
        self._world = world
        self._removed = None if state is not None else Path(tempfile.mkdtemp(prefix="ostinato-"))
        directory = state or self._removed
        assert directory is not None
        store = "" if state is not None else "memory"
        server = Settings(state=directory, port=0, store=store, accept_data_loss=accept_data_loss)
        self._plane = Plane(world, PlaneSettings(server=server, nodes=1))
        self._over_http: Connect | None = None
        self._failing: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return self._plane.url

    @property
    def kubeconfig(self) -> Path:
        return self._plane.kubeconfig

    async def start(self) -> None:
        try:
            await self._plane.start()
        except (StateError, UnusableStore) as error:
            self._remove()
            raise Failure(str(error)) from None
        except BaseException:
            self._remove()
            raise
        self._over_http = over_http(Config.load(path=self.kubeconfig), self._world)

    async def close(self) -> None:
        await self._plane.stop()
        self._remove()

    async def serve(self) -> None:
        """Until `stop`; the error of a part that fails."""
        self._failing = asyncio.get_running_loop().create_task(self._plane.failed())
        await asyncio.wait([self._failing])
        if not self._failing.cancelled():
            self._failing.result()

    def stop(self) -> None:
        if self._failing is not None:
            self._failing.cancel()

    async def synced(self) -> None:
        """Nobody waits for its caches."""

    def connect(self, purpose: Purpose) -> Transport:
        """How managers reach it: straight, but for leader election, which runs in another thread."""
        assert self._over_http is not None, "it has been started"
        return self._over_http(purpose) if purpose.name == "leader-election" else self._plane.connect(purpose)

    def leave(self, code: int) -> NoReturn:
        """End the process at once; nothing is left behind that was to be removed."""
        self._remove()
        os._exit(code)

    def _remove(self) -> None:
        if self._removed is not None:
            shutil.rmtree(self._removed, ignore_errors=True)
