"""Addresses of simulated Pods: of a range for all nodes, or of the Pod CIDRs of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Final

from ostinato.kinds.core_v1 import Node, Pod
from ostinato.manager import Manager
from ostinato.plane.network.pod_cidrs import Address, Network, NoFreeCidr, PodAddresses
from ostinato.plane.node.runtimes import SandboxError

CidrsOf = Callable[[str], Sequence[Network]]
"""The Pod CIDRs of a node, by its name."""


def pod_cidrs(manager: Manager) -> CidrsOf:
    """The Pod CIDRs that Nodes have in their spec."""
    nodes = manager.informers.of(Node).lister(Node)

    def of(name: str) -> Sequence[Network]:
        found = nodes.find(name)
        return [] if found is None else [ip_network(each) for each in found.spec.pod_cidrs]

    return of


class SimulatedAddresses:
    """Allocates unique addresses of 10.128.0.0/9 to Pods."""

    _FIRST: Final = (10 << 24) + (128 << 16) + 1
    _COUNT: Final = (1 << 23) - 2

    def __init__(self) -> None:
        self._next = 0
        self._taken: dict[str, str] = {}  # by uid
        self._used: set[str] = set()

    def of(self, pod: Pod) -> Sequence[str]:
        uid = pod.metadata.uid
        while uid not in self._taken:
            number = self._FIRST + self._next % self._COUNT
            self._next += 1
            address = ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))
            if address not in self._used:
                self._take(uid, address)
        return (self._taken[uid],)

    def keep(self, pod: Pod) -> None:
        """Keep the address that the Pod's status shows."""
        if pod.metadata.uid not in self._taken and pod.status.pod_ip:
            self._take(pod.metadata.uid, pod.status.pod_ip)

    def free(self, pod: Pod) -> None:
        self._used.discard(self._taken.pop(pod.metadata.uid, ""))

    def _take(self, uid: str, address: str) -> None:
        self._taken[uid] = address
        self._used.add(address)


class CidrAddresses:
    """Allocates addresses of the Pod CIDRs of a Pod's node, one of each. Those of a Pod never change."""

    def __init__(self, cidrs_of: CidrsOf) -> None:
        self._cidrs_of = cidrs_of
        self._pools: dict[Network, PodAddresses] = {}
        self._taken: dict[str, list[tuple[PodAddresses | None, Address]]] = {}  # by uid

    def of(self, pod: Pod) -> Sequence[str]:
        """`SandboxError` if the node has no Pod CIDRs yet, or all addresses are taken."""
        uid = pod.metadata.uid
        if uid not in self._taken:
            cidrs = self._cidrs_of(pod.spec.node_name or "")
            if not cidrs:
                raise SandboxError("the node has no Pod CIDRs yet")
            taken: list[tuple[PodAddresses | None, Address]] = []
            try:
                for each in cidrs:
                    pool = self._pool(each)
                    taken.append((pool, pool.take()))
            except NoFreeCidr as error:
                _release(taken)
                raise SandboxError(str(error)) from None
            self._taken[uid] = taken
        return [str(address) for _, address in self._taken[uid]]

    def keep(self, pod: Pod) -> None:
        """Keep the addresses that the Pod's status shows."""
        if pod.metadata.uid in self._taken or not pod.status.pod_ips:
            return
        pools = [(each, self._pool(each)) for each in self._cidrs_of(pod.spec.node_name or "")]
        kept: list[tuple[PodAddresses | None, Address]] = []
        for found in pod.status.pod_ips:
            with suppress(ValueError):
                address = ip_address(found.ip or "")
                pool = next((pool for cidr, pool in pools if address in cidr), None)
                if pool is not None:
                    pool.take(address)
                kept.append((pool, address))
        self._taken[pod.metadata.uid] = kept

    def free(self, pod: Pod) -> None:
        _release(self._taken.pop(pod.metadata.uid, []))

    def _pool(self, cidr: Network) -> PodAddresses:
        if cidr not in self._pools:
            self._pools[cidr] = PodAddresses(cidr)
        return self._pools[cidr]


def _release(taken: list[tuple[PodAddresses | None, Address]]) -> None:
    for pool, address in taken:
        if pool is not None:
            pool.release(address)
