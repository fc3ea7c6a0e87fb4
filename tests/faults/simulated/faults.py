"""Faults of simulated runs: each is a task that disturbs the server while the clients work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ostinato.server.store import hub
from ostinato.world import Rng
from tests.faults.simulated.disk import full, read_only

if TYPE_CHECKING:
    from tests.faults.simulated.run import Machine

Fault = Callable[["Machine", Rng], Awaitable[None]]


async def none(machine: Machine, rng: Rng) -> None:
    """Concurrency alone."""


async def kill(machine: Machine, rng: Rng) -> None:
    """kill -9 at a random moment."""
    await machine.world.clock.sleep(rng.uniform(0.05, 0.5))
    await machine.crash(rng.uniform(0.0, 0.2))


async def kill_before_commit(machine: Machine, rng: Rng) -> None:
    """kill -9 when a batch is about to be written."""
    machine.log.crash_before.add(machine.log.appended + 1 + rng.randrange(80))
    await machine.died()
    await machine.crash()


async def kill_after_commit(machine: Machine, rng: Rng) -> None:
    """kill -9 when a batch is durable, and no one knows."""
    machine.log.crash_after.add(machine.log.appended + 1 + rng.randrange(80))
    await machine.died()
    await machine.crash()


async def kills(machine: Machine, rng: Rng) -> None:
    """Several, so that a restarted server is killed soon."""
    while True:
        await machine.world.clock.sleep(rng.uniform(0.05, 0.2))
        await machine.crash()


async def stop(machine: Machine, rng: Rng) -> None:
    """A graceful restart under load."""
    await machine.world.clock.sleep(rng.uniform(0.05, 0.5))
    await machine.restart()


async def _failing(machine: Machine, rng: Rng, error: Callable[[], Exception]) -> None:
    await machine.world.clock.sleep(rng.uniform(0.05, 0.5))
    machine.log.failing = error
    await machine.world.clock.sleep(rng.uniform(0.01, 0.2))
    machine.log.failing = lambda: None


async def full_disk(machine: Machine, rng: Rng) -> None:
    await _failing(machine, rng, full)


async def read_only_disk(machine: Machine, rng: Rng) -> None:
    await _failing(machine, rng, read_only)


async def full_disk_then_kill(machine: Machine, rng: Rng) -> None:
    machine.log.failing = full
    await machine.world.clock.sleep(rng.uniform(0.01, 0.2))
    await machine.crash()


async def failing_batches(machine: Machine, rng: Rng) -> None:
    """A third of the batches fails, for a while."""
    own = rng.fork("batches")
    machine.log.failing = lambda: read_only() if own.random() < 0.3 else None
    await machine.world.clock.sleep(rng.uniform(0.2, 0.8))
    machine.log.failing = lambda: None


async def slow_disk(machine: Machine, rng: Rng) -> None:
    """A commit takes long, while readers go on."""
    await machine.world.clock.sleep(rng.uniform(0.05, 0.5))
    quick, machine.log._delay = machine.log._delay, lambda: rng.uniform(0.1, 0.5)
    await machine.world.clock.sleep(rng.uniform(0.5, 1.5))
    machine.log._delay = quick


async def clock_steps(machine: Machine, rng: Rng) -> None:
    """The date jumps forward and back."""
    while True:
        machine.world.clock.jump(rng.choice([-7200.0, -60.0, -1.0, 1.0, 60.0, 86_400.0]))
        await machine.world.clock.sleep(rng.uniform(0.02, 0.2))


async def compaction(machine: Machine, rng: Rng) -> None:
    """The history is dropped every 100 ms."""
    while True:
        await machine.world.clock.sleep(0.1)
        machine.server.index.drop_history()


async def disconnects(machine: Machine, rng: Rng) -> None:
    """Connections are cut, of requests and of watches, whatever they wait for."""
    while True:
        await machine.world.clock.sleep(rng.uniform(0.01, 0.15))
        machine.cut_connections(lambda: rng.random() < 0.3)


async def small_backlogs(machine: Machine, rng: Rng) -> None:
    """Watchers that do not read quickly enough are closed."""
    before, hub.BACKLOG_EVENTS = hub.BACKLOG_EVENTS, 4
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        hub.BACKLOG_EVENTS = before


FAULTS: dict[str, Fault] = {
    "none": none,
    "kill": kill,
    "kill-before-commit": kill_before_commit,
    "kill-after-commit": kill_after_commit,
    "kills": kills,
    "stop": stop,
    "full-disk": full_disk,
    "read-only-disk": read_only_disk,
    "full-disk-then-kill": full_disk_then_kill,
    "failing-batches": failing_batches,
    "slow-disk": slow_disk,
    "clock-steps": clock_steps,
    "compaction": compaction,
    "disconnects": disconnects,
    "slow-watchers": small_backlogs,
}
