"""Policy table: what each isolated Pod permits, by its address.

- A policy isolates the Pods that it selects, for the directions of its `policyTypes`. What an isolated Pod permits is
  the union of all policies that select it; a connection has to be permitted by both of its ends.
- Names of ports are those of the Pod that receives: several Pods may have different numbers for one.
- Replies, and traffic between a Pod and its node, are not the table's concern: they are always permitted.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from ostinato.api.meta import LabelSelector
from ostinato.api.selectors.labels import Selector, everything, from_label_selector
from ostinato.kinds.networking_v1 import NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort
from ostinato.plane.network.netlink import Network
from ostinato.plane.network.policy.peers import PolicyPod

PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_PORTS: Final = (0, 65_535)


class Block(msgspec.Struct, frozen=True):
    """An ipBlock."""

    network: Network
    excepted: tuple[Network, ...] = ()

    def has(self, address: str) -> bool:
        found = ipaddress.ip_address(address)
        return found in self.network and not any(found in each for each in self.excepted)


class Ports(msgspec.Struct, frozen=True, order=True):
    """A range of ports of a protocol."""

    protocol: str
    first: int = _PORTS[0]
    last: int = _PORTS[1]

    @property
    def is_all(self) -> bool:
        return (self.first, self.last) == _PORTS


class Permission(msgspec.Struct, frozen=True):
    """Peers and ports of one rule.

    - `addresses`: of Pods. None: everybody.
    - `ports`: None: all of all protocols.
    """

    addresses: frozenset[str] | None = None
    blocks: tuple[Block, ...] = ()
    ports: tuple[Ports, ...] | None = None

    def permits(self, peer: str, protocol: str, port: int) -> bool:
        if self.ports is not None and not any(
            each.protocol == protocol and each.first <= port <= each.last for each in self.ports
        ):
            return False
        return self.addresses is None or peer in self.addresses or any(each.has(peer) for each in self.blocks)


Permissions = tuple[Permission, ...]


class PolicyTable(msgspec.Struct, frozen=True):
    """By address of isolated Pods; those of other Pods are in neither."""

    ingress: Mapping[str, Permissions] = {}
    egress: Mapping[str, Permissions] = {}

    def permits(self, source: str, destination: str, protocol: str, port: int) -> bool:
        """Whether a connection may be made."""
        out, into = self.egress.get(source), self.ingress.get(destination)
        if source == destination or (out is None and into is None):
            return True
        return (out is None or any(each.permits(destination, protocol, port) for each in out)) and (
            into is None or any(each.permits(source, protocol, port) for each in into)
        )


def policy_table(
    policies: Iterable[NetworkPolicy], pods: Sequence[PolicyPod], namespaces: Mapping[str, Mapping[str, str]]
) -> PolicyTable:
    """`namespaces`: their labels, by name."""
    compiler = _Compiler(pods, namespaces)
    ingress: defaultdict[str, dict[Permission, None]] = defaultdict(dict)
    egress: defaultdict[str, dict[Permission, None]] = defaultdict(dict)
    for policy in policies:
        spec = policy.spec
        types = spec.policy_types or (["Ingress", "Egress"] if spec.egress else ["Ingress"])
        namespace = policy.metadata.namespace
        for pod in compiler.selected(_selector(spec.pod_selector) or everything(), [namespace]):
            for address in pod.addresses:
                if "Ingress" in types:
                    for rule in spec.ingress:
                        ingress[address].update(compiler.incoming(pod, namespace, rule.from_, rule.ports))
                    ingress[address]
                if "Egress" in types:
                    for out in spec.egress:
                        egress[address].update(compiler.outgoing(namespace, out.to, out.ports))
                    egress[address]
    return PolicyTable(
        {address: tuple(found) for address, found in ingress.items()},
        {address: tuple(found) for address, found in egress.items()},
    )


class _Compiler:
    def __init__(self, pods: Sequence[PolicyPod], namespaces: Mapping[str, Mapping[str, str]]) -> None:
        self._namespaces = namespaces
        self._pods: defaultdict[str, list[PolicyPod]] = defaultdict(list)  # by namespace
        for pod in pods:
            self._pods[pod.namespace].append(pod)

    def selected(self, selector: Selector, namespaces: Iterable[str]) -> list[PolicyPod]:
        return [pod for name in namespaces for pod in self._pods.get(name, ()) if selector.matches(pod.labels)]

    def incoming(
        self, pod: PolicyPod, namespace: str, peers: Sequence[NetworkPolicyPeer], ports: Sequence[NetworkPolicyPort]
    ) -> dict[Permission, None]:
        """The permissions of an ingress rule; names of ports are the Pod's own."""
        resolved = _resolved(ports, pod)
        if ports and not resolved:
            return {}
        among = self._peers(namespace, peers)
        addresses = None if not peers else frozenset(a for each in among for a in each.addresses)
        return {Permission(addresses, _blocks(peers), resolved): None}

    def outgoing(
        self, namespace: str, peers: Sequence[NetworkPolicyPeer], ports: Sequence[NetworkPolicyPort]
    ) -> dict[Permission, None]:
        """The permissions of an egress rule; names of ports are those of each peer."""
        named = [each for each in ports if isinstance(each.port, str)]
        numbered = [each for each in ports if not isinstance(each.port, str)]
        among = self._peers(namespace, peers) if peers else [pod for found in self._pods.values() for pod in found]
        permissions: dict[Permission, None] = {}
        if numbered or not ports:
            addresses = None if not peers else frozenset(a for each in among for a in each.addresses)
            permissions[Permission(addresses, _blocks(peers), _resolved(numbered, None))] = None
        by_ports: defaultdict[tuple[Ports, ...], set[str]] = defaultdict(set)
        for pod in among if named else ():
            if found := _resolved(named, pod):
                by_ports[found].update(pod.addresses)
        return permissions | {Permission(frozenset(found), (), each): None for each, found in by_ports.items()}

    def _peers(self, namespace: str, peers: Sequence[NetworkPolicyPeer]) -> list[PolicyPod]:
        found: list[PolicyPod] = []
        for peer in peers:
            if peer.ip_block is not None:
                continue
            spaces: Iterable[str] = [namespace]
            within = _selector(peer.namespace_selector)
            if within is not None:
                spaces = [name for name, labels in self._namespaces.items() if within.matches(labels)]
            found += self.selected(_selector(peer.pod_selector) or everything(), spaces)
        return found


def _blocks(peers: Sequence[NetworkPolicyPeer]) -> tuple[Block, ...]:
    return tuple(
        Block(_network(peer.ip_block.cidr), tuple(map(_network, peer.ip_block.except_)))
        for peer in peers
        if peer.ip_block is not None
    )


def _network(cidr: str) -> Network:
    return ipaddress.ip_network(cidr, strict=False)


def _resolved(ports: Sequence[NetworkPolicyPort], pod: PolicyPod | None) -> tuple[Ports, ...] | None:
    """The ranges of ports; None if there are no ports: all are meant."""
    if not ports:
        return None
    return tuple(sorted({found for each in ports for found in _ranges(each, pod)}))


def _ranges(port: NetworkPolicyPort, pod: PolicyPod | None) -> Iterator[Ports]:
    protocol = port.protocol or "TCP"
    if port.port is None:
        yield Ports(protocol)
    elif isinstance(port.port, int):
        yield Ports(protocol, port.port, port.end_port or port.port)
    elif pod is not None and (number := pod.ports.get((port.port, protocol))):
        yield Ports(protocol, number, number)


def _selector(selector: LabelSelector | None) -> Selector | None:
    return None if selector is None else from_label_selector(msgspec.to_builtins(selector))
