"""Plugin watcher: registers the CSI drivers whose sockets are in the node's `plugins_registry`, as kubelet does.

- The plugin is asked for its name and endpoint (GetInfo), the driver for its identity on this node (NodeGetInfo); they
  are published, and the plugin gets the result (NotifyRegistrationStatus).
- A socket that was replaced is registered again; one that was removed ends the registration.
- Each socket has a task of its own: a plugin that hangs delays no other. A failed registration is retried.
"""

from __future__ import annotations

import asyncio
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from ostinato.api.errors import APIError
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Dependencies
from ostinato.plane.csi import CsiError, CsiService
from ostinato.plane.node.private_files import make_directory
from ostinato.plane.node.volumes.csi.csi_node import CsiNodePublisher
from ostinato.plane.node.volumes.csi.drivers import NodeDrivers

_POLL: Final = 1.0  # seconds between looks at the directory
_TIMEOUT: Final = 10.0  # seconds for a call of the registration
_FIRST_RETRY: Final = 1.0
_MAX_RETRY: Final = 120.0
_TYPE: Final = "CSIPlugin"

Identity = tuple[int, int, int]
"""Device, inode and change time of a socket: differs when it is replaced."""


class PluginWatcher:
    """A runnable of a manager.

    - `directory`: `plugins_registry` of the node.
    - `publisher`: writes CSINode and Node.
    """

    needs_leader_election = False

    def __init__(self, node: str, directory: Path, drivers: NodeDrivers, publisher: CsiNodePublisher) -> None:
        self.name = f"plugin-watcher-{node}"
        self._directory = directory
        self._drivers = drivers
        self._publisher = publisher
        self._tasks: dict[Path, tuple[Identity, asyncio.Task[None]]] = {}
        self._registered: dict[Path, str] = {}  # names of drivers by socket

    async def run(self, dependencies: Dependencies) -> None:
        make_directory(self._directory)
        clock = dependencies.world.clock
        try:
            await self._ensure_csi_node(dependencies)
            async with asyncio.TaskGroup() as group:
                while True:
                    await self._look(group, dependencies)
                    await clock.sleep(_POLL)
        finally:
            await self._drivers.close()

    async def _ensure_csi_node(self, dependencies: Dependencies) -> None:
        """Create the CSINode, as soon as the Node exists."""
        while True:
            try:
                await self._publisher.ensure()
            except (APIError, TransportError) as error:
                dependencies.logger.debug("CSINode not created yet error=%s", error)
                await dependencies.world.clock.sleep(_POLL)
            else:
                return

    async def _look(self, group: asyncio.TaskGroup, dependencies: Dependencies) -> None:
        found = dict(await dependencies.world.executor.run(_sockets, self._directory))
        for socket, (identity, task) in [*self._tasks.items()]:
            if found.get(socket) != identity:
                task.cancel()
                del self._tasks[socket]
                if socket not in found:
                    await self._deregister(socket, dependencies)
        for socket, identity in found.items():
            if socket not in self._tasks:
                task = group.create_task(self._register_until_done(socket, dependencies))
                self._tasks[socket] = identity, task

    async def _register_until_done(self, socket: Path, dependencies: Dependencies) -> None:
        retry = _FIRST_RETRY
        while True:
            try:
                name = await self._register(socket, dependencies)
            except (CsiError, APIError, TransportError) as error:
                dependencies.logger.warning("plugin not registered, retrying socket=%s error=%s", socket, error)
                await dependencies.world.clock.sleep(retry)
                retry = min(2 * retry, _MAX_RETRY)
            else:
                dependencies.logger.info("CSI driver registered driver=%s socket=%s", name, socket)
                return

    async def _register(self, socket: Path, dependencies: Dependencies) -> str:
        plugin = CsiService(socket, dependencies.world.clock)
        try:
            info = await plugin.call("GetInfo", within=_TIMEOUT)
            try:
                await self._install(socket, info)
            except (CsiError, APIError, TransportError) as error:
                with suppress(CsiError):
                    failure = {"plugin_registered": False, "error": str(error)}
                    await plugin.call("NotifyRegistrationStatus", failure, within=_TIMEOUT)
                raise
            await plugin.call("NotifyRegistrationStatus", {"plugin_registered": True}, within=_TIMEOUT)
        finally:
            await plugin.close()
        return self._registered[socket]

    async def _install(self, socket: Path, info: Mapping[str, Any]) -> None:
        name, kind = info.get("name", ""), info.get("type", "")
        if kind != _TYPE:
            raise CsiError(f"no handler registered for plugin type: {kind} at socket {socket}")
        versions = info.get("supported_versions", ())
        if not any(each.removeprefix("v").partition(".")[0] == "1" for each in versions):
            raise CsiError(f"CSI driver {name} supports the versions {', '.join(versions) or 'none'}; 1.x is needed")
        driver = await self._drivers.add(name, Path(info.get("endpoint") or socket))
        try:
            await self._publisher.publish(name, await driver.service.call("NodeGetInfo"))
        except BaseException:
            await self._drivers.remove(name)
            raise
        self._registered[socket] = name

    async def _deregister(self, socket: Path, dependencies: Dependencies) -> None:
        name = self._registered.pop(socket, "")
        if not name or name in self._registered.values():  # another socket has registered it, too
            return
        dependencies.logger.info("CSI driver removed driver=%s socket=%s", name, socket)
        await self._drivers.remove(name)
        try:
            await self._publisher.withdraw(name)
        except (CsiError, APIError, TransportError) as error:
            dependencies.logger.warning("CSINode not updated driver=%s error=%s", name, error)


def _sockets(directory: Path) -> Iterator[tuple[Path, Identity]]:
    """Return the sockets below a directory, without following links. Blocks."""
    found = []
    for path in [*directory.rglob("*")]:
        with suppress(OSError):
            status = path.lstat()
            if stat.S_ISSOCK(status.st_mode) and not path.name.startswith("."):
                found.append((path, (status.st_dev, status.st_ino, status.st_ctime_ns)))
    return iter(found)
