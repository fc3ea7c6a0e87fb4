"""Adds nodes to a manager: registration, heartbeat, agent, static Pods and API endpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.api.quantity import Quantity
from ostinato.controllers import ChannelSource, ForEvent
from ostinato.kinds.core_v1 import Pod
from ostinato.manager import Manager
from ostinato.plane.access.local_sockets import node_names
from ostinato.plane.network.dns.settings import ClusterDns
from ostinato.plane.node.admission import NodeInfo
from ostinato.plane.node.agent import NodeAgent
from ostinato.plane.node.environment.object_reader import ObjectReader
from ostinato.plane.node.local_node import LocalNode
from ostinato.plane.node.node_clients import ClientOf, node_clients
from ostinato.plane.node.node_config import NodeConfig
from ostinato.plane.node.orphaned_pods import OrphanCleanup, PodInventory
from ostinato.plane.node.pod_sandbox import AdmitPod
from ostinato.plane.node.private_files import make_directory
from ostinato.plane.node.registration.heartbeat import Heartbeat
from ostinato.plane.node.registration.machine_info import address, address_of, machine_info
from ostinato.plane.node.registration.node_status import PORT, Machine, node_of
from ostinato.plane.node.registration.readiness import NodeReadiness
from ostinato.plane.node.registration.runtime_health import HasHealth, RuntimeHealth
from ostinato.plane.node.runtimes import ProcessOptions, Runtime, UnusableRuntime
from ostinato.plane.node.runtimes.simulated import SimulatedRuntime
from ostinato.plane.node.runtimes.simulated_addresses import pod_cidrs
from ostinato.plane.node.server.configz import AgentConfig
from ostinato.plane.node.server.endpoint import NodeEndpoint
from ostinato.plane.node.server.pod_streams import PodStreams
from ostinato.plane.node.server.stats import NodeStats
from ostinato.plane.node.static_pods import StaticPodSource, resolve_mirror
from ostinato.plane.node.volumes.csi.attachments import VolumesInUse
from ostinato.plane.node.volumes.csi.csi_node import CsiNodePublisher
from ostinato.plane.node.volumes.csi.drivers import NodeDrivers
from ostinato.plane.node.volumes.csi.plugin_watcher import PluginWatcher
from ostinato.plane.node.volumes.csi.volumes import CsiVolumes
from ostinato.plane.objects.indexes import NODE_NAME, ensure_index
from ostinato.plane.objects.pod_state import PodState
from ostinato.server.node_agents.endpoint import Endpoint
from ostinato.world import World

if TYPE_CHECKING:  # what it needs is an extra
    from ostinato.plane.node.runtimes.containerd import Containerd
    from ostinato.plane.node.runtimes.process.networks import PodNetworks

DEFAULT_OPTIONS: Final = ProcessOptions()
_SIMULATED_CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}


class LocalRuntime(Runtime, PodInventory, Protocol):
    """A runtime whose containers run on this machine."""


@runtime_checkable
class HasPodNetworks(Protocol):
    """A runtime that creates the networks of its Pods itself."""

    networks: PodNetworks


MakeRuntime = Callable[[Path, Sequence[str]], LocalRuntime]
"""`make_runtime(directory, addresses)` creates the runtime of a node, with its state directory and addresses."""


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """Options of nodes on this machine.

    - `address`: of the node's API. Defaults to this machine's.
    - `ports`: of the node's API, by node. Default to kubelet's.
    - `client_of`: sends requests as a node. Defaults to impersonation of each node.
    - `readiness`: what the nodes wait for before they report Ready. Defaults to nothing.
    - `api_server`: URL of the API server, for Pods on the host network. Defaults to the Service `kubernetes`.
    - `admit`: waits until the network policies apply to a Pod. Defaults to None: there are none.
    - `is_dual_stack`: the node has an IPv6 address as well, if the machine has one. Defaults to False.
    - `has_pod_cidrs`: simulated Pods get addresses of the Pod CIDRs of their Nodes. Defaults to False.
    """

    address: str = ""
    is_dual_stack: bool = False
    has_pod_cidrs: bool = False
    ports: Mapping[str, int] = msgspec.field(default_factory=dict)
    api_server: str = ""
    client_of: ClientOf | None = None
    readiness: NodeReadiness | None = None
    admit: AdmitPod | None = None


async def find_containerd(world: World, socket: Path) -> Containerd:
    """Connect to containerd; `UnusableRuntime` if that fails."""
    try:
        from ostinato.plane.node.runtimes import containerd  # noqa: PLC0415
    except ImportError as error:
        message = f"the runtime containerd needs {error.name}: pip install 'ostinato[containerd]'"
        raise UnusableRuntime(message) from None
    return await containerd.connect(world, socket)


def process_runtime(world: World, options: ProcessOptions) -> MakeRuntime:
    from ostinato.plane.node.runtimes.process import ProcessRuntime  # noqa: PLC0415 - loads only for this runtime

    def make(directory: Path, addresses: Sequence[str]) -> ProcessRuntime:
        network = options.network.of_node(directory.name)
        return ProcessRuntime(world, directory, addresses, msgspec.structs.replace(options, network=network))

    return make


def containerd_runtime(world: World, containerd: Containerd, dns: ClusterDns | None = None) -> MakeRuntime:
    from ostinato.plane.node.runtimes.containerd import ContainerdRuntime  # noqa: PLC0415

    return lambda directory, _: ContainerdRuntime(world, containerd, directory, dns)


def add_to(
    manager: Manager,
    count: int,
    runtime: str,
    state: Path | None = None,
    containerd: Containerd | None = None,
    processes: ProcessOptions = DEFAULT_OPTIONS,
    options: NodeOptions = NodeOptions(),  # noqa: B008 - immutable
) -> dict[str, Endpoint]:
    """Add nodes to a manager; return their API endpoints by name.

    - `runtime`: "containerd", "process" or "simulated".
    - `state`: state directory; required unless containers are simulated.
    - `containerd`, `processes`: for the runtimes of these names; `processes.dns` for both.
    - `options`: of the nodes.
    """
    names = node_names(count)
    if runtime == "simulated":
        return add_nodes(manager, *_simulated_nodes(manager, names, options), logs=None)
    if state is None:
        raise ValueError(f"add_to() needs a state directory for the runtime {runtime!r}; pass state=")
    if containerd is None:
        make_runtime = process_runtime(manager.world, processes)
    else:
        make_runtime = containerd_runtime(manager.world, containerd, processes.dns)
    return add_local_nodes(manager, names, state, make_runtime, options)


def add_local_nodes(
    manager: Manager,
    names: Sequence[str],
    state: Path,
    make_runtime: MakeRuntime,
    options: NodeOptions = NodeOptions(),  # noqa: B008
) -> dict[str, Endpoint]:
    """Add nodes whose containers run on this machine; return their API endpoints by name."""
    state = state.resolve()  # containers have other working directories
    for each in (state, state / "logs"):
        make_directory(each)
    machines, nodes = [], {}
    client_of = options.client_of or node_clients(manager)
    cleanup = OrphanCleanup(state / "logs", client_of)
    readiness = options.readiness
    for name in names:
        directory = make_directory(state / name)
        hosts = _addresses(options)
        runtime = make_runtime(directory, hosts)
        machine = msgspec.structs.replace(
            machine_info(name, runtime.version, directory),
            addresses=hosts,
            port=options.ports.get(name, PORT),
            network=runtime.networks.condition if isinstance(runtime, HasPodNetworks) else None,
        )
        machines.append(machine)
        allocatable = {each: Quantity(amount) for each, amount in machine.capacity.items()}
        config = NodeConfig(directory, state / "logs", hosts, allocatable, options.api_server)
        info = NodeInfo(name, node_of(machine).metadata.labels, allocatable)
        csi = _add_csi(manager, name, directory, client_of)
        nodes[name] = LocalNode(name, hosts, runtime, config, info, csi, options.admit)
        cleanup.add(name, directory, runtime, csi)
    manager.add(cleanup)
    checked = next((node.runtime for node in nodes.values() if isinstance(node.runtime, HasHealth)), None)
    if checked is not None:  # the nodes of a process share the containerd behind their runtimes
        readiness = readiness or NodeReadiness(manager.world.clock)
        manager.add(RuntimeHealth(checked, readiness))
    return add_nodes(manager, machines, nodes, state / "logs", msgspec.structs.replace(options, readiness=readiness))


def _addresses(options: NodeOptions) -> tuple[str, ...]:
    """The addresses of this machine: that of its API, and in a dual-stack cluster one of the other family."""
    first = options.address or address()
    other = address_of(4 if ":" in first else 6) if options.is_dual_stack else ""
    return (first, other) if other else (first,)


def _add_csi(manager: Manager, node: str, directory: Path, client_of: ClientOf) -> CsiVolumes:
    """Add the registration of CSI drivers at a node; return their volumes."""
    world, client = manager.world, client_of(node).live
    drivers = NodeDrivers(world.clock)
    manager.add(PluginWatcher(node, directory / "plugins_registry", drivers, CsiNodePublisher(node, client)))
    objects = ObjectReader(client, world)
    return CsiVolumes(node, directory, drivers, objects, VolumesInUse(node, client), world)


def _simulated_nodes(
    manager: Manager, names: Sequence[str], options: NodeOptions
) -> tuple[list[Machine], dict[str, LocalNode]]:
    world = manager.world
    shared = SimulatedRuntime(world, pod_cidrs(manager) if options.has_pod_cidrs else None)

    def addresses(number: int) -> tuple[str, ...]:
        first = f"172.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"
        return (first, f"fd00:172::{number:x}") if options.is_dual_stack else (first,)

    machines = [
        Machine(
            name=name,
            addresses=addresses(number),
            runtime=shared.version,
            capacity=_SIMULATED_CAPACITY,
            id=world.ids.uid(),
        )
        for number, name in enumerate(names, 1)
    ]
    return machines, {each.name: LocalNode(each.name, each.addresses, shared) for each in machines}


def add_nodes(
    manager: Manager,
    machines: Sequence[Machine],
    nodes: Mapping[str, LocalNode],
    logs: Path | None,
    options: NodeOptions = NodeOptions(),  # noqa: B008 - immutable
) -> dict[str, Endpoint]:
    """Add nodes to a manager; return their API endpoints by name.

    All nodes share the manager's watches; writes, and reads of a single Pod's objects, are sent as the node.
    """
    client_of = options.client_of or node_clients(manager)
    informer = manager.informers.of(PodState)
    ensure_index(informer, NODE_NAME)

    def bound_to(key: NamespacedName) -> str:
        return next(iter(informer.store.values_of(NODE_NAME.name, key)), "")

    agent = NodeAgent(nodes, bound_to, client_of)
    manager.add(Heartbeat(machines, client_of, options.readiness))
    (
        manager.build("kubelet")
        .watches(Pod, handler=ForEvent(agent.keys))
        .watches_source(ChannelSource(agent.changes))
        .with_options(max_concurrent=32, needs_leader_election=False, runs_for_own_writes=False)
        .complete(agent)
    )

    for node in nodes.values():
        if node.config is not None:
            manager.add(StaticPodSource(node.name, node.config.directory / "manifests", agent.set_static_pods))

    async def find(key: NamespacedName) -> Pod | None:
        found = await manager.client.get(Pod, key, missing=None)
        return None if found is None else resolve_mirror(agent.latest(found))

    async def pods_of(node: str) -> Sequence[Pod]:
        keys = informer.store.index_keys(NODE_NAME.name, node)
        return [pod for key in keys if (pod := await find(key)) is not None]

    runtimes = {name: node.runtime for name, node in nodes.items()}
    stats = NodeStats(manager.world.clock, runtimes, pods_of)

    def endpoint(node: LocalNode) -> Endpoint:
        streams = PodStreams(manager.world, find, {node.name: node.runtime}, logs)  # of this node's Pods alone
        config = AgentConfig(address=node.address, port=options.ports.get(node.name, PORT))
        return NodeEndpoint(node.name, streams, stats, node.probe_results, config).handle

    return {name: endpoint(node) for name, node in nodes.items()}
