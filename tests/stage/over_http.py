"""A theatre for plays with the whole embedded server in it: everybody speaks to it over HTTPS.

Time is virtual as in a simulation, for it jumps over what nobody needs (see `jumping_loop`). The sockets, TLS, the
certificates and HTTP are real: so what happens at one moment may happen in another order every time.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from ostinato.client import Config
from ostinato.manager.connecting import over_http
from ostinato.server.standalone import Settings, Standalone
from ostinato.world import BackgroundError, Ids, Rng, SimulatedClock, World
from ostinato.world.simulated.executor import SimulatedExecutor
from tests.stage.jumping_loop import JumpingLoop
from tests.stage.plane import Act

_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class OverHttp:
    """A theatre: `stage` says what that is."""

    def __init__(self, state: Path) -> None:
        """`state` is the server's directory, empty the first time. Plays share the certificates and nothing else."""
        self._settings = Settings(state=state, port=0, store="memory")
        # Whether a certificate is valid TLS decides, by the date of this machine: not by that of the play.
        asyncio.run(self._make_certificates())

    async def _make_certificates(self) -> None:
        server = Standalone(World.real(), self._settings)
        await server.start()
        await server.stop()

    def __call__(self, seed: int, act: Act) -> None:
        loop = JumpingLoop()
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(self._perform(_world(loop, seed), act))
            except Exception as error:
                for failure in loop.failures:
                    error.add_note(f"and in the background: {failure!r}")
                raise
        if loop.failures:
            raise BackgroundError("errors that nothing handled", loop.failures)

    async def _perform(self, world: World, act: Act) -> None:
        server = Standalone(world, self._settings)
        await server.start()
        try:
            assert server.core is not None
            await act(world, server.core, over_http(Config.load(path=server.kubeconfig), world))
        finally:
            await server.stop()


def _world(loop: JumpingLoop, seed: int) -> World:
    rng = Rng(seed)
    clock = SimulatedClock(loop, _BEGINNING.timestamp())
    # All that it asks of a loop, this one has, too; but no plain function may wait for a coroutine.
    executor = SimulatedExecutor(cast("Any", loop), 8, lambda: 0.0)
    return World(clock, rng.fork("rng"), Ids.simulated(rng.fork("ids")), executor)
