"""A node of this process, and the components that its pod workers share."""

from __future__ import annotations

import msgspec

from ostinato.client.client import Client
from ostinato.plane.node.admission import NodeInfo
from ostinato.plane.node.containers.hooks import LifecycleHooks
from ostinato.plane.node.environment.container_environment import ContainerEnvironment
from ostinato.plane.node.environment.object_reader import ObjectReader
from ostinato.plane.node.node_config import NodeConfig
from ostinato.plane.node.pod_sandbox import AdmitPod
from ostinato.plane.node.probes.probe_results import ProbeResults
from ostinato.plane.node.probes.prober import Prober
from ostinato.plane.node.runtimes import Runtime
from ostinato.plane.node.volumes.csi.volumes import CsiVolumes
from ostinato.plane.node.volumes.volume_manager import VolumeManager
from ostinato.world import Clock, World


class LocalNode(msgspec.Struct, frozen=True, eq=False):
    """`config`, `info` and `csi`: None on a node with simulated containers."""

    name: str
    addresses: tuple[str, ...]
    runtime: Runtime
    config: NodeConfig | None = None
    info: NodeInfo | None = None
    csi: CsiVolumes | None = None
    admit: AdmitPod | None = None
    probe_results: ProbeResults = msgspec.field(default_factory=ProbeResults)

    @property
    def address(self) -> str:
        return self.addresses[0]


class NodeComponents(msgspec.Struct, frozen=True, eq=False):
    """The components of a node. `volumes` and `environment`: None where containers are simulated."""

    host_ips: tuple[str, ...]
    runtime: Runtime
    clock: Clock
    prober: Prober
    hooks: LifecycleHooks
    volumes: VolumeManager | None = None
    environment: ContainerEnvironment | None = None
    admit: AdmitPod | None = None


def components_of(node: LocalNode, client: Client, world: World) -> NodeComponents:
    """Create the components of a node. `client`: reads the objects that its Pods refer to."""
    prober = Prober(node.runtime, world.clock, node.probe_results)
    hooks = LifecycleHooks(prober, world.clock)
    if node.config is None or node.csi is None:
        return NodeComponents(node.addresses, node.runtime, world.clock, prober, hooks)
    objects = ObjectReader(client, world)
    return NodeComponents(
        node.addresses,
        node.runtime,
        world.clock,
        prober,
        hooks,
        VolumeManager(node.config, objects, node.csi, world),
        ContainerEnvironment(node.config, objects, world),
        node.admit,
    )
