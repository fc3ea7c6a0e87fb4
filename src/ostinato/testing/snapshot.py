"""Snapshots: the bootstrap objects of an API server, created once and loaded by the server of each test.

Bootstrapping a server takes about 60 ms, loading its objects 8 ms. The objects are bytes and immutable; the servers
share nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from ostinato.api.meta import ObjectMeta
from ostinato.client.client import Client
from ostinato.kinds.core_v1 import ServiceAccount
from ostinato.plane.access import roles
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Ids, Rng, Simulation, World

NAMESPACE = "default"
_FIELD_MANAGER = "kube-controller-manager"


class Snapshot(MemoryLog):
    """A log that contains the objects of another server."""

    def __init__(self, server: Server) -> None:
        self._version = server.index.version
        self._objects = [
            (name, key, entry.version, entry.data)
            for name, collection in server.index.collections.items()
            for key, entry in collection.entries.items()
        ]

    def load(self) -> tuple[int, Iterator[tuple[str, str, int, bytes]]]:
        return self._version, iter(self._objects)


_snapshots: dict[bool, Snapshot] = {}  # by whether time is virtual, as the objects have creation times


async def snapshot(world: World) -> Snapshot:
    """Return the snapshot for worlds of this kind; created on first use."""
    virtual = isinstance(world, Simulation)
    if virtual not in _snapshots:
        # Ids of its own: a simulation with the same seed would give its objects the same uids.
        ids = Ids.simulated(Rng("snapshot")) if virtual else world.ids
        server = Server(World(world.clock, world.rng, ids, world.executor), MemoryLog())
        await server.start()
        client = Client(InProcessTransport(server), world=world, namespace=NAMESPACE, field_manager=_FIELD_MANAGER)
        await roles.ensure(client)
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default")))  # admission requires it for Pods
        _snapshots[virtual] = Snapshot(server)
        await client.close()
        await server.close()
    return _snapshots[virtual]
