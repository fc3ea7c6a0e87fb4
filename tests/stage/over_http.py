"""Run scenarios of the `plane` stage with a standalone server over HTTPS.

Time is virtual: the loop jumps over idle time (`jumping_loop`). Sockets, TLS, certificates and HTTP are real, so the
order of simultaneous events differs from run to run.
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
from tests.stage.plane import Scenario

_START = datetime(2026, 1, 1, tzinfo=UTC)


class OverHttp:
    """A replacement for `in_simulation`."""

    def __init__(self, state: Path) -> None:
        """`state`: the server's state directory. Scenarios share its certificates and nothing else."""
        self._settings = Settings(state=state, port=0, store="memory")
        # TLS checks the certificates against the machine's clock, so they are created in real time.
        asyncio.run(self._make_certificates())

    async def _make_certificates(self) -> None:
        server = Standalone(World.real(), self._settings)
        await server.start()
        await server.stop()

    def __call__(self, seed: int, scenario: Scenario) -> None:
        loop = JumpingLoop()
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(self._run(_world(loop, seed), scenario))
            except Exception as error:
                for failure in loop.failures:
                    error.add_note(f"background error: {failure!r}")
                raise
        if loop.failures:
            raise BackgroundError("unhandled errors", loop.failures)

    async def _run(self, world: World, scenario: Scenario) -> None:
        server = Standalone(world, self._settings)
        await server.start()
        try:
            assert server.core is not None
            await scenario(world, server.core, over_http(Config.load(path=server.kubeconfig), world))
        finally:
            await server.stop()


def _world(loop: JumpingLoop, seed: int) -> World:
    rng = Rng(seed)
    clock = SimulatedClock(loop, _START.timestamp())
    # The executor uses only methods that this loop has; run_until_complete from a callback is not among them.
    executor = SimulatedExecutor(cast("Any", loop), 8, lambda: 0.0)
    return World(clock, rng.fork("rng"), Ids.simulated(rng.fork("ids")), executor)
