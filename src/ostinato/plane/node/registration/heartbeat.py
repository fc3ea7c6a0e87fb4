"""The heartbeat of nodes: registers them, renews their leases, and repeats their status now and then.

A lease is renewed every ten seconds, the status written every five minutes: that a node lives is told by the lease,
which is small. One that was given up tells its status at once. Thousands of nodes take turns, so that their heartbeats
are spread evenly over the time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from ostinato.api.codec import to_dict
from ostinato.api.errors import AlreadyExists, APIError, NotFound
from ostinato.api.owners import reference_to
from ostinato.api.time import MicroTime, Time
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch, StrategicMergePatch
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Dependencies
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import Node
from ostinato.plane.node.node_clients import ClientOf
from ostinato.plane.node.registration.node_status import LEASE_NAMESPACE, Machine, lease_of, node_of, status_of
from ostinato.world import Clock

RENEW_INTERVAL: Final = 10.0
STATUS_INTERVAL: Final = 300.0
_CONCURRENCY: Final = 32  # registrations, or renewals where the server is slow


class Heartbeat:
    """A runnable of a manager."""

    name = "node-heartbeat"
    needs_leader_election = False

    def __init__(self, machines: Sequence[Machine], client_of: ClientOf) -> None:
        """`client_of`: with which a node asks, in its own name."""
        self._machines = machines
        self._client_of = client_of

    async def run(self, dependencies: Dependencies) -> None:
        clock = dependencies.world.clock
        limit = asyncio.Semaphore(_CONCURRENCY)

        async def join(machine: Machine) -> None:
            async with limit:
                await _register(machine, self._client_of(machine.name).live, clock)

        await asyncio.gather(*(join(machine) for machine in self._machines))
        dependencies.logger.info("%d nodes have joined", len(self._machines))
        pause = RENEW_INTERVAL / max(len(self._machines), 1)
        async with asyncio.TaskGroup() as group:
            for lane in range(min(_CONCURRENCY, len(self._machines))):
                group.create_task(self._beat(self._machines[lane::_CONCURRENCY], dependencies, lane * pause))

    async def _beat(self, machines: Sequence[Machine], dependencies: Dependencies, offset: float) -> None:
        """Renew the leases of some nodes, one after the other, for ever."""
        clock = dependencies.world.clock
        told = {machine.name: clock.monotonic() for machine in machines}
        pause = RENEW_INTERVAL / len(machines)
        began, turns = clock.monotonic() + offset, 0
        while True:
            for machine in machines:
                turns += 1
                await clock.sleep(began + turns * pause - clock.monotonic())
                try:
                    client = self._client_of(machine.name)
                    await _renew(machine, client.live, clock)
                    node = await client.get(Node, machine.name, missing=None)
                    is_unknown = node is not None and _is_unknown(node)
                    if is_unknown or clock.monotonic() - told[machine.name] >= STATUS_INTERVAL:
                        await _register(machine, client.live, clock)
                        told[machine.name] = clock.monotonic()
                except (APIError, TransportError) as error:
                    dependencies.logger.warning("node %s: its heartbeat failed: %s", machine.name, error)


def _is_unknown(node: Node) -> bool:
    """Whether somebody has said that nothing is known of the node."""
    return any(each.status == "Unknown" for each in node.status.conditions)


async def _register(machine: Machine, client: Client, clock: Clock) -> None:
    """Have the Node there, with its status and its lease."""
    try:
        node = await client.create(node_of(machine))
    except AlreadyExists:
        node = await client.get(Node, machine.name)
        labels = node_of(machine).metadata.labels
        if not labels.items() <= node.metadata.labels.items():
            await client.patch(Node, machine.name, MergePatch({"metadata": {"labels": labels}}))
    status = status_of(machine, node.status, Time.of(clock.now()))
    await client.patch(Node, machine.name, StrategicMergePatch({"status": to_dict(status)}), subresource="status")
    await _renew(machine, client, clock)


async def _renew(machine: Machine, client: Client, clock: Clock) -> None:
    now = MicroTime.of(clock.now())
    try:
        change = {"spec": {"renewTime": str(now)}}
        await client.patch(Lease, machine.name, MergePatch(change), namespace=LEASE_NAMESPACE)
    except NotFound:
        lease = lease_of(machine, now)
        node = await client.get(Node, machine.name, missing=None)
        if node is None:
            await _register_again(machine, client, clock)
            return
        lease.metadata.owner_references = [reference_to(node)]
        await client.create(lease)


async def _register_again(machine: Machine, client: Client, clock: Clock) -> None:
    """Somebody deleted the Node: a node that lives comes back."""
    await client.create(node_of(machine))
    await _register(machine, client, clock)
