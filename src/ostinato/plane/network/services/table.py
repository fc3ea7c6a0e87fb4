"""The table of a Service: where it is to answer, and who answers there.

- It answers at its cluster addresses, at its external ones, and at its node ports on every address of this machine.
- Endpoints that are ready answer. If none is, those do that still serve while they end.
- External addresses of the public network are left alone: a Service does not take them from their owners.
- What has no endpoint is in the table, too, with nobody: it is known, and refused.
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
    """Where a Service answers."""

    protocol: str  # "TCP", "UDP"
    address: Address
    port: int

    def __str__(self) -> str:
        host = f"[{self.address}]" if self.address.version == 6 else str(self.address)
        return f"{self.protocol} {host}:{self.port}"


class Backend(msgspec.Struct, frozen=True):
    """Who answers."""

    address: str
    port: int


class BackendSet(msgspec.Struct, frozen=True):
    """
    - `backends`: who may answer, in an order that does not change by itself.
    - `sticky`: for how many seconds a client stays with its backend. None is not at all.
    """

    backends: tuple[Backend, ...]
    sticky: float | None = None


Table = dict[Frontend, BackendSet]


def service_table(service: Service, slices: Iterable[EndpointSlice]) -> Table:
    """`slices`: those of the Service."""
    if service.spec.type == "ExternalName":
        return {}
    slices = list(slices)
    sticky = _affinity_timeout(service)
    table: Table = {}
    for port in service.spec.ports:
        protocol = port.protocol or "TCP"
        if protocol not in ("TCP", "UDP"):
            continue  # nothing here can relay it
        backends = {family: _backends(slices, family, port) for family in _UNSPECIFIED}
        for address, number in _frontend_addresses(service, port):
            family = f"IPv{address.version}"
            table[Frontend(protocol, address, number)] = BackendSet(backends[family], sticky)
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
            backend = Backend(endpoint.addresses[0], numbers[0])  # the others are the same endpoint's
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
