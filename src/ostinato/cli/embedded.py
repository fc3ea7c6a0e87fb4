"""The embedded cluster of `ostinato run --embedded`: an API server in this process, for as long as the command runs.

It listens with HTTPS at a free port, so that kubectl can be used; the controllers talk to it without HTTP. It keeps
everything in memory, and its certificates and kubeconfig in a directory that it removes at the end; in a state
directory that it is given it keeps everything.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from ostinato.cli.failure import Failure
from ostinato.client.config import Config
from ostinato.client.transport import Transport
from ostinato.manager.connecting import Connect, Purpose, over_http
from ostinato.server.standalone import Settings, Standalone
from ostinato.server.state import StateError
from ostinato.server.store.index import UnusableStore
from ostinato.server.transport import InProcessTransport
from ostinato.world import World


class Embedded:
    """`start` it once, then `stop` it."""

    def __init__(self, world: World, state: Path | None) -> None:
        self._world = world
        self._removed = None if state is not None else Path(tempfile.mkdtemp(prefix="ostinato-"))
        directory = state or self._removed
        assert directory is not None
        self._server = Standalone(world, Settings(state=directory, port=0, store="" if state is not None else "memory"))
        self._over_http: Connect | None = None

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def kubeconfig(self) -> Path:
        return self._server.kubeconfig

    async def start(self) -> None:
        try:
            await self._server.start()
        except (StateError, UnusableStore) as error:
            raise Failure(str(error)) from None
        except BaseException:
            self._remove()
            raise
        self._over_http = over_http(Config.load(path=self.kubeconfig), self._world)

    async def stop(self) -> None:
        await self._server.stop()
        self._remove()

    def connect(self, purpose: Purpose) -> Transport:
        """How managers reach it: straight, but for leader election, which runs in another thread."""
        assert self._server.core is not None, "it has been started"
        assert self._over_http is not None
        if purpose.name == "leader-election":
            return self._over_http(purpose)
        return InProcessTransport(self._server.core, user_agent=purpose.name, deadline=purpose.deadline)

    def _remove(self) -> None:
        if self._removed is not None:
            shutil.rmtree(self._removed, ignore_errors=True)
