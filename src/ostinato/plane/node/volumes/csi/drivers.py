"""The CSI drivers that are registered at a node."""

from __future__ import annotations

from pathlib import Path

from ostinato.plane.csi import CsiError, CsiService
from ostinato.world import Clock


class NodeDriver:
    """A registered driver. Its capabilities are asked once."""

    def __init__(self, name: str, socket: Path, clock: Clock) -> None:
        self.name = name
        self.service = CsiService(socket, clock)
        self._capabilities: frozenset[int] | None = None

    async def has(self, capability: int) -> bool:
        """Return whether the node service has a capability."""
        if self._capabilities is None:
            self._capabilities = await self.service.capabilities("NodeGetCapabilities")
        return capability in self._capabilities


class NodeDrivers:
    """The registered drivers of a node, by name."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._drivers: dict[str, NodeDriver] = {}

    def get(self, name: str) -> NodeDriver:
        """Return a driver; `CsiError` if it is not registered."""
        if name not in self._drivers:
            raise CsiError(f"driver name {name} not found in the list of registered CSI drivers")
        return self._drivers[name]

    async def add(self, name: str, socket: Path) -> NodeDriver:
        """Register a driver, in place of an earlier one of the same name."""
        await self.remove(name)
        driver = self._drivers[name] = NodeDriver(name, socket, self._clock)
        return driver

    async def remove(self, name: str, socket: Path | None = None) -> None:
        """Remove a driver, if it is registered. `socket`: only if it is at this socket."""
        known = self._drivers.get(name)
        if known is not None and socket in (None, known.service.socket):
            del self._drivers[name]
            await known.service.close()

    async def close(self) -> None:
        for name in [*self._drivers]:
            await self.remove(name)
