"""An API server in this process, with an in-memory store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from ostinato.server.core import Server
from ostinato.server.standalone import Settings, Standalone
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation, World


@asynccontextmanager
async def started_server(world: World | None = None, log: Any = None, **settings: Any) -> AsyncIterator[Server]:
    """Start a server, and close it at the end of the block.

    - `world`: Defaults to a real one, whose executor is closed as well.
    - `log`: the store's log. Defaults to a new MemoryLog.
    - `settings`: further arguments of `Server`.
    """
    used = World.real() if world is None else world
    server = Server(used, MemoryLog() if log is None else log, **settings)
    await server.start()
    try:
        yield server
    finally:
        await server.close()
        if world is None:
            used.executor.close()


@asynccontextmanager
async def standalone_server(state: Path, **settings: Any) -> AsyncIterator[Standalone]:
    """Start a server that listens on a free port with HTTPS, in real time, and stop it at the end of the block.

    - `state`: its state directory.
    - `settings`: further arguments of `Settings`. The store is in memory unless they say otherwise.
    """
    world = World.real(workers=1)
    server = Standalone(world, Settings(**{"state": state, "port": 0, "store": "memory", **settings}))
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
        world.executor.close()


def on_a_server(
    test: Callable[[Simulation, Server], Awaitable[None]], name: str = "", **settings: Any
) -> Callable[[], None]:
    """Turn a coroutine function into a test that runs in virtual time with a server. `name`: of the test."""

    def run() -> None:
        world = Simulation(seed=1)

        async def main() -> None:
            async with started_server(world, **settings) as server:
                await test(world, server)

        world.run(main())

    run.__name__ = name or test.__name__
    run.__doc__ = test.__doc__
    return run
