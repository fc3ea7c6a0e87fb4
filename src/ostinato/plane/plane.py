"""Control plane in one process: API server, controllers, scheduler and nodes.

    plane = Plane(world, PlaneSettings(server=Settings(state=directory)))
    await plane.start()
    ...                        # plane.kubeconfig is for clients, plane.connect for managers in this process
    await plane.stop()

- Components reach the API server through an in-process transport.
- They share one manager and one informer per kind, which reads as `system:kube-controller-manager`. Writes use the
  identity of each component (`access.identities`), with the bootstrap roles and a few additional rules
  (`access.roles`).
- All state is in the store: a restarted plane continues from it.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ostinato.client.client import Client
from ostinato.client.transport.protocol import Transport
from ostinato.controllers.reports.observing import Observer
from ostinato.kinds.core_v1 import Node
from ostinato.manager import Manager, Purpose
from ostinato.plane.access import grants, identities
from ostinato.plane.network.dns import service as dns_service
from ostinato.plane.node import fleet
from ostinato.plane.node.server.node_servers import NodeServers
from ostinato.plane.parts import (
    COMPONENTS,
    NodeParts,
    PlaneSettings,
    add_parts,
    manager_of_plane,
    start_node_servers,
)
from ostinato.server.in_process.transport import ADMINISTRATOR, InProcessTransport
from ostinato.server.standalone import Standalone
from ostinato.world import World

if TYPE_CHECKING:  # requires an optional dependency
    from ostinato.plane.node.runtimes.containerd import Containerd

__all__ = ["Plane", "PlaneSettings"]


class Plane:
    """Control plane on this machine. Call `start` once, then `stop`."""

    def __init__(self, world: World, settings: PlaneSettings, observer: Observer | None = None) -> None:
        """`observer`: receives what the components do, for a live view. Defaults to None."""
        self._world = world
        self._observer = observer
        self._settings = settings
        self._server = Standalone(world, settings.server)
        self._manager: Manager | None = None
        self._serving: asyncio.Task[None] | None = None
        self._containerd: Containerd | None = None
        self._node_servers = NodeServers(world)

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig file of an administrator; written by `start`."""
        return self._server.kubeconfig

    def connect(self, purpose: Purpose) -> Transport:
        """Return a transport to the API server for a manager in this process.

        It has the identity of `purpose`; without one it is an administrator.
        """
        assert self._server.core is not None, "the plane is started"
        user = identities.user_and_groups(purpose.identity) if purpose.identity else ADMINISTRATOR
        return InProcessTransport(self._server.core, user=user, user_agent=purpose.name, deadline=purpose.deadline)

    def _connect_part(self, purpose: Purpose) -> Transport:
        """Return a transport for a component; without an identity it is the controller manager's."""
        return self.connect(purpose._replace(identity=purpose.identity or identities.MANAGER))

    async def start(self) -> None:
        """Start the API server, then the components. Returns when the API server is ready.

        Raises what `Standalone.start` raises, and `UnusableRuntime`.
        """
        settings = self._settings
        if settings.nodes and settings.runtime == "containerd":
            self._containerd = await fleet.find_containerd(self._world, settings.containerd)
        await self._server.start()
        core = self._server.core
        assert core is not None, "started"
        await grants.ensure(self._server, settings.server, self._world, csi=bool(settings.csi))
        if settings.cluster_dns is not None:
            await dns_service.ensure(InProcessTransport(core), self._world, settings.cluster_dns)
        manager = self._manager = manager_of_plane(self._connect_part, self._world, observer=self._observer)
        if settings.measures_usage:
            await start_node_servers(self._node_servers, manager, settings)
        of_nodes = NodeParts(
            api_server=self.url,
            existing=await self._existing(),
            containerd=self._containerd,
            ports=self._node_servers.ports,
        )
        endpoints = add_parts(manager, settings, COMPONENTS, of_nodes)
        self._node_servers.serve(endpoints)
        for name, endpoint in endpoints.items():
            core.nodes.add(name, endpoint)
        if settings.measures_usage:
            core.serve_usage()
        self._serving = asyncio.get_running_loop().create_task(manager.serve())

    async def _existing(self) -> list[Node]:
        """Return the Nodes of the store, if their agents need them."""
        if not self._settings.needs_existing_nodes:
            return []
        async with Client(self.connect(Purpose()), world=self._world) as client:
            return [*await client.list(Node)]

    async def failed(self) -> None:
        """Wait until a component or the store fails and raise its error; return when the plane is stopped."""
        assert self._serving is not None, "the plane is started"
        store = asyncio.get_running_loop().create_task(self._server.failed())
        try:
            done, _ = await asyncio.wait([self._serving, store], return_when=asyncio.FIRST_COMPLETED)
        finally:
            store.cancel()
        for task in done:
            task.result()

    async def stop(self) -> None:
        """Stop the components, then the API server."""
        if self._manager is not None and self._serving is not None:
            self._manager.stop()
            await asyncio.wait([self._serving])
        await self._node_servers.stop()
        if self._containerd is not None:
            await self._containerd.close()
        await self._server.stop()
