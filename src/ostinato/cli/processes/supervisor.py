"""Supervisor of `ostinato up` in several processes: one command, one log, one signal to stop.

- Processes import their modules at the same time. Components start when the API server is ready.
- The processes share the lock of the state directory: no other server can use it before the last of them has ended.
- The API server keeps its port when it is restarted. The components connect again: their connections wait, as the
  supervisor holds the Unix socket that the API server listens on.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ostinato.api.text.colour import colour_enabled
from ostinato.cli.processes.attachment import Attachment
from ostinato.cli.processes.division import APISERVER
from ostinato.cli.processes.supervised import SupervisedProcess, is_alive
from ostinato.http import unix_sockets
from ostinato.plane.access.local_sockets import apiserver_socket
from ostinato.server.state import StateDirectory, StateInUse
from ostinato.world import Clock, World

_HANDOVER: Final = 5.0  # seconds for the processes of a supervisor that was killed to end
_LOST: Final = "its store was in memory; start again, or keep the store with --store sqlite:PATH"
_POLL: Final = 0.05


class Supervisor:
    """Call `start` once, then `stop`; see `cli.commands.control_plane.serve.Served`."""

    def __init__(
        self, world: World, state: Path, options: Mapping[str, Any], division: Sequence[Sequence[str]]
    ) -> None:
        """`options`: of the command line, JSON. `division`: the parts of each process; see `division`."""
        self._clock = world.clock
        self._path = state
        self._options = dict(options)
        self._state: StateDirectory | None = None
        self._listening: socket.socket | None = None
        self._port = 0  # of the API server, once it is known
        self._server = self._supervised([APISERVER])
        self._others = [self._supervised(parts) for parts in division if APISERVER not in parts]
        self._running: list[asyncio.Task[None]] = []
        self.kubeconfig = state / "admin.kubeconfig"
        self.url = ""

    async def start(self) -> None:
        """Start all processes; on return all parts run. Raises StateError and CommandError."""
        self._state = await _locked(self._path, self._clock)
        self._listening = unix_sockets.listen(apiserver_socket(self._path))
        loop = asyncio.get_running_loop()
        self._running = [loop.create_task(each.run(), name=each.name) for each in (self._server, *self._others)]
        starting = loop.create_task(self._started())
        try:
            await asyncio.wait([starting, *self._running], return_when=asyncio.FIRST_COMPLETED)
            if not starting.done():
                await self.failed()
            await starting
        except BaseException:
            starting.cancel()
            await self.stop()
            raise

    async def _started(self) -> None:
        self.url = await self._api_server()
        for each in self._others:
            await each.ready()

    async def failed(self) -> None:
        """Wait until the supervision of a process fails and raise its error; a process that ends is restarted."""
        done, _ = await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Stop the components, then the API server."""
        await asyncio.gather(*(each.stop() for each in self._others))
        await self._server.stop()
        await asyncio.gather(*self._running, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()
            apiserver_socket(self._path).unlink(missing_ok=True)
        if self._state is not None:
            self._state.release()
            self._state = None

    async def _api_server(self) -> str:
        url = await self._server.ready()
        self._port = urlsplit(url).port or 0
        return url

    def _supervised(self, parts: Sequence[str]) -> SupervisedProcess:
        def attach() -> Attachment:
            assert self._state is not None, "locked"
            assert self._listening is not None, "locked"
            return Attachment(
                parts=[*parts],
                options=self._options,
                lock=self._state.lock,
                listening=self._listening.fileno(),
                parent=os.getpid(),
                port=self._port,
                terminal=sys.stderr.isatty(),
                colour=colour_enabled(sys.stderr),
            )

        name = ",".join(parts)
        if APISERVER not in parts:
            return SupervisedProcess(name, attach, self._clock, api_server=self._api_server)
        return SupervisedProcess(name, attach, self._clock, lost=_LOST if self._options["store"] == "memory" else "")


async def _locked(path: Path, clock: Clock) -> StateDirectory:
    """Lock the state directory. After a kill, the processes of the last supervisor may take a moment to end."""
    until = clock.monotonic() + _HANDOVER
    while True:
        try:
            return StateDirectory(path)
        except StateInUse as error:
            if not error.holder or is_alive(error.holder) or clock.monotonic() > until:
                raise
        await clock.sleep(_POLL)
