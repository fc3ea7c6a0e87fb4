"""The components of a control plane, and how they are divided among processes.

| part | contents |
|---|---|
| `apiserver` | the API server |
| `controllers` | the controllers of kube-controller-manager |
| `scheduler` | the scheduler |
| `nodes` | the agents of all nodes on this machine, the service proxy, and the cluster DNS |
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.controllers import ControllerOptions
from ostinato.controllers.reports.observing import Observer
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.manager import ClientOptions, Manager, ReportingOptions
from ostinato.manager.connecting import Connect
from ostinato.plane import names, scheduler
from ostinato.plane.access import identities
from ostinato.plane.access.local_sockets import node_names
from ostinato.plane.controllers import FIELD_MANAGER, Options, add_controllers, ignore_warning
from ostinato.plane.names import DNS, SCHEDULER, SERVICES
from ostinato.plane.network import services
from ostinato.plane.network.cidr_pool import PodRange
from ostinato.plane.network.dns.component import dns_server
from ostinato.plane.network.dns.settings import ClusterDns
from ostinato.plane.network.policy import enforcer as policies
from ostinato.plane.network.policy.gate import PolicyGate
from ostinato.plane.network.services.netns import NetnsAddresses
from ostinato.plane.node import fleet, pod_networking
from ostinato.plane.node.node_clients import node_clients
from ostinato.plane.node.pod_sandbox import AdmitPod
from ostinato.plane.node.registration.machine_info import address
from ostinato.plane.node.runtimes import ProcessOptions, SandboxError, with_state
from ostinato.plane.node.server.node_servers import NodeServers
from ostinato.server.node_agents.endpoint import Endpoint
from ostinato.server.standalone import Settings
from ostinato.world import World

if TYPE_CHECKING:  # requires an optional dependency
    from ostinato.plane.node.runtimes.containerd import Containerd

COMPONENTS: Final = ("controllers", SCHEDULER, "nodes")  # the parts beside the API server


class PlaneSettings(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `server`: settings of the API server.
    - `without`: names of components to leave out; see `names.PARTS`.
    - `nodes`: number of nodes. Defaults to 0.
    - `runtime`: container runtime of the nodes. Defaults to "simulated", which runs no containers.
    - `containerd`: containerd's socket, for the runtime "containerd".
    - `processes`: options of the runtime "process".
    - `dns`: address and domain of the cluster DNS.
    - `signing`: certificate and key of the CA that signs CertificateSigningRequests. Defaults to the cluster's own.
    - `csi`: sockets of CSI drivers whose volumes the controllers provision, attach and expand. Defaults to none.
    - `pod_ranges`: ranges that the Nodes get Pod CIDRs of, and simulated Pods their addresses. Defaults to none: nodes
      choose their own.
    """

    server: Settings
    without: frozenset[str] = frozenset()
    nodes: int = 0
    runtime: str = "simulated"
    containerd: Path = Path("/run/containerd/containerd.sock")
    processes: ProcessOptions = ProcessOptions()
    dns: ClusterDns = ClusterDns()
    signing: tuple[Path, Path] | None = None
    csi: tuple[Path, ...] = ()
    pod_ranges: tuple[PodRange, ...] = ()

    def __post_init__(self) -> None:
        names.check(self.nodes, self.runtime, self.without)

    @property
    def state(self) -> Path:
        """The state directory, absolute: paths of volumes must be."""
        return self.server.state.absolute()

    @property
    def is_dual_stack(self) -> bool:
        """Whether Services, and with them nodes and Pods, have addresses of both IP families."""
        return len(self.server.service_ranges) == 2

    @property
    def measures_usage(self) -> bool:
        """Whether nodes measure what containers use; simulated ones use nothing."""
        return bool(self.nodes) and self.runtime != "simulated"

    @property
    def cluster_dns(self) -> ClusterDns | None:
        """The cluster DNS, unless it is left out or no node could answer: simulated Pods resolve nothing."""
        is_off = self.runtime == "simulated" or {DNS, SERVICES} & self.without
        return None if is_off else self.dns

    @property
    def needs_existing_nodes(self) -> bool:
        """Whether the agents need the Nodes of the store: for the networks that their Pods have."""
        return bool(self.nodes) and self.runtime == "process"


class NodeParts(msgspec.Struct, frozen=True, kw_only=True):
    """What the part `nodes` needs.

    - `api_server`: URL of the API server, for Pods on the host network.
    - `existing`: the Nodes of the store, if the settings need them.
    - `containerd`: of the runtime of this name.
    - `ports`: of the nodes' own APIs. Default to kubelet's.
    """

    api_server: str
    existing: Sequence[Node] = ()
    containerd: Containerd | None = None
    ports: Mapping[str, int] = msgspec.field(default_factory=dict)


def add_parts(
    manager: Manager, settings: PlaneSettings, parts: Collection[str], of_nodes: NodeParts
) -> Mapping[str, Endpoint]:
    """Add components to a manager; return the API endpoints of the nodes. `parts`: some of `COMPONENTS`."""
    if "controllers" in parts:
        _add_controllers(manager, settings)
    if SCHEDULER in parts and SCHEDULER not in settings.without:
        scheduler.add_to(manager)
    return _add_nodes(manager, settings, of_nodes) if "nodes" in parts and settings.nodes else {}


async def start_node_servers(servers: NodeServers, manager: Manager, settings: PlaneSettings) -> None:
    """Start the HTTPS servers of the nodes on this machine's address."""
    client_of = node_clients(manager)
    await servers.start(node_names(settings.nodes), address(), settings.state, lambda name: client_of(name).live)


def _add_controllers(manager: Manager, settings: PlaneSettings) -> None:
    state = settings.state
    options = Options(
        ca_certificate=state / "ca.crt",
        ca_key=state / "ca.key",
        signing=settings.signing,
        account_key=settings.server.authentication.accounts.signing_key or state / "sa.key",
        volumes=state / "volumes" if settings.nodes else None,
        csi=settings.csi,
        pod_ranges=settings.pod_ranges,
        service_ranges=settings.server.service_ranges,
    )
    add_controllers(manager, options, without=settings.without - {SCHEDULER, SERVICES, DNS})


def _add_nodes(manager: Manager, settings: PlaneSettings, of_nodes: NodeParts) -> Mapping[str, Endpoint]:
    state = settings.state
    proxy = NetnsAddresses(state) if SERVICES not in settings.without else None
    dns = settings.cluster_dns
    gate = None if proxy is None else PolicyGate(proxy.is_local)
    reachable = settings.measures_usage and proxy is not None and proxy.is_available()
    processes = msgspec.structs.replace(settings.processes, dns=dns if reachable else None, gate=gate)
    processes = pod_networking.with_services(processes, proxy, settings.server.service_ranges)
    processes = with_state(pod_networking.with_assigned(processes, of_nodes.existing), state)
    admit = None
    if settings.measures_usage and proxy is not None and gate is not None:
        server = None if dns is None else dns_server(manager, dns)
        served = services.add_to(manager, state, proxy, server, gate, node_names(settings.nodes))
        admit = _admission(policies.add_to(manager, state, gate, served))
    options = fleet.NodeOptions(
        api_server=of_nodes.api_server,
        admit=admit,
        ports=of_nodes.ports,
        is_dual_stack=settings.is_dual_stack,
        has_pod_cidrs=bool(settings.pod_ranges),
    )
    return fleet.add_to(
        manager, settings.nodes, settings.runtime, state / "nodes", of_nodes.containerd, processes, options
    )


def _admission(enforcer: policies.PolicyEnforcer) -> AdmitPod:
    async def admit(pod: Pod, addresses: Sequence[str]) -> None:
        try:
            await enforcer.admit(pod, addresses)
        except policies.PolicyNotEnforced as error:
            raise SandboxError(str(error)) from None

    return admit


def manager_of_plane(
    connect: Connect, world: World, *, graceful_shutdown: float = 30.0, observer: Observer | None = None
) -> Manager:
    """Return a manager for the components: each writes with its own identity and logs to `ostinato.plane`."""
    return Manager(
        connect=connect,
        client=ClientOptions(field_manager=FIELD_MANAGER, identities=identities.user_of_runnable, warn=ignore_warning),
        reporting=ReportingOptions(core_events=True, logger=logging.getLogger("ostinato.plane")),
        controllers=ControllerOptions(error_events=False),  # like kube-controller-manager
        graceful_shutdown=graceful_shutdown,
        world=world,
        observer=observer,
    )
