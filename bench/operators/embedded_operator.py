"""Ostinato's operator and its API server in one process.

    python -m bench.operators.embedded_operator STATE NAMESPACE WORKERS apply|create|post

This is `ostinato run --embedded` without the rest of the control plane. The server stores its objects in the state
directory and listens with HTTPS; the operator uses an in-process transport.

The server starts immediately. The operator is imported and started when a line arrives on standard input, so that the
server runs and has its objects first, as for the other operators.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ostinato.manager.running import loop_factory
from ostinato.server.core import Server
from ostinato.server.standalone import Settings, Standalone
from ostinato.world import World


async def main(state: Path, namespace: str, workers: int, way: str) -> None:
    world = World.real()
    server = Standalone(world, Settings(state=state, port=0))
    await server.start()
    assert server.core is not None
    try:
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        await operate(server.core, world, namespace, workers, way)
    finally:
        await server.stop()
        world.executor.close()


async def operate(core: Server, world: World, namespace: str, workers: int, way: str) -> None:
    from bench.operators.ostinato_operator import gadgets_controller
    from ostinato import Manager
    from ostinato.cache.informers import InformerSettings
    from ostinato.manager import CacheOptions
    from ostinato.manager.connecting import Purpose
    from ostinato.manager.running import serve_together
    from ostinato.server.in_process.transport import InProcessTransport

    def connect(purpose: Purpose) -> InProcessTransport:
        return InProcessTransport(core, user_agent=purpose.name, deadline=purpose.deadline)

    caches = CacheOptions(defaults=InformerSettings(namespaces=(namespace,)))
    await serve_together(Manager(connect=connect, caches=caches, world=world).add(gadgets_controller(way, workers)))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]))
