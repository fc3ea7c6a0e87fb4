"""Node heartbeat: registers nodes, renews their leases and updates their status.

- A lease is renewed every ten seconds; the status, which is larger, every five minutes.
- The status is written immediately when the node's readiness changes, and when a condition has become Unknown.
- The heartbeats of many nodes are spread over the interval, a tenth of them each second: those of one second are sent
  together, so that the store commits them together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.errors import AlreadyExists, APIError, NotFound
from ostinato.api.object import Object
from ostinato.api.owners import reference_to
from ostinato.api.struct import BuiltinStruct
from ostinato.api.time import MicroTime, Time
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch, StrategicMergePatch
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Dependencies
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import Node
from ostinato.plane.node.node_clients import ClientOf
from ostinato.plane.node.registration.node_status import LEASE_NAMESPACE, Machine, lease_of, node_of, status_of
from ostinato.plane.node.registration.readiness import NodeReadiness
from ostinato.world import Clock

RENEW_INTERVAL: Final = 10.0
STATUS_INTERVAL: Final = 300.0
_GROUPS: Final = 10  # of nodes that renew their leases together
_CONCURRENCY: Final = 32  # concurrent requests
_RETRY: Final = 1.0  # seconds after which a failed registration is repeated


class Heartbeat:
    """A runnable of a manager.

    - `client_of`: sends requests as a node.
    - `readiness`: of all these nodes. Defaults to ready.
    """

    name = "node-heartbeat"
    needs_leader_election = False

    def __init__(
        self, machines: Sequence[Machine], client_of: ClientOf, readiness: NodeReadiness | None = None
    ) -> None:
        self._machines = machines
        self._client_of = client_of
        self._readiness = readiness

    async def run(self, dependencies: Dependencies) -> None:
        limit = asyncio.Semaphore(_CONCURRENCY)

        async def register(machine: Machine) -> None:
            async with limit:
                await self._register_in_the_end(machine, dependencies)

        await asyncio.gather(*(register(machine) for machine in self._machines))
        dependencies.logger.info("nodes registered count=%d", len(self._machines))
        async with asyncio.TaskGroup() as group:
            for number in range(min(_GROUPS, len(self._machines))):
                offset = (number + 1) * RENEW_INTERVAL / _GROUPS
                group.create_task(self._beat(self._machines[number::_GROUPS], dependencies, offset, limit))
            if self._readiness is not None:
                group.create_task(self._report_readiness(self._readiness, dependencies))

    async def _beat(
        self, machines: Sequence[Machine], dependencies: Dependencies, offset: float, limit: asyncio.Semaphore
    ) -> None:
        """Renew the leases of a group of nodes, together."""
        clock = dependencies.world.clock
        status_written = {machine.name: clock.monotonic() for machine in machines}

        async def beat(machine: Machine) -> None:
            async with limit:
                try:
                    client = self._client_of(machine.name)
                    await self._renew(machine, client.live, clock)
                    node = await client.get(_NodeConditions, machine.name, missing=None)
                    is_unknown = node is not None and _is_unknown(node)
                    if is_unknown or clock.monotonic() - status_written[machine.name] >= STATUS_INTERVAL:
                        await self._register(machine, clock)
                        status_written[machine.name] = clock.monotonic()
                except (APIError, TransportError) as error:
                    dependencies.logger.warning("heartbeat failed node=%s error=%s", machine.name, error)

        next_beat = clock.monotonic() + offset
        while True:
            await clock.sleep(next_beat - clock.monotonic())
            await asyncio.gather(*(beat(machine) for machine in machines))
            next_beat = max(next_beat + RENEW_INTERVAL, clock.monotonic())  # a slow server delays the next one

    async def _report_readiness(self, readiness: NodeReadiness, dependencies: Dependencies) -> None:
        while True:
            await readiness.changed()
            for machine in self._machines:
                await self._register_in_the_end(machine, dependencies)

    async def _register_in_the_end(self, machine: Machine, dependencies: Dependencies) -> None:
        """Register a node; again after a failed request, as a node that is not registered runs nothing."""
        clock = dependencies.world.clock
        while True:
            try:
                await self._register(machine, clock)
            except (APIError, TransportError) as error:
                dependencies.logger.warning("node not registered node=%s error=%s", machine.name, error)
                await clock.sleep(_RETRY)
            else:
                return

    async def _register(self, machine: Machine, clock: Clock) -> None:
        """Create the Node if needed; write its status and its lease."""
        client = self._client_of(machine.name).live
        try:
            node = await client.create(node_of(machine))
        except AlreadyExists:
            node = await client.get(Node, machine.name)
            labels = node_of(machine).metadata.labels
            if not labels.items() <= node.metadata.labels.items():
                await client.patch(Node, machine.name, MergePatch({"metadata": {"labels": labels}}))
        not_ready = "" if self._readiness is None else self._readiness.message
        status = status_of(machine, node.status, Time.of(clock.now()), not_ready)
        await client.patch(Node, machine.name, StrategicMergePatch({"status": to_dict(status)}), subresource="status")
        await self._renew(machine, client, clock)

    async def _renew(self, machine: Machine, client: Client, clock: Clock) -> None:
        """Renew the lease; create it, and a deleted Node, if they do not exist."""
        now = MicroTime.of(clock.now())
        try:
            change = {"spec": {"renewTime": str(now)}}
            await client.patch(Lease, machine.name, MergePatch(change), namespace=LEASE_NAMESPACE)
        except NotFound:
            lease = lease_of(machine, now)
            node = await client.get(Node, machine.name, missing=None)
            if node is None:
                await client.create(node_of(machine))
                await self._register(machine, clock)
                return
            lease.metadata.owner_references = [reference_to(node)]
            await client.create(lease)


class _Condition(BuiltinStruct):
    status: str = ""


class _NodeStatus(BuiltinStruct):
    conditions: list[_Condition] = []


class _NodeConditions(Object, version="v1", kind="Node", plural="nodes", namespaced=False):
    """The fields of a Node that each heartbeat checks: a whole Node takes ten times as long to decode."""

    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


def _is_unknown(node: _NodeConditions) -> bool:
    """Return whether the node lifecycle controller has set a condition to Unknown."""
    return any(each.status == "Unknown" for each in node.status.conditions)
