"""Pods as endpoints of Services: eligibility, addresses and ports.

Shared by the EndpointSlice and Endpoints controllers and the service proxy.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from ostinato.api.errors import NAMESPACE_TERMINATING, Forbidden
from ostinato.api.gvk import NamespacedName
from ostinato.api.selectors.labels import Selector, from_set, nothing
from ostinato.controllers.context import Context
from ostinato.kinds.core_v1 import Endpoints, ObjectReference, Service, ServicePort
from ostinato.kinds.discovery_v1 import EndpointSlice

HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
TRIGGER_ANNOTATION: Final = "endpoints.kubernetes.io/last-change-trigger-time"


class EndpointPod(msgspec.Struct, frozen=True, gc=False):
    """The fields of a Pod that make an endpoint of it.

    - `ips`: empty until the Pod has addresses.
    - `ready_changed`: when readiness last changed.
    - `ports`: name, protocol and number of the container ports; those of sidecars last.
    """

    namespace: str
    name: str
    uid: str
    node_name: str
    hostname: str
    subdomain: str
    ips: tuple[str, ...]
    is_ready: bool
    is_terminating: bool
    is_finished: bool
    ready_changed: datetime | None
    ports: tuple[tuple[str, str, int], ...]

    @property
    def reference(self) -> ObjectReference:
        return ObjectReference(kind="Pod", namespace=self.namespace, name=self.name, uid=self.uid)


def is_endpoint(pod: EndpointPod, *, terminating: bool) -> bool:
    """Return whether the Pod is an endpoint. `terminating`: include terminating Pods."""
    return bool(pod.ips) and not pod.is_finished and (terminating or not pod.is_terminating)


def addresses(pod: EndpointPod, family: str) -> list[str]:
    """Return the Pod's addresses of a family, "IPv4" or "IPv6"."""
    return [each for each in pod.ips if family_of(each) == family]


@lru_cache(maxsize=65_536)
def family_of(address: str) -> str:
    """Return "IPv4", "IPv6", or "" for an invalid address."""
    try:
        return f"IPv{ipaddress.ip_address(address).version}"
    except ValueError:
        return ""


def families_of(service: Service) -> list[str]:
    """Return the address families of the Service."""
    return [each for each in service.spec.ip_families if each] or [family_of(service.spec.cluster_ip or "") or "IPv4"]


def is_headless(service: Service) -> bool:
    return service.spec.cluster_ip in (None, "", "None")


def hostname_of(pod: EndpointPod, service: Service) -> str | None:
    """Return the hostname of the Pod within the Service; None if it has none."""
    return pod.hostname if pod.hostname and pod.subdomain == service.metadata.name else None


def target_port(pod: EndpointPod, port: ServicePort) -> int | None:
    """Return the Pod's target port of a Service port; None if the Pod has no port of that name."""
    wanted = port.target_port
    if isinstance(wanted, int):
        return wanted
    if not wanted:
        return port.port
    protocol = port.protocol or "TCP"
    return next((number for name, of, number in pod.ports if name == wanted and of == protocol), None)


def service_selector(service: Service) -> Selector:
    """Return the selector of a Service; one without a selector has endpoints that others write, and selects nothing."""
    return from_set(service.spec.selector) if service.spec.selector else nothing()


async def create(instance: Endpoints | EndpointSlice, ctx: Context) -> None:
    """Create an object; a terminating namespace is ignored."""
    try:
        await ctx.client.create(instance)
    except Forbidden as error:
        if not error.has_cause(NAMESPACE_TERMINATING):
            raise


class TriggerTimeTracker:
    """Tracks the time of the changes that trigger an update (last-change-trigger-time)."""

    def __init__(self) -> None:
        self._known: dict[NamespacedName, dict[str, datetime]] = {}

    def compute(self, service: Service, pods: Iterable[EndpointPod]) -> datetime | None:
        """Return the earliest change time since the last call; for a new Service its creation time."""
        key = NamespacedName(service.metadata.namespace, service.metadata.name)
        before = self._known.get(key)
        times = {pod.name: changed for pod in pods if (changed := pod.ready_changed) is not None}
        created = service.metadata.creation_timestamp
        self._known[key] = times
        if before is None:
            return created
        new = [time for name, time in times.items() if name not in before or time > before[name]]
        return min(new, default=None)

    def forget(self, key: NamespacedName) -> None:
        self._known.pop(key, None)
