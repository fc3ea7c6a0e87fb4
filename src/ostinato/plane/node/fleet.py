"""A fleet: the nodes of this process, with one agent for all of them."""

from __future__ import annotations

from typing import Final

from ostinato.api.gvk import NamespacedName
from ostinato.controller import ChannelSource, ForEvent
from ostinato.kinds.core_v1 import Pod
from ostinato.manager import Manager
from ostinato.plane.indexes import NODE_NAME, keep
from ostinato.plane.node.agent import Host, PodAgent
from ostinato.plane.node.heartbeat import Heartbeat
from ostinato.plane.node.machine import Machine
from ostinato.plane.node.runtimes import Runtime
from ostinato.plane.node.runtimes.simulated import SimulatedRuntime
from ostinato.plane.node.stream import PodStreams
from ostinato.plane.pods import PodState
from ostinato.server.nodes import Endpoint

RUNTIMES: Final = ("simulated",)
_SIMULATED_CAPACITY: Final = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}


def add_to(manager: Manager, count: int, runtime: str) -> dict[str, Endpoint]:
    """Have so many nodes in a manager's process; a ValueError for a runtime that there is not.

    What is returned answers for each of them, by name: logs, commands, ports.
    """
    if runtime not in RUNTIMES:
        raise ValueError(f"there is no runtime {runtime!r}; there are {', '.join(RUNTIMES)}")
    shared: Runtime = SimulatedRuntime(manager.world)
    machines = [
        Machine(
            name=f"node-{number}",
            address=f"172.{16 + (number >> 16)}.{number >> 8 & 255}.{number & 255}",
            runtime=shared.version,
            capacity=_SIMULATED_CAPACITY,
            id=manager.world.ids.uid(),
        )
        for number in range(1, count + 1)
    ]
    hosts = {each.name: Host(each.name, each.address, shared) for each in machines}
    informer = manager.informers.of(PodState)
    keep(informer, NODE_NAME)

    def node_of(key: NamespacedName) -> str:
        return next(iter(informer.store.values_of(NODE_NAME.name, key)), "")

    agent = PodAgent(hosts, node_of)
    manager.add(Heartbeat(machines))
    (
        manager.build("kubelet")
        .watches(Pod, handler=ForEvent(agent.keys))
        .watches_source(ChannelSource(agent.news))
        .with_options(max_concurrent=32, needs_leader_election=False)
        .complete(agent)
    )

    async def find(key: NamespacedName) -> Pod | None:
        return await manager.client.get(Pod, key, missing=None)

    streams = PodStreams(manager.world, find, {each.name: each.runtime for each in hosts.values()}, logs=None)
    return dict.fromkeys(hosts, streams.handle)
