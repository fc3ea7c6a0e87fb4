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
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.client.client import Client
from ostinato.client.transport.protocol import Transport
from ostinato.controllers import ControllerOptions
from ostinato.kinds.core_v1 import Node
from ostinato.manager import ClientOptions, Manager, Purpose, ReportingOptions
from ostinato.manager.connecting import Connect
from ostinato.plane import scheduler
from ostinato.plane.access import cluster_info as joining
from ostinato.plane.access import identities, roles
from ostinato.plane.controllers import CONTROLLERS, FIELD_MANAGER, Options, add_controllers, ignore_warning
from ostinato.plane.network import services
from ostinato.plane.network.services.netns import NetnsAddresses
from ostinato.plane.node import fleet, pod_networking
from ostinato.plane.node.runtimes import ProcessOptions, hiding
from ostinato.server.in_process.transport import ADMINISTRATOR, InProcessTransport
from ostinato.server.standalone import Settings, Standalone
from ostinato.world import World

if TYPE_CHECKING:  # requires an optional dependency
    from ostinato.plane.node.runtimes.containerd import Containerd

SCHEDULER: Final = "scheduler"
PARTS: Final = (*CONTROLLERS, SCHEDULER, services.SERVICES)


class PlaneSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `server`: settings of the API server.
    - `without`: names of components to leave out; see `PARTS`.
    - `nodes`: number of nodes. Defaults to 0.
    - `runtime`: container runtime of the nodes. Defaults to "simulated", which runs no containers.
    - `containerd`: containerd's socket, for the runtime "containerd".
    - `processes`: options of the runtime "process".
    """

    server: Settings
    without: frozenset[str] = frozenset()
    nodes: int = 0
    runtime: str = "simulated"
    containerd: Path = Path("/run/containerd/containerd.sock")
    processes: ProcessOptions = ProcessOptions()

    def __post_init__(self) -> None:
        if unknown := sorted(self.without - set(PARTS)):
            raise ValueError(f"unknown component {unknown[0]!r}; choose from {', '.join(PARTS)}")
        if self.nodes < 0:
            raise ValueError(f"nodes is {self.nodes}; it must not be negative")
        if self.runtime not in fleet.RUNTIMES:
            raise ValueError(f"unknown runtime {self.runtime!r}; choose from {', '.join(fleet.RUNTIMES)}")


class Plane:
    """Control plane on this machine. Call `start` once, then `stop`."""

    def __init__(self, world: World, settings: PlaneSettings) -> None:
        self._world = world
        self._settings = settings
        self._server = Standalone(world, settings.server)
        self._manager: Manager | None = None
        self._serving: asyncio.Task[None] | None = None
        self._containerd: Containerd | None = None

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
        nodes = await self._grant()
        manager = self._manager = manager_of_plane(self._connect_part, self._world)
        self._add_parts(manager, nodes)
        self._serving = asyncio.get_running_loop().create_task(manager.serve())

    async def _grant(self) -> Sequence[Node]:
        """Create the RBAC rules and the join configuration of the components.

        Returns the existing Nodes, if their agents run in this process.
        """
        client = Client(self.connect(Purpose()), world=self._world, field_manager=FIELD_MANAGER)
        await roles.ensure(client)
        await joining.ensure(client, self.url, (self._settings.server.state / "ca.crt").read_bytes())
        nodes = [*await client.list(Node)] if self._settings.nodes and self._settings.runtime == "process" else []
        await client.close()
        return nodes

    async def failed(self) -> None:
        """Wait until a component fails and raise its error; return when the plane is stopped."""
        assert self._serving is not None, "the plane is started"
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """Stop the components, then the API server."""
        if self._manager is not None and self._serving is not None:
            self._manager.stop()
            await asyncio.wait([self._serving])
        if self._containerd is not None:
            await self._containerd.close()
        await self._server.stop()

    def _add_parts(self, manager: Manager, nodes: Sequence[Node]) -> None:
        """`nodes`: the existing Nodes of the store."""
        settings = self._settings
        state = settings.server.state.absolute()  # paths of volumes must be absolute
        options = Options(
            ca_certificate=state / "ca.crt",
            ca_key=state / "ca.key",
            account_key=settings.server.authentication.accounts.signing_key or state / "sa.key",
            volumes=state / "volumes" if settings.nodes else None,
        )
        add_controllers(manager, options, without=settings.without - {SCHEDULER, services.SERVICES})
        if SCHEDULER not in settings.without:
            scheduler.add_to(manager)
        if settings.nodes:
            assert self._server.core is not None
            proxy = NetnsAddresses(state) if services.SERVICES not in settings.without else None
            processes = pod_networking.with_assigned(pod_networking.with_services(settings.processes, proxy), nodes)
            processes = hiding(processes, state)
            added = fleet.add_to(
                manager, settings.nodes, settings.runtime, state / "nodes", self._containerd, processes, self.url
            )
            for name, endpoint in added.items():
                self._server.core.nodes.add(name, endpoint)
            if settings.runtime != "simulated":  # simulated containers have no usage to report
                self._server.core.serve_usage()
                if proxy is not None:
                    services.add_to(manager, state, proxy)


def manager_of_plane(connect: Connect, world: World, *, graceful_shutdown: float = 30.0) -> Manager:
    """Return a manager for the components: each writes with its own identity and logs to `ostinato.plane`."""
    return Manager(
        connect=connect,
        client=ClientOptions(field_manager=FIELD_MANAGER, identities=identities.user_of_runnable, warn=ignore_warning),
        reporting=ReportingOptions(core_events=True, logger=logging.getLogger("ostinato.plane")),
        controllers=ControllerOptions(error_events=False),  # like kube-controller-manager
        graceful_shutdown=graceful_shutdown,
        world=world,
    )
