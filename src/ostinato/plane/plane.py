"""A whole plane in one process: API server, controllers, scheduler and nodes, from start to stop.

    plane = Plane(world, PlaneSettings(server=Settings(state=directory)))
    await plane.start()
    ...                        # plane.kubeconfig is for clients; plane.connect for managers in this process
    await plane.stop()

Its parts talk to the API server alone, though without HTTP. They share one manager, and with it one cache a kind, that
`system:kube-controller-manager` fills; everything else each part, and each node, asks in its own name (`identities`),
with the rights that every cluster gives it, and with a few more (`roles`). What they do between two starts is in the
store: a plane that starts again goes on where the last one stopped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.client.client import Client
from ostinato.client.transport.protocol import Transport
from ostinato.kinds.core_v1 import Node
from ostinato.manager import ClientOptions, Manager, Purpose, ReportingOptions
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

if TYPE_CHECKING:  # what it needs is an extra
    from ostinato.plane.node.runtimes.containerd import Containerd

SCHEDULER: Final = "scheduler"
PARTS: Final = (*CONTROLLERS, SCHEDULER, services.SERVICES)


class PlaneSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `server`: of the API server.
    - `without`: parts that are left out, of `PARTS`.
    - `nodes`: how many there are. Defaults to none.
    - `runtime`: what they run containers with. Defaults to "simulated": they run nothing, and say they do.
    - `containerd`: the socket of containerd, for the runtime of this name.
    - `processes`: settings of the runtime "process".
    """

    server: Settings
    without: frozenset[str] = frozenset()
    nodes: int = 0
    runtime: str = "simulated"
    containerd: Path = Path("/run/containerd/containerd.sock")
    processes: ProcessOptions = ProcessOptions()

    def __post_init__(self) -> None:
        if unknown := sorted(self.without - set(PARTS)):
            raise ValueError(f"there is no part {unknown[0]!r}; there are {', '.join(PARTS)}")
        if self.nodes < 0:
            raise ValueError(f"{self.nodes} nodes: there cannot be fewer than none")
        if self.runtime not in fleet.RUNTIMES:
            raise ValueError(f"there is no runtime {self.runtime!r}; there are {', '.join(fleet.RUNTIMES)}")


class Plane:
    """A control plane on this machine. `start` it once, then `stop` it."""

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
        """Of an administrator; the file is there once the plane has started."""
        return self._server.kubeconfig

    def connect(self, purpose: Purpose) -> Transport:
        """How a manager in this process reaches the API server: as whom it says, or as an administrator."""
        assert self._server.core is not None, "the plane has been started"
        user = identities.user_and_groups(purpose.identity) if purpose.identity else ADMINISTRATOR
        return InProcessTransport(self._server.core, user=user, user_agent=purpose.name, deadline=purpose.deadline)

    def _connect_part(self, purpose: Purpose) -> Transport:
        """How the parts of the plane do: what has no identity of its own is the controller manager's."""
        return self.connect(purpose._replace(identity=purpose.identity or identities.MANAGER))

    async def start(self) -> None:
        """When this returns, the API server answers, and the parts are starting.

        Errors are `Standalone.start`'s; and `UnusableRuntime`.
        """
        settings = self._settings
        if settings.nodes and settings.runtime == "containerd":
            self._containerd = await fleet.find_containerd(self._world, settings.containerd)
        await self._server.start()
        nodes = await self._grant()
        manager = self._manager = Manager(
            connect=self._connect_part,
            client=ClientOptions(
                field_manager=FIELD_MANAGER, identities=identities.user_of_runnable, warn=ignore_warning
            ),
            reporting=ReportingOptions(core_events=True),
            world=self._world,
        )
        self._add_parts(manager, nodes)
        self._serving = asyncio.get_running_loop().create_task(manager.serve())

    async def _grant(self) -> Sequence[Node]:
        """Give the parts the rights that they need beyond those which every cluster gives them.

        Returns the Nodes of the store, if their agents run in this process.
        """
        client = Client(self.connect(Purpose()), world=self._world, field_manager=FIELD_MANAGER)
        await roles.ensure(client)
        await joining.ensure(client, self.url, (self._settings.server.state / "ca.crt").read_bytes())
        nodes = [*await client.list(Node)] if self._settings.nodes and self._settings.runtime == "process" else []
        await client.close()
        return nodes

    async def failed(self) -> None:
        """Wait until a part fails, and raise its error; return when the plane is stopped."""
        assert self._serving is not None, "the plane has been started"
        await asyncio.shield(self._serving)

    async def stop(self) -> None:
        """End the parts, then the server."""
        if self._manager is not None and self._serving is not None:
            self._manager.stop()
            await asyncio.wait([self._serving])
        if self._containerd is not None:
            await self._containerd.close()
        await self._server.stop()

    def _add_parts(self, manager: Manager, nodes: Sequence[Node]) -> None:
        """`nodes`: those that the store holds already."""
        settings = self._settings
        state = settings.server.state.absolute()  # volumes are named by their paths
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
            if settings.runtime != "simulated":  # which uses nothing that could be measured
                self._server.core.serve_usage()
                if proxy is not None:
                    services.add_to(manager, state, proxy)
