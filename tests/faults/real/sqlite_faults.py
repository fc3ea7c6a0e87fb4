"""Faults of a server process on SQLite: each disturbs the server while the clients work."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable

from ostinato.world import Rng
from tests.faults.disk.journal import DIE, FULL, NO_SYNC, NONE, READ_ONLY, Layer
from tests.faults.history.records import History
from tests.faults.real.failpoints import POINTS
from tests.faults.real.server_process import ServerProcess


class Victim:
    """The server, and the history that its deaths are recorded in."""

    def __init__(self, server: ServerProcess, history: History, layer: Layer | None = None) -> None:
        self.server = server
        self.history = history
        self._layer = layer
        self.faults = 0

    @property
    def layer(self) -> Layer:
        """The file layer below the store."""
        assert self._layer is not None, "this fault needs a file layer"
        return self._layer

    async def crash(self, number: signal.Signals = signal.SIGKILL) -> None:
        """kill -9, and a new process on the same files."""
        await self.server.kill(number)
        await self.again()

    async def again(self) -> None:
        """The process is dead: start another."""
        self.faults += 1
        self.history.end_unknown()
        await self.server.start()


Fault = Callable[[Victim, Rng], Awaitable[None]]


async def none(victim: Victim, rng: Rng) -> None:
    """Concurrency alone."""


async def kill(victim: Victim, rng: Rng) -> None:
    """kill -9 at a random moment."""
    await asyncio.sleep(rng.uniform(0.0, 0.5))
    await victim.crash()


async def kill_in_start(victim: Victim, rng: Rng) -> None:
    """kill -9 under load, and again while the next process starts."""
    await asyncio.sleep(rng.uniform(0.0, 0.5))
    await victim.server.kill()
    victim.faults += 1
    await victim.server.spawn()
    await asyncio.sleep(rng.uniform(0.0, 0.6))
    await victim.crash()


async def terminate(victim: Victim, rng: Rng) -> None:
    """A graceful stop under load."""
    await asyncio.sleep(rng.uniform(0.0, 0.5))
    await victim.crash(signal.SIGTERM)


async def stop(victim: Victim, rng: Rng) -> None:
    """Frozen for a while."""
    await asyncio.sleep(rng.uniform(0.0, 0.3))
    victim.server.stop()
    victim.faults += 1
    await asyncio.sleep(rng.uniform(0.1, 1.0))
    victim.server.cont()


def _at(point: str) -> Fault:
    async def die(victim: Victim, rng: Rng) -> None:
        await asyncio.sleep(rng.uniform(0.0, 0.1))
        victim.server.arm(point, rng.randrange(1, 20))
        await victim.server.died()
        assert victim.server.process.returncode == -signal.SIGKILL
        await victim.again()

    return die


def _failing(mode: int) -> Fault:
    async def fail(victim: Victim, rng: Rng) -> None:
        """For a while, then all is well again."""
        await asyncio.sleep(rng.uniform(0.0, 0.3))
        victim.layer.set(mode)
        victim.faults += 1
        await asyncio.sleep(rng.uniform(0.05, 0.4))
        victim.layer.set(NONE)
        await asyncio.sleep(0.1)

    return fail


def _failing_then(mode: int, end: Fault) -> Fault:
    async def fail(victim: Victim, rng: Rng) -> None:
        """The process ends while the disk fails."""
        await asyncio.sleep(rng.uniform(0.0, 0.3))
        victim.layer.set(mode)
        await asyncio.sleep(rng.uniform(0.05, 0.4))
        await victim.server.kill()
        victim.layer.set(NONE)
        await end(victim, rng)

    return fail


async def _start_again(victim: Victim, rng: Rng) -> None:
    await victim.server.kill()
    await victim.again()


async def _lose_power(victim: Victim, rng: Rng) -> None:
    """Some of what was not synced is not on the disk."""
    await victim.server.kill()
    share = rng.choice([0.0, 0.1, 0.5, 0.9])
    victim.layer.lose_power(lambda: rng.random() < share)
    victim.layer.begin()
    await victim.again()


async def power_loss(victim: Victim, rng: Rng) -> None:
    await asyncio.sleep(rng.uniform(0.0, 0.5))
    await _lose_power(victim, rng)


async def kill_in_call(victim: Victim, rng: Rng) -> None:
    """kill -9 at a system call of the store, amid a write if it is one."""
    await asyncio.sleep(rng.uniform(0.0, 0.2))
    victim.layer.set(DIE, rng.randrange(1, 60))
    await victim.server.died()
    assert victim.server.process.returncode == -signal.SIGKILL
    victim.layer.set(NONE)
    await victim.again()


FAULTS: dict[str, Fault] = {
    "none": none,
    "kill": kill,
    "kill-in-start": kill_in_start,
    "terminate": terminate,
    "stop": stop,
    **{f"kill-{point}": _at(point) for point in POINTS},
}
DISK_FAULTS: dict[str, Fault] = {
    "full-disk": _failing(FULL),
    "read-only-disk": _failing(READ_ONLY),
    "failing-sync": _failing(NO_SYNC),
    "full-disk-then-kill": _failing_then(FULL, _start_again),
    "failing-sync-then-kill": _failing_then(NO_SYNC, _start_again),
    "failing-sync-then-power-loss": _failing_then(NO_SYNC, _lose_power),
    "kill-in-call": kill_in_call,
    "power-loss": power_loss,
}
