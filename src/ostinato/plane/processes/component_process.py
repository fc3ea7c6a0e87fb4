"""Components of a control plane in a process of their own, connected to the API server of the same state directory.

As in `plane.plane` they share one manager and one informer per kind, which reads as `system:kube-controller-manager`,
and each writes with its own identity.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import TYPE_CHECKING

from ostinato.client.client import Client
from ostinato.controllers.reports.observing import Observer
from ostinato.kinds.core_v1 import Node
from ostinato.manager import Manager, Purpose
from ostinato.plane.access.local_access import LocalAccess
from ostinato.plane.node.server.node_servers import NodeServers
from ostinato.plane.parts import NodeParts, PlaneSettings, add_parts, manager_of_plane, start_node_servers
from ostinato.plane.processes.node_listener import NodeListener
from ostinato.world import World

if TYPE_CHECKING:  # requires an optional dependency
    from ostinato.plane.node.runtimes.containerd import Containerd


class ComponentProcess:
    """Call `prepare`, `start` and `stop` once."""

    def __init__(
        self, world: World, settings: PlaneSettings, parts: Collection[str], observer: Observer | None = None
    ) -> None:
        """
        - `parts`: some of `plane.parts.COMPONENTS`.
        - `observer`: receives what they do, for a live view. Defaults to None.
        """
        self._observer = observer
        self._world = world
        self._settings = settings
        self._parts = parts
        self._access = LocalAccess(world, settings.state)
        self._manager: Manager | None = None
        self._serving: asyncio.Task[None] | None = None
        self._containerd: Containerd | None = None
        self._node_servers = NodeServers(world)
        self._listener: NodeListener | None = None

    async def prepare(self) -> None:
        """Check what the components need of this machine. Raises `UnusableRuntime`."""
        settings = self._settings
        if "nodes" in self._parts and settings.nodes and settings.runtime == "containerd":
            from ostinato.plane.node import fleet  # noqa: PLC0415 - only for this runtime

            self._containerd = await fleet.find_containerd(self._world, settings.containerd)

    async def start(self, url: str) -> None:
        """Start the components. `url`: of the API server, which is ready."""
        settings = self._settings
        manager = self._manager = manager_of_plane(self._access.connect, self._world, observer=self._observer)
        if "nodes" in self._parts and settings.measures_usage:
            await start_node_servers(self._node_servers, manager, settings)
        of_nodes = NodeParts(
            api_server=url,
            existing=await self._existing(),
            containerd=self._containerd,
            ports=self._node_servers.ports,
        )
        endpoints = add_parts(manager, settings, self._parts, of_nodes)
        if endpoints:
            self._node_servers.serve(endpoints)
            self._listener = NodeListener(self._world, endpoints)
            await self._listener.start(settings.state)
        self._serving = asyncio.get_running_loop().create_task(manager.serve())

    async def _existing(self) -> list[Node]:
        """Return the Nodes of the store, if their agents need them."""
        if "nodes" not in self._parts or not self._settings.needs_existing_nodes:
            return []
        client = Client(self._access.connect(Purpose()), world=self._world)
        return [*await client.list(Node)]

    async def failed(self) -> None:
        """Wait until a component fails and raise its error; return after `stop`."""
        assert self._serving is not None, "started"
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Stop the components; containers keep running."""
        if self._manager is not None and self._serving is not None:
            self._manager.stop()
            await asyncio.wait([self._serving])
        await self._node_servers.stop()
        if self._listener is not None:
            await self._listener.stop()
        if self._containerd is not None:
            await self._containerd.close()
        await self._access.close()
