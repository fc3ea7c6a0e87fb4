"""Proxy: listens on the frontends of all Services.

- An address is assigned while a Service has it. A frontend without backends is not listened on: the kernel refuses
  connections.
- If two Services have the same frontend, the first keeps it; the other gets it when it is released.
- A frontend that cannot be served is logged once and retried; it does not affect others.
- Connections outlive their endpoint, but not their frontend.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from typing import Final, Protocol

from ostinato.api.gvk import NamespacedName
from ostinato.controllers import Dependencies
from ostinato.controllers.sources.channel import Channel
from ostinato.plane.network.dns.listeners import DnsTcpListener, DnsUdpListener
from ostinato.plane.network.dns.server import DnsServer
from ostinato.plane.network.netlink import Address
from ostinato.plane.network.policy.gate import PolicyGate
from ostinato.plane.network.services.addresses import AddressInUse, AddressUnavailable, ServiceAddresses
from ostinato.plane.network.services.balancer import Balancer, NodeOf, Permits, permit_all
from ostinato.plane.network.services.health_checks import HealthChecks
from ostinato.plane.network.services.table import BackendSet, Frontend, Table
from ostinato.plane.network.services.tcp import ConnectionLimit, TcpListener
from ostinato.plane.network.services.udp import UdpListener
from ostinato.world import World

_logger = logging.getLogger("ostinato.plane.services")

RETRY_INTERVAL: Final = 20.0  # seconds between retries of frontends that failed


class Listener(Protocol):
    """Serves a frontend."""

    @property
    def is_open(self) -> bool: ...

    async def open(self, bound: socket.socket) -> None:
        """Listen with a bound socket; the listener closes it."""

    def stop_listening(self) -> None: ...

    async def end(self) -> None:
        """Stop listening, and end what is under way."""


class _ListeningFrontend:
    """A served frontend."""

    def __init__(self, owner: NamespacedName, balancer: Balancer, listener: Listener) -> None:
        self.owner = owner
        self.balancer = balancer
        self.listener = listener


class Proxy:
    """Runnable of a manager; its controller calls `update`."""

    name = "service-proxy"
    needs_leader_election = False

    def __init__(
        self,
        world: World,
        addresses: ServiceAddresses,
        dns: DnsServer | None = None,
        gate: PolicyGate | None = None,
        node_of: NodeOf = lambda _: "",
    ) -> None:
        """
        - `dns`: serves the frontends that are its. Defaults to None: there are none.
        - `gate`: decides whom a client may be connected to. Defaults to None: everybody.
        - `node_of`: the node of a client, by its address. Defaults to unknown.
        """
        self._gate = gate
        self._node_of = node_of
        self._health_checks = HealthChecks(world.clock)
        self.changes = Channel()  # Services whose addresses or endpoints have changed
        self._world = world
        self._dns = dns
        self._addresses_api = addresses
        self._limit = ConnectionLimit()
        self._tables: dict[NamespacedName, Table] = {}
        self._listening: dict[Frontend, _ListeningFrontend] = {}
        self._address_users: Counter[Address] = Counter()  # assigned addresses and their number of frontends
        self._warned: set[object] = set()
        self._lock = asyncio.Lock()  # serializes changes
        self._stopped = False

    async def update(self, key: NamespacedName, table: Table) -> None:
        """Serve a Service according to its table; an empty table removes it."""
        async with self._lock:
            before = self._tables.get(key, {})
            if table:
                self._tables[key] = table
            else:
                self._tables.pop(key, None)
            for frontend, backend_set in before.items():
                if frontend not in table or table[frontend].is_dns != backend_set.is_dns:
                    await self._release(key, frontend)
            await self._sync(key)
        self.changes.put(key)

    async def check_health(self, key: NamespacedName, port: int, local: int) -> None:
        """Serve the health check of a Service; see `HealthChecks.update`."""
        async with self._lock:
            if not self._stopped:
                await self._health_checks.update(key, port, local)

    def addresses(self) -> frozenset[str]:
        """The addresses that are served, apart from the machine's own."""
        return frozenset(map(str, self._address_users))

    def frontends(self) -> dict[tuple[str, str, int], list[tuple[str, int]]]:
        """Addresses and ports of the endpoints, by protocol, address and port."""
        return {
            (frontend.protocol, str(frontend.address), frontend.port): [
                (each.address, each.port) for each in listening.balancer.backend_set.all
            ]
            for frontend, listening in self._listening.items()
            if not frontend.address.is_unspecified and not listening.balancer.backend_set.is_dns
        }

    async def run(self, dependencies: Dependencies) -> None:
        try:
            while True:
                await dependencies.world.clock.sleep(RETRY_INTERVAL)
                async with self._lock:
                    for key in list(self._tables):
                        await self._sync(key)
        finally:
            self._stopped = True
            try:
                await self._health_checks.close()
                for listening in self._listening.values():
                    await listening.listener.end()
            finally:
                self._addresses_api.close()

    # One Service

    async def _sync(self, key: NamespacedName) -> None:
        """Serve all frontends of a Service that can be served."""
        if self._stopped:
            return
        for frontend, backend_set in self._tables.get(key, {}).items():
            listening = self._listening.get(frontend) or self._claim(key, frontend, backend_set)
            if listening is None:
                continue
            if listening.owner != key:
                self._warn_once(
                    ("frontend", key, frontend),
                    "frontend in use by another Service, retrying service=%s frontend=%s owner=%s",
                    key,
                    frontend,
                    listening.owner,
                )
                continue
            listening.balancer.update(self._without_services(backend_set))
            try:
                await self._listen(frontend, listening)
            except OSError as error:
                self._warn_once(
                    ("frontend", key, frontend),
                    "cannot listen on frontend, retrying service=%s frontend=%s error=%s",
                    key,
                    frontend,
                    error.strerror or str(error),
                )

    def _claim(self, key: NamespacedName, frontend: Frontend, backend_set: BackendSet) -> _ListeningFrontend | None:
        address = frontend.address
        if not address.is_unspecified:
            if not self._address_users[address]:
                try:
                    self._addresses_api.take(address)
                except AddressUnavailable as error:
                    self._warn_once(
                        "unavailable", "Service addresses unavailable, serving node ports only error=%s", error
                    )
                    return None
                except AddressInUse as error:
                    self._warn_once(
                        address,
                        "Service address in use, retrying service=%s address=%s error=%s",
                        key,
                        address,
                        error,
                    )
                    return None
                self._warned.discard(address)
            self._address_users[address] += 1
        balancer = Balancer(self._world, backend_set, self._permits(frontend.protocol), self._node_of)
        listening = self._listening[frontend] = _ListeningFrontend(key, balancer, self._listener(frontend, balancer))
        return listening

    def _permits(self, protocol: str) -> Permits:
        gate = self._gate
        if gate is None:
            return permit_all
        return lambda client, backend: gate.permits(client, backend.address, protocol, backend.port)

    def _listener(self, frontend: Frontend, balancer: Balancer) -> Listener:
        clock = self._world.clock
        tcp = frontend.protocol == "TCP"
        if balancer.backend_set.is_dns and self._dns is not None:
            return DnsTcpListener(self._dns, clock) if tcp else DnsUdpListener(self._dns)
        return TcpListener(clock, balancer, self._limit) if tcp else UdpListener(clock, balancer)

    async def _release(self, key: NamespacedName, frontend: Frontend) -> None:
        self._warned.discard(("frontend", key, frontend))
        listening = self._listening.get(frontend)
        if listening is None or listening.owner != key:
            return
        del self._listening[frontend]
        await listening.listener.end()
        address = frontend.address
        if not address.is_unspecified:
            self._address_users[address] -= 1
            if not self._address_users[address]:
                del self._address_users[address]
                self._addresses_api.release(address)

    async def _listen(self, frontend: Frontend, listening: _ListeningFrontend) -> None:
        """Listen while there is somebody to answer. Raises OSError if the socket cannot be bound."""
        if not listening.balancer.backend_set.is_served:
            listening.listener.stop_listening()
        elif not listening.listener.is_open:
            bound = self._bound(frontend)
            try:
                await listening.listener.open(bound)
            except BaseException:
                bound.close()
                raise
            self._warned.discard(("frontend", listening.owner, frontend))

    def _bound(self, frontend: Frontend) -> socket.socket:
        tcp = frontend.protocol == "TCP"
        bound = self._addresses_api.socket(socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM, frontend.address)
        try:
            if tcp:
                bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if frontend.address.version == 6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.settimeout(0)
            bound.bind((str(frontend.address), frontend.port))
        except BaseException:
            bound.close()
            raise
        return bound

    def _without_services(self, backend_set: BackendSet) -> BackendSet:
        """Remove Service addresses from the backends: two Services could forward to each other endlessly."""
        taken = {str(address) for address in self._address_users}
        return backend_set.without(taken) if any(each.address in taken for each in backend_set.all) else backend_set

    def _warn_once(self, subject: object, message: str, *details: object) -> None:
        if subject not in self._warned:
            self._warned.add(subject)
            _logger.warning(message, *details)
