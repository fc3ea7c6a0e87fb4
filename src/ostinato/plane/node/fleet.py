"""A fleet: the nodes of this process, with one agent for all of them."""

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
from ostinato.plane.node.admission import NodeInfo
from ostinato.plane.node.agent import NodeAgent
from ostinato.plane.node.local_node import LocalNode
from ostinato.plane.node.node_clients import ClientOf, node_clients
from ostinato.plane.node.node_config import NodeConfig
from ostinato.plane.node.orphaned_pods import OrphanCleanup, PodInventory
from ostinato.plane.node.private_files import make_directory
from ostinato.plane.node.registration.heartbeat import Heartbeat
from ostinato.plane.node.registration.machine_info import address, machine_info
from ostinato.plane.node.registration.node_status import Machine, node_of
from ostinato.plane.node.runtimes import ProcessOptions, Runtime, UnusableRuntime
from ostinato.plane.node.runtimes.simulated import SimulatedRuntime
from ostinato.plane.node.server.endpoint import NodeEndpoint
from ostinato.plane.node.server.pod_streams import PodStreams
from ostinato.plane.node.server.stats import NodeStats
from ostinato.plane.node.static_pods import StaticPodSource, resolve_mirror
from ostinato.plane.objects.indexes import NODE_NAME, ensure_index
from ostinato.plane.objects.pod_state import PodState
from ostinato.server.node_agents.endpoint import Endpoint
from ostinato.world import World

if TYPE_CHECKING:  # what it needs is an extra
    from ostinato.plane.node.runtimes.containerd import Containerd
    from ostinato.plane.node.runtimes.process.networks import PodNetworks

RUNTIMES: Final = ("containerd", "process", "simulated")
DEFAULT_OPTIONS: Final = ProcessOptions()
_SIMULATED_CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}


class AgentAddress(msgspec.Struct, frozen=True):
    """Where the agent of a node is reached; `api_server`: URL of the API server, for Pods on the machine's network."""

    host: str
    port: int = 10250
    api_server: str = ""


class LocalRuntime(Runtime, PodInventory, Protocol):
    """A runtime whose containers are on this machine."""


@runtime_checkable
class HasPodNetworks(Protocol):
    """A runtime that creates the networks of its Pods itself."""

    networks: PodNetworks


MakeRuntime = Callable[[Path, str], LocalRuntime]
"""Makes the runtime of a node with a directory of its own, on a machine with this address."""


async def find_containerd(world: World, socket: Path) -> Containerd:
    """The containerd behind a socket; `UnusableRuntime` if it cannot be used."""
    try:
        from ostinato.plane.node.runtimes import containerd  # noqa: PLC0415
    except ImportError as error:
        message = f"the runtime containerd needs {error.name}: pip install 'ostinato[containerd]'"
        raise UnusableRuntime(message) from None
    return await containerd.connect(world, socket)


def add_to(
    manager: Manager,
    count: int,
    runtime: str,
    state: Path | None = None,
    containerd: Containerd | None = None,
    processes: ProcessOptions = DEFAULT_OPTIONS,
    api_server: str = "",
) -> dict[str, Endpoint]:
    """Have so many nodes in a manager's process, with one of the `RUNTIMES`.

    `state`: the directory in which nodes with real containers keep what is theirs; `containerd`, `processes`: for the
    runtimes of these names; `api_server`: its URL, for Pods. What is returned answers for each of them, by name: logs,
    commands, ports, measurements.
    """
    names = [f"node-{number}" for number in range(1, count + 1)]
    if runtime == "simulated":
        return add_nodes(manager, *_simulated_nodes(manager.world, names), logs=None)
    if state is None:
        raise ValueError(f"the runtime {runtime!r} needs a directory for what its nodes keep")
    make = (
        _process_runtime(manager.world, processes)
        if containerd is None
        else _containerd_runtime(manager.world, containerd)
    )
    return _add_local_nodes(manager, names, make, state, AgentAddress(address(), api_server=api_server))


def join(
    manager: Manager,
    name: str,
    state: Path,
    at: AgentAddress,
    containerd: Containerd | None = None,
    processes: ProcessOptions = DEFAULT_OPTIONS,
) -> Endpoint:
    """Have this machine as a node, whose agent listens as is said; without containerd its containers are processes."""
    make = (
        _process_runtime(manager.world, processes)
        if containerd is None
        else _containerd_runtime(manager.world, containerd)
    )
    return _add_local_nodes(manager, [name], make, state, at, lambda _: manager.client)[name]


def _add_local_nodes(
    manager: Manager,
    names: Sequence[str],
    make: MakeRuntime,
    state: Path,
    at: AgentAddress,
    client_of: ClientOf | None = None,
) -> dict[str, Endpoint]:
    state = state.resolve()  # containers run in directories of their own, from where a relative path leads elsewhere
    for each in (state, state / "logs"):
        make_directory(each)
    machines, nodes = [], {}
    client_of = client_of or node_clients(manager)
    cleanup = OrphanCleanup(state / "logs", client_of)
    for name in names:
        machine, node = _local_node(name, make, state, cleanup, at)
        machines.append(machine)
        nodes[name] = node
    manager.add(cleanup)
    return add_nodes(manager, machines, nodes, state / "logs", client_of)


def _simulated_nodes(world: World, names: Sequence[str]) -> tuple[list[Machine], dict[str, LocalNode]]:
    shared = SimulatedRuntime(world)
    machines = [
        Machine(
            name=name,
            address=f"172.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}",
            runtime=shared.version,
            capacity=_SIMULATED_CAPACITY,
            id=world.ids.uid(),
        )
        for number, name in enumerate(names, 1)
    ]
    return machines, {each.name: LocalNode(each.name, each.address, shared) for each in machines}


def _process_runtime(world: World, options: ProcessOptions) -> MakeRuntime:
    from ostinato.plane.node.runtimes.process import ProcessRuntime  # noqa: PLC0415 - no other runtime needs it

    def make(directory: Path, address: str) -> ProcessRuntime:
        network = options.network.of_node(directory.name)
        return ProcessRuntime(world, directory, address, msgspec.structs.replace(options, network=network))

    return make


def _containerd_runtime(world: World, containerd: Containerd) -> MakeRuntime:
    from ostinato.plane.node.runtimes.containerd import ContainerdRuntime  # noqa: PLC0415

    return lambda directory, _: ContainerdRuntime(world, containerd, directory)


def _local_node(
    name: str, make: MakeRuntime, state: Path, cleanup: OrphanCleanup, at: AgentAddress
) -> tuple[Machine, LocalNode]:
    directory = make_directory(state / name)
    runtime = make(directory, at.host)
    machine = msgspec.structs.replace(
        machine_info(name, runtime.version, directory),
        address=at.host,
        port=at.port,
        network=runtime.networks.condition if isinstance(runtime, HasPodNetworks) else None,
    )
    allocatable = {each: Quantity(amount) for each, amount in machine.capacity.items()}
    cleanup.add(name, directory, runtime)
    config = NodeConfig(directory, state / "logs", machine.address, allocatable, at.api_server)
    info = NodeInfo(name, node_of(machine).metadata.labels, allocatable)
    return machine, LocalNode(name, machine.address, runtime, config, info)


def add_nodes(
    manager: Manager,
    machines: Sequence[Machine],
    nodes: Mapping[str, LocalNode],
    logs: Path | None,
    client_of: ClientOf | None = None,
) -> dict[str, Endpoint]:
    """Have these nodes. What all of them watch is read once, by the manager; what is written, and what is read for a
    single Pod, each asks for in its own name, unless `client_of` says otherwise.
    """
    client_of = client_of or node_clients(manager)
    informer = manager.informers.of(PodState)
    ensure_index(informer, NODE_NAME)

    def bound_to(key: NamespacedName) -> str:
        return next(iter(informer.store.values_of(NODE_NAME.name, key)), "")

    agent = NodeAgent(nodes, bound_to, client_of)
    manager.add(Heartbeat(machines, client_of))
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
    streams = PodStreams(manager.world, find, runtimes, logs)
    stats = NodeStats(manager.world.clock, runtimes, pods_of)
    return {name: NodeEndpoint(name, streams, stats).handle for name in nodes}
