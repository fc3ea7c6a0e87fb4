"""Repair of cluster IPs and node ports: allocated values and Services are made to agree.

They differ after a crash between the two writes, after a write whose outcome was unknown, and in stores of older
versions. Values of a Service are allocated at once; values without a Service are released after a grace period, in
which their Service may be about to be stored, perhaps by another server. Every server runs the repair.
"""

from __future__ import annotations

import asyncio
import logging

from ostinato.server.resources.core.services.addresses import repair_addresses
from ostinato.server.resources.core.services.ports import NodePorts, taken_ports, used_ports
from ostinato.server.store.index import Index
from ostinato.server.store.records import StoreFailed
from ostinato.world import World

INTERVAL = 180.0  # seconds between two repairs
GRACE = 60.0  # seconds for which a value may be allocated without a Service
_logger = logging.getLogger(__name__)


class ServiceRepair:
    def __init__(self, index: Index, world: World) -> None:
        self._index = index
        self._world = world
        self._ports = NodePorts()
        self._unused: dict[int, float] = {}  # ports without a Service, and since when this server observes it
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Repair once, and periodically from then on. Before the start, only other servers have writes in progress."""
        await self.repair(GRACE if self._index.is_shared else 0.0)
        self._task = asyncio.get_running_loop().create_task(self._run(), name="service repair")

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def repair(self, grace: float = GRACE) -> None:
        services = list(self._index.collections["services"].entries.values())
        await repair_addresses(self._index, self._world, services, grace)
        now = self._world.clock.monotonic()
        used, taken = used_ports(self._index), taken_ports(self._index)
        self._unused = {port: self._unused.get(port, now) for port in taken - used}
        await self._ports.release(self._index, [port for port, since in self._unused.items() if since <= now - grace])

    async def _run(self) -> None:
        rng = self._world.rng.fork("service repair")
        while True:
            await self._world.clock.sleep(rng.jitter(INTERVAL, 0.2))
            try:
                await self.repair()
            except StoreFailed as error:
                _logger.warning("service repair failed, retrying error=%s", error)
            except Exception:
                _logger.exception("service repair failed, retrying")
