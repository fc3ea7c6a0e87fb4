"""`ostinato apiserver` in a process of its own that faults can end, stop and start again on the same port."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from tests.faults.real.failpoints import VARIABLE
from tests.faults.real.https import Address, HttpsApi

_ROOT = Path(__file__).parents[3]
_START_SECONDS = 120.0


class ServerProcess:
    """A server, through its lives."""

    def __init__(self, state: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        """`environment`: further variables."""
        self.state = state
        self._failpoint = state.with_name(f"{state.name}.failpoint")
        self._environment = {VARIABLE: str(self._failpoint), **(environment or {})}
        self._options = options
        self._port = free_port()
        self._process: asyncio.subprocess.Process | None = None
        self._address: Address | None = None
        self.up = asyncio.Event()
        self.lives = 0
        self.api = HttpsApi(self.address, self.up)

    def address(self) -> Address:
        if self._address is None:
            self._address = Address.of(self.state / "admin.kubeconfig")
        return self._address

    @property
    def process(self) -> asyncio.subprocess.Process:
        assert self._process is not None
        return self._process

    @property
    def log(self) -> Path:
        return self.state.with_name(f"{self.state.name}.log")

    async def start(self) -> None:
        """Start it, and wait until it is ready; RuntimeError if it ends instead."""
        await self.spawn()
        await self.ready()

    async def spawn(self) -> None:
        self.lives += 1
        command = [sys.executable, "-m", "tests.faults.real.failpoints", "apiserver", "--state", str(self.state)]
        environment = {**os.environ, "PYTHONPATH": f"{_ROOT}:{_ROOT / 'src'}", **self._environment}
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command,
                "--listen",
                f"127.0.0.1:{self._port}",
                *self._options,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env=environment,
            )

    async def ready(self) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(_START_SECONDS):
            line = await self.process.stdout.readline()
        if b"ready at" not in line:
            await self.process.wait()
            raise RuntimeError(f"the server ended: {self.log.read_text()[-2000:]}")
        self.up.set()

    async def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it (kill -9); return when it is gone and its clients know."""
        self.up.clear()
        if self.process.returncode is None:
            self.process.send_signal(number)
        await self.died()

    async def died(self) -> None:
        """Wait for its end, and lose its connections."""
        await self.process.wait()
        self.up.clear()
        await self.api.lose_connections()

    def arm(self, point: str, count: int) -> None:
        """Let it die when it gets to a failpoint for the nth time from now."""
        self._failpoint.write_text(f"{point}:{count}")
        self.process.send_signal(signal.SIGUSR2)

    def stop(self) -> None:
        """Freeze it (SIGSTOP)."""
        self.process.send_signal(signal.SIGSTOP)

    def cont(self) -> None:
        """Wake it (SIGCONT)."""
        self.process.send_signal(signal.SIGCONT)

    async def close(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self.cont()
            await self.kill()


def free_port() -> int:
    """A port below those of outgoing connections: it stays free while the server is down."""
    for port in _PORTS:
        with closing(socket.socket()) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port")


_PORTS = iter(range(15_000 + os.getpid() % 64 * 70, 20_000))
