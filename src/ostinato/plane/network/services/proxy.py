"""The proxy: listens wherever Services are to answer, and lets go of where they no longer are.

- An address is had as long as some Service has it. One without endpoints is had, but not listened on: who connects is
  refused at once, by the kernel.
- Of two Services that want the same place, the first has it; the other gets it when it is free.
- What cannot be had is said, once, and tried again now and then. It is no error of the proxy's: the others go on.
- Connections outlive the endpoints that they were made to, and end with the place that they came to.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from typing import Final

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.controllers import Dependencies
from ostinato.plane.network.netlink import Address
from ostinato.plane.network.services.addresses import Network, Taken, Unavailable
from ostinato.plane.network.services.balancer import Balancer
from ostinato.plane.network.services.table import Answer, Frontend, Table
from ostinato.plane.network.services.tcp import Room, TcpListener
from ostinato.plane.network.services.udp import UdpListener
from ostinato.world import World

_logger = logging.getLogger("ostinato.services")

AGAIN: Final = 20.0  # seconds after which what could not be had is tried again


class _Place:
    """A frontend that is had, for a Service."""

    def __init__(self, owner: NamespacedName, balancer: Balancer, listener: TcpListener | UdpListener) -> None:
        self.owner = owner
        self.balancer = balancer
        self.listener = listener


class Proxy:
    """A runnable of a manager; `have` is for its controller."""

    name = "service-proxy"
    needs_leader_election = False

    def __init__(self, world: World, network: Network) -> None:
        self._world = world
        self._network = network
        self._room = Room()
        self._tables: dict[NamespacedName, Table] = {}
        self._places: dict[Frontend, _Place] = {}
        self._addresses: Counter[Address] = Counter()  # that are taken: for how many places
        self._said: set[object] = set()
        self._lock = asyncio.Lock()  # one change at a time
        self._ended = False

    async def have(self, key: NamespacedName, table: Table) -> None:
        """Have a Service answer as its table says; an empty one is that of a Service that is gone."""
        async with self._lock:
            before = self._tables.get(key, {})
            if table:
                self._tables[key] = table
            else:
                self._tables.pop(key, None)
            for frontend in before.keys() - table.keys():
                await self._leave(key, frontend)
            await self._follow(key)

    async def run(self, dependencies: Dependencies) -> None:
        try:
            while True:
                await dependencies.world.clock.sleep(AGAIN)
                async with self._lock:
                    for key in list(self._tables):
                        await self._follow(key)
        finally:
            self._ended = True
            try:
                for place in self._places.values():
                    await place.listener.end()
            finally:
                self._network.close()

    # One Service

    async def _follow(self, key: NamespacedName) -> None:
        """Have all of a Service's places that can be had, as its table says."""
        if self._ended:
            return
        for frontend, answer in self._tables.get(key, {}).items():
            place = self._places.get(frontend) or self._take(key, frontend, answer)
            if place is None:
                continue
            if place.owner != key:
                self._say(("place", key, frontend), f"Service {key}: {frontend} is that of Service {place.owner}")
                continue
            place.balancer.have(self._without_services(answer))
            try:
                await self._listen(frontend, place)
            except OSError as error:
                why = error.strerror or str(error)
                self._say(("place", key, frontend), f"Service {key}: {frontend} cannot be listened on: {why}")

    def _take(self, key: NamespacedName, frontend: Frontend, answer: Answer) -> _Place | None:
        address = frontend.address
        if not address.is_unspecified:
            if not self._addresses[address]:
                try:
                    self._network.take(address)
                except Unavailable as error:
                    self._say("unavailable", f"Services answer on this machine at node ports alone: {error}")
                    return None
                except Taken as error:
                    self._say(address, f"Service {key} does not answer at {address} on this machine: {error}")
                    return None
                self._said.discard(address)
            self._addresses[address] += 1
        balancer = Balancer(self._world, answer)
        clock = self._world.clock
        tcp = frontend.protocol == "TCP"
        listener = TcpListener(clock, balancer, self._room) if tcp else UdpListener(clock, balancer)
        place = self._places[frontend] = _Place(key, balancer, listener)
        return place

    async def _leave(self, key: NamespacedName, frontend: Frontend) -> None:
        self._said.discard(("place", key, frontend))
        place = self._places.get(frontend)
        if place is None or place.owner != key:
            return
        del self._places[frontend]
        await place.listener.end()
        address = frontend.address
        if not address.is_unspecified:
            self._addresses[address] -= 1
            if not self._addresses[address]:
                del self._addresses[address]
                self._network.release(address)

    async def _listen(self, frontend: Frontend, place: _Place) -> None:
        """As long as somebody answers; an OSError if that cannot be."""
        if not place.balancer.answer.backends:
            place.listener.shut()
        elif not place.listener.is_open:
            bound = self._bound(frontend)
            try:
                await place.listener.open(bound)
            except BaseException:
                bound.close()
                raise
            self._said.discard(("place", place.owner, frontend))

    def _bound(self, frontend: Frontend) -> socket.socket:
        tcp = frontend.protocol == "TCP"
        bound = self._network.socket(socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM, frontend.address)
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

    def _without_services(self, answer: Answer) -> Answer:
        """A Service is no backend of Services: two could send a client to each other for ever."""
        taken = {str(address) for address in self._addresses}
        if not any(each.address in taken for each in answer.backends):
            return answer
        return msgspec.structs.replace(
            answer, backends=tuple(each for each in answer.backends if each.address not in taken)
        )

    def _say(self, what: object, message: str) -> None:
        if what not in self._said:
            self._said.add(what)
            _logger.warning("%s", message)
