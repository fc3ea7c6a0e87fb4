"""Host ports: ports of this machine that lead to a Pod with a network of its own (`hostPort` of its containers).

A listener of this process relays each connection, and each UDP flow, to the Pod's address. Connections end with the
process; the next agent listens again.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence

from ostinato.kinds.core_v1 import ContainerPort, Pod
from ostinato.plane.network.policy.gate import PolicyGate
from ostinato.plane.network.services.balancer import Balancer, Permits, permit_all
from ostinato.plane.network.services.table import Backend, BackendSet
from ostinato.plane.network.services.tcp import ConnectionLimit, TcpListener
from ostinato.plane.network.services.udp import UdpListener
from ostinato.world import World


class HostPorts:
    def __init__(self, world: World, gate: PolicyGate | None = None) -> None:
        """`gate`: the network policies. Defaults to None: there are none."""
        self._world = world
        self._gate = gate
        self._limit = ConnectionLimit()
        self._listeners: dict[str, list[TcpListener | UdpListener]] = {}  # by uid of the Pod

    def is_open(self, pod: Pod) -> bool:
        return pod.metadata.uid in self._listeners

    async def open(self, pod: Pod, addresses: Sequence[str]) -> None:
        """Listen on a Pod's host ports. OSError names the port that cannot be bound; none is open then."""
        if self.is_open(pod):
            return
        opened = self._listeners[pod.metadata.uid] = []
        try:
            for port, host, address in _listened(pod, addresses):
                bound = _bound(port, host)
                try:
                    listener = self._listener(port, address)
                    await listener.open(bound)
                except BaseException:
                    bound.close()
                    raise
                opened.append(listener)
        except BaseException:
            await self.close(pod.metadata.uid)
            raise

    async def close(self, uid: str) -> None:
        for each in self._listeners.pop(uid, ()):
            await each.end()

    def _listener(self, port: ContainerPort, address: str) -> TcpListener | UdpListener:
        backends = BackendSet((Backend(address, port.container_port),))
        balancer = Balancer(self._world, backends, self._permits(port.protocol or "TCP"))
        if port.protocol == "UDP":
            return UdpListener(self._world.clock, balancer)
        return TcpListener(self._world.clock, balancer, self._limit)

    def _permits(self, protocol: str) -> Permits:
        gate = self._gate
        if gate is None:
            return permit_all
        return lambda client, backend: gate.permits(client, backend.address, protocol, backend.port)


def ports_of(pod: Pod) -> Iterator[ContainerPort]:
    """The ports of a Pod's containers and sidecars that have a host port."""
    sidecars = [each for each in pod.spec.init_containers if each.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        yield from (each for each in container.ports if each.host_port)


def _listened(pod: Pod, addresses: Sequence[str]) -> Iterator[tuple[ContainerPort, str, str]]:
    """Where a Pod's host ports listen, and the address that they lead to: that of the same IP family."""
    own = {":" in each: each for each in reversed(addresses)}
    for port in ports_of(pod):
        if port.host_ip:
            yield port, port.host_ip, own.get(":" in port.host_ip, addresses[0])
            continue
        for is_ipv6, address in sorted(own.items()):
            yield port, "::" if is_ipv6 else "0.0.0.0", address  # noqa: S104 - that is what a host port is


def _bound(port: ContainerPort, host: str) -> socket.socket:
    number = port.host_port or 0
    if port.protocol == "SCTP":
        raise OSError(0, "SCTP is not relayed", f"hostPort {number}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_DGRAM if port.protocol == "UDP" else socket.SOCK_STREAM)
    try:
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if port.protocol != "UDP":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.settimeout(0)
        bound.bind((host, number))
    except OSError as error:
        bound.close()
        raise OSError(error.errno, (error.strerror or str(error)).lower(), f"hostPort {number}") from None
    return bound
