"""Endpoints of the Service `kubernetes` on a shared store: the addresses of the servers that are alive.

- Each server renews a lease of its address (`/registry/masterleases`, as kube-apiserver), which expires with it.
- Each server writes the addresses that have a lease into Endpoints and EndpointSlice.
- Servers with the same address and port, such as the workers of one command, share a lease. Of servers with the same
  address and different ports, the first is in the endpoints until its lease expires.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.server.controllers.bootstrap import ensure
from ostinato.server.controllers.server_objects import endpoints
from ostinato.server.resources.registry import Registry
from ostinato.server.store.collection import Collection
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry, StoreFailed
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.server.resources.resource import Resource

INTERVAL = 10.0  # seconds between two renewals
RELEASE_SECONDS = 3.0  # for the store to remove the address at the end; otherwise its lease expires
LEASE_SECONDS = 15.0  # after the last renewal, until the address is removed
_logger = logging.getLogger(__name__)


class ServerEndpoints:
    def __init__(self, world: World, index: Index, registry: Registry) -> None:
        self._world = world
        self._index = index
        self._registry = registry
        self._address, self._port = "", 0
        self._releases = True
        self._renewals = 0
        self._reported = False
        self._task: asyncio.Task[None] | None = None

    @property
    def _leases(self) -> Collection:
        return self._index.collection("masterleases", lambda _: ({}, {}, ""))

    async def start(self, address: str, port: int, *, releases: bool = True) -> None:
        """Add this server, and keep the endpoints up to date from then on.

        `releases`: `close` removes it at once. Otherwise it is removed when its lease expires.
        """
        self._address, self._port, self._releases = address, port, releases
        await self.reconcile()
        self._task = asyncio.get_running_loop().create_task(self._run(), name="server endpoints")

    async def close(self) -> None:
        if self._task is None:
            return
        self._task.cancel()
        self._task = None
        current = self._leases.newest(self._address)
        if self._releases and current is not None and _server(current) == (self._address, self._port):
            with suppress(Conflict, StoreFailed, TimeoutError):
                async with self._world.clock.timeout(RELEASE_SECONDS):
                    await self._index.delete(self._leases, self._address, current)
                    await self._write()

    async def reconcile(self) -> None:
        await self._renew()
        await self._write()

    async def _renew(self) -> None:
        current = self._leases.newest(self._address)
        if current is not None and _server(current) != (self._address, self._port):
            if not self._reported:
                self._reported = True
                _logger.warning(
                    "another server has the same address, not in the endpoints address=%s port=%d other_port=%d",
                    self._address,
                    self._port,
                    _server(current)[1],
                )
            return
        self._renewals += 1
        port = {"name": "https", "port": self._port, "protocol": "TCP"}
        obj: dict[str, Any] = {
            "metadata": {"resourceVersion": "", "generation": self._renewals},
            "subsets": [{"addresses": [{"ip": self._address}], "ports": [port]}],
        }

        def encode(version: int) -> bytes:
            obj["metadata"]["resourceVersion"] = str(version)
            return msgspec.json.encode(obj)

        entry = Entry(self._address, 0, b"", {}, {}, "")
        with suppress(Conflict):  # renewed by another process of this server, or it has just expired
            await self._index.put(self._leases, entry, current, encode, ttl=LEASE_SECONDS)

    async def _write(self) -> None:
        servers = [_server(entry) for entry in self._leases.select()]
        for obj in endpoints(servers) if servers else ():
            await ensure(self._world, self._index, self._resource(obj["kind"]), obj)

    def _resource(self, kind: str) -> Resource:
        place = ("discovery.k8s.io", "v1", "endpointslices") if kind == "EndpointSlice" else ("", "v1", "endpoints")
        found = self._registry.get(*place)
        assert found is not None
        return found

    async def _run(self) -> None:
        while True:
            await self._world.clock.sleep(INTERVAL)
            try:
                await self.reconcile()
            except StoreFailed as error:
                _logger.warning("endpoints of the server not renewed, retrying error=%s", error)
            except Exception:
                _logger.exception("endpoints of the server not renewed, retrying")


def _server(lease: Entry) -> tuple[str, int]:
    """Address and port of a server. kube-apiserver's leases have no port: then the default one."""
    subsets = msgspec.json.decode(lease.data).get("subsets") or [{}]
    ports = subsets[0].get("ports") or [{"port": 6443}]
    return lease.key, ports[0]["port"]
