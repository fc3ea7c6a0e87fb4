"""Frontends and backends of a Service.

- Frontends: cluster IPs, external IPs and load balancer addresses, and node ports on all addresses of this machine.
- Backends: see `endpoints`.
- `loadBalancerSourceRanges` restrict who connects to load balancer addresses.
- Public external addresses are skipped: they belong to other machines.
- A frontend without backends is in the table, and refuses connections.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from ostinato.kinds.core_v1 import Service, ServicePort
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.plane.endpoints.pods import families_of, family_of
from ostinato.plane.network.netlink import Address, Network
from ostinato.plane.network.services.endpoints import Backend, Backends, Choice, PortEndpoints

__all__ = ["Backend", "BackendSet", "Frontend", "Table", "service_table"]

_STICKY_SECONDS: Final = 10_800
_UNSPECIFIED: Final = {"IPv4": "0.0.0.0", "IPv6": "::"}  # noqa: S104 - node ports are on every address
_INTERNAL, _EXTERNAL, _LOAD_BALANCER = range(3)  # kinds of frontends


class Frontend(msgspec.Struct, frozen=True):
    """Address and port of a Service."""

    protocol: str  # "TCP", "UDP"
    address: Address
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if self.address.version == 6 else str(self.address)
        return f"{self.protocol} {host}:{self.port}"


class BackendSet(msgspec.Struct, frozen=True):
    """
    - `backends`: endpoints, in a stable order.
    - `sticky`: session affinity timeout in seconds. Defaults to None: no affinity.
    - `is_dns`: the DNS server of this process answers, instead of a backend. Defaults to False.
    - `by_node`: the endpoints for clients on nodes of this machine, where that matters. Defaults to none.
    - `sources`: networks that clients have to be in. Default to none: all clients are accepted.
    """

    backends: Backends
    sticky: float | None = None
    is_dns: bool = False
    by_node: Mapping[str, Backends] = {}
    sources: tuple[Network, ...] = ()

    @property
    def is_served(self) -> bool:
        return bool(self.backends) or self.is_dns or any(self.by_node.values())

    @property
    def all(self) -> Backends:
        """The endpoints for anybody."""
        return tuple(dict.fromkeys((*self.backends, *(each for found in self.by_node.values() for each in found))))

    def without(self, addresses: set[str]) -> BackendSet:
        """The set without some endpoints."""

        def kept(backends: Backends) -> Backends:
            return tuple(each for each in backends if each.address not in addresses)

        by_node = {name: kept(found) for name, found in self.by_node.items()}
        return msgspec.structs.replace(self, backends=kept(self.backends), by_node=by_node)


Table = dict[Frontend, BackendSet]


def service_table(
    service: Service, slices: Iterable[EndpointSlice], nodes: Mapping[str, str] = {}, *, is_dns: bool = False
) -> Table:
    """Return frontends and backends of a Service.

    - `slices`: its EndpointSlices.
    - `nodes`: the nodes of this machine, and their zones. Default to none: no endpoint is local.
    - `is_dns`: the DNS server of this process answers. Defaults to False.
    """
    if service.spec.type == "ExternalName":
        return {}
    slices = list(slices)
    sticky = _affinity_timeout(service)
    ranges = tuple(ipaddress.ip_network(each.strip(), strict=False) for each in _source_ranges(service))
    table: Table = {}
    for port in service.spec.ports:
        protocol = port.protocol or "TCP"
        if protocol not in ("TCP", "UDP"):
            continue  # e.g. SCTP: not supported
        choices = {family: _choices(service, PortEndpoints(slices, family, port, nodes)) for family in _UNSPECIFIED}
        for kind, address, number in _frontend_addresses(service, port):
            choice = Choice() if is_dns else choices[f"IPv{address.version}"][kind]
            sources = ranges if kind == _LOAD_BALANCER else ()
            found = BackendSet(choice.everywhere, sticky, is_dns, choice.by_node, sources)
            table[Frontend(protocol, address, number)] = found
    return table


def _choices(service: Service, endpoints: PortEndpoints) -> tuple[Choice, ...]:
    """The backends by kind of frontend."""
    internal = endpoints.internal(local=service.spec.internal_traffic_policy == "Local")
    external = endpoints.external(local=service.spec.external_traffic_policy == "Local")
    return internal, external, external


def _frontend_addresses(service: Service, port: ServicePort) -> Iterator[tuple[int, Address, int]]:
    spec = service.spec
    for text in spec.cluster_ips or [spec.cluster_ip or ""]:
        if family_of(text):
            yield _INTERNAL, ipaddress.ip_address(text), port.port
    ingress = [] if service.status.load_balancer is None else service.status.load_balancer.ingress
    balanced = [each.ip or "" for each in ingress if each.ip_mode != "Proxy"]
    for kind, texts in ((_EXTERNAL, spec.external_ips), (_LOAD_BALANCER, balanced)):
        for text in texts:
            if family_of(text) and not (address := ipaddress.ip_address(text)).is_global:
                yield kind, address, port.port
    if port.node_port:
        for family in families_of(service):
            yield _EXTERNAL, ipaddress.ip_address(_UNSPECIFIED[family]), port.node_port


def _source_ranges(service: Service) -> list[str]:
    annotated = service.metadata.annotations.get("service.beta.kubernetes.io/load-balancer-source-ranges", "")
    return service.spec.load_balancer_source_ranges or [each for each in annotated.split(",") if each.strip()]


def _affinity_timeout(service: Service) -> float | None:
    if service.spec.session_affinity != "ClientIP":
        return None
    config = service.spec.session_affinity_config
    seconds = None if config is None or config.client_ip is None else config.client_ip.timeout_seconds
    return float(seconds or _STICKY_SECONDS)
