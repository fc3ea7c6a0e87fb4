"""Workers: `ostinato apiserver --workers N` runs N API servers on one port, on a store that they share.

- The kernel distributes connections among the workers (SO_REUSEPORT). The parent holds the port while workers restart.
- They share the state directory, which the parent locks. The first worker creates missing keys and certificates; the
  others start when it is ready.
- A worker that ends is restarted; see `supervised`. Its clients connect again, to any worker.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ostinato.api.text.colour import colour_enabled
from ostinato.cli.processes.attachment import Attachment
from ostinato.cli.processes.supervised import SupervisedProcess
from ostinato.server.http.listener import bound_sockets
from ostinato.server.state import StateDirectory
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.standalone import Settings

_WORKER: Final = "worker-"


def is_worker(parts: Sequence[str]) -> bool:
    return parts[0].startswith(_WORKER)


class Workers:
    """Call `start` once, then `stop`; see `cli.commands.control_plane.serve.Served`."""

    def __init__(self, world: World, settings: Settings, options: Mapping[str, Any]) -> None:
        """`options`: of the command line, JSON."""
        self._settings = settings
        self._options = dict(options)
        self._clock = world.clock
        self._state: StateDirectory | None = None
        self._port: list[socket.socket] = []  # bound, not listening
        first = self._worker(0, self._nothing)
        self._workers = [first, *(self._worker(i, first.ready) for i in range(1, options["workers"]))]
        self._running: list[asyncio.Task[None]] = []
        self.kubeconfig = settings.state / "admin.kubeconfig"
        self.url = ""

    async def start(self) -> None:
        """Start all workers. Raises StateError, OSError and CommandError."""
        self._state = StateDirectory(self._settings.state)
        try:
            await self._bind()
            loop = asyncio.get_running_loop()
            self._running = [loop.create_task(each.run(), name=each.name) for each in self._workers]
            starting = loop.create_task(self._started())
            try:
                await asyncio.wait([starting, *self._running], return_when=asyncio.FIRST_COMPLETED)
                if not starting.done():
                    await self.failed()
                await starting
            finally:
                starting.cancel()
        except BaseException:
            await self.stop()
            raise

    async def _bind(self) -> None:
        host, port = self._settings.host, self._settings.port
        for free in await bound_sockets(host, port, reuse_port=False):  # OSError if another server has it
            free.close()
        self._port = await bound_sockets(host, port, reuse_port=True)

    async def _started(self) -> None:
        for each in self._workers:
            self.url = await each.ready()

    async def failed(self) -> None:
        """Wait until the supervision of a worker fails and raise its error; a worker that ends is restarted."""
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        await asyncio.gather(*(each.stop() for each in self._workers))
        await asyncio.gather(*self._running, return_exceptions=True)
        for each in self._port:
            each.close()
        if self._state is not None:
            self._state.release()
            self._state = None

    async def _nothing(self) -> str:
        """The first worker waits for no other."""
        return ""

    def _worker(self, number: int, after: Callable[[], Awaitable[str]]) -> SupervisedProcess:
        def attach() -> Attachment:
            assert self._state is not None, "locked"
            return Attachment(
                parts=[name],
                options=self._options,
                lock=self._state.lock,
                listening=self._port[0].fileno(),
                parent=os.getpid(),
                port=self._port[0].getsockname()[1],
                terminal=sys.stderr.isatty(),
                colour=colour_enabled(sys.stderr),
            )

        name = f"{_WORKER}{number}"
        return SupervisedProcess(name, attach, self._clock, api_server=after)
