"""Frontends and backends of a Service.

- Frontends: cluster IPs, external IPs and load balancer addresses, and node ports on all addresses of this machine.
- Backends: ready endpoints; if there are none, terminating endpoints that still serve.
- Public external addresses are skipped: they belong to other machines.
- A frontend without backends is in the table, and refuses connections.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from ostinato.kinds.core_v1 import Service, ServicePort
from ostinato.kinds.discovery_v1 import Endpoint, EndpointConditions, EndpointSlice
from ostinato.plane.endpoints.pods import families_of, family_of
from ostinato.plane.network.netlink import Address

_STICKY_SECONDS: Final = 10_800
_UNSPECIFIED: Final = {"IPv4": "0.0.0.0", "IPv6": "::"}  # noqa: S104 - node ports are on every address


class Frontend(msgspec.Struct, frozen=True):
    """Address and port of a Service."""

    protocol: str  # "TCP", "UDP"
    address: Address
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if self.address.version == 6 else str(self.address)
        return f"{self.protocol} {host}:{self.port}"


class Backend(msgspec.Struct, frozen=True):
    """Address and port of an endpoint."""

    address: str
    port: int


class BackendSet(msgspec.Struct, frozen=True):
    """
    - `backends`: endpoints, in a stable order.
    - `sticky`: session affinity timeout in seconds. Defaults to None: no affinity.
    - `is_dns`: the DNS server of this process answers, instead of a backend. Defaults to False.
    """

    backends: tuple[Backend, ...]
    sticky: float | None = None
    is_dns: bool = False

    @property
    def is_served(self) -> bool:
        return bool(self.backends) or self.is_dns


Table = dict[Frontend, BackendSet]


def service_table(service: Service, slices: Iterable[EndpointSlice], *, is_dns: bool = False) -> Table:
    """Return frontends and backends of a Service.

    - `slices`: its EndpointSlices.
    - `is_dns`: the DNS server of this process answers. Defaults to False.
    """
    if service.spec.type == "ExternalName":
        return {}
    slices = list(slices)
    sticky = _affinity_timeout(service)
    table: Table = {}
    for port in service.spec.ports:
        protocol = port.protocol or "TCP"
        if protocol not in ("TCP", "UDP"):
            continue  # e.g. SCTP: not supported
        backends = {family: _backends(slices, family, port) for family in _UNSPECIFIED}
        for address, number in _frontend_addresses(service, port):
            family = f"IPv{address.version}"
            table[Frontend(protocol, address, number)] = BackendSet(() if is_dns else backends[family], sticky, is_dns)
    return table


def _frontend_addresses(service: Service, port: ServicePort) -> Iterator[tuple[Address, int]]:
    spec = service.spec
    for text in spec.cluster_ips or [spec.cluster_ip or ""]:
        if family_of(text):
            yield ipaddress.ip_address(text), port.port
    ingress = [] if service.status.load_balancer is None else service.status.load_balancer.ingress
    for text in (*spec.external_ips, *(each.ip or "" for each in ingress if each.ip_mode != "Proxy")):
        if family_of(text) and not (address := ipaddress.ip_address(text)).is_global:
            yield address, port.port
    if port.node_port:
        for family in families_of(service):
            yield ipaddress.ip_address(_UNSPECIFIED[family]), port.node_port


def _backends(slices: Iterable[EndpointSlice], family: str, port: ServicePort) -> tuple[Backend, ...]:
    ready: set[Backend] = set()
    terminating: set[Backend] = set()
    for each in slices:
        numbers = [
            found.port
            for found in each.ports
            if (found.name or "") == (port.name or "") and (found.protocol or "TCP") == (port.protocol or "TCP")
        ]
        if each.address_type != family or not numbers or not numbers[0]:
            continue
        for endpoint in each.endpoints:
            backend = Backend(endpoint.addresses[0], numbers[0])  # further addresses belong to the same endpoint
            if _is_ready(endpoint):
                ready.add(backend)
            elif _is_serving_terminating(endpoint.conditions):
                terminating.add(backend)
    return tuple(sorted(ready or terminating, key=lambda found: (found.address, found.port)))


def _is_ready(endpoint: Endpoint) -> bool:
    return endpoint.conditions is None or endpoint.conditions.ready is not False


def _is_serving_terminating(conditions: EndpointConditions | None) -> bool:
    return conditions is not None and bool(conditions.serving) and bool(conditions.terminating)


def _affinity_timeout(service: Service) -> float | None:
    if service.spec.session_affinity != "ClientIP":
        return None
    config = service.spec.session_affinity_config
    seconds = None if config is None or config.client_ip is None else config.client_ip.timeout_seconds
    return float(seconds or _STICKY_SECONDS)
