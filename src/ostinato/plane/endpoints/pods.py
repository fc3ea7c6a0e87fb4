"""Pods as endpoints of Services: eligibility, addresses and ports.

Shared by the EndpointSlice and Endpoints controllers and the service proxy. `EndpointPod` has the fields of a Pod that
they need.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import msgspec

from ostinato.api.errors import NAMESPACE_TERMINATING, Forbidden
from ostinato.api.gvk import NamespacedName
from ostinato.api.object import Object
from ostinato.api.selectors.labels import Selector, from_set
from ostinato.api.struct import BuiltinStruct
from ostinato.cache import Entry, Event, Updated
from ostinato.client.views import View
from ostinato.controllers.context import Context
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.handlers import Handler, Keys
from ostinato.kinds.core_v1 import Endpoints, ObjectReference, Service, ServicePort
from ostinato.kinds.discovery_v1 import EndpointSlice
from ostinato.plane.objects.pod_state import PodCondition
from ostinato.plane.ownership.event_handler import SelectingObjects

HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
TRIGGER_ANNOTATION: Final = "endpoints.kubernetes.io/last-change-trigger-time"


class _Port(BuiltinStruct):
    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class _Container(BuiltinStruct):
    ports: list[_Port] = []
    restart_policy: str = ""


class _Spec(BuiltinStruct):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""
    containers: list[_Container] = []
    init_containers: list[_Container] = []


class _Address(BuiltinStruct):
    ip: str = ""


class _Status(BuiltinStruct):
    phase: str = ""
    pod_ip: str = msgspec.field(name="podIP", default="")
    pod_ips: list[_Address] = msgspec.field(name="podIPs", default_factory=list)
    conditions: list[PodCondition] = []


class EndpointPod(Object, version="v1", kind="Pod", plural="pods"):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def is_ready(self) -> bool:
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions)

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def ready_changed(self) -> datetime | None:
        """When readiness last changed."""
        found = next((each for each in self.status.conditions if each.type == "Ready"), None)
        return None if found is None else found.last_transition_time

    @property
    def reference(self) -> ObjectReference:
        metadata = self.metadata
        return ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid)


def is_endpoint(pod: EndpointPod, *, terminating: bool) -> bool:
    """Return whether the Pod is an endpoint. `terminating`: include terminating Pods."""
    if pod.status.phase in ("Succeeded", "Failed") or not (pod.status.pod_ip or pod.status.pod_ips):
        return False
    return terminating or not pod.is_terminating


def addresses(pod: EndpointPod, family: str) -> list[str]:
    """Return the Pod's addresses of a family, "IPv4" or "IPv6"."""
    found = [each.ip for each in pod.status.pod_ips] or [pod.status.pod_ip]
    return [each for each in found if family_of(each) == family]


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
    return pod.spec.hostname if pod.spec.hostname and pod.spec.subdomain == service.metadata.name else None


def target_port(pod: EndpointPod, port: ServicePort) -> int | None:
    """Return the Pod's target port of a Service port; None if the Pod has no port of that name."""
    wanted = port.target_port
    if isinstance(wanted, int):
        return wanted
    if not wanted:
        return port.port
    sidecars = [each for each in pod.spec.init_containers if each.restart_policy == "Always"]
    for container in (*pod.spec.containers, *sidecars):
        for each in container.ports:
            if each.name == wanted and each.protocol == (port.protocol or "TCP"):
                return each.container_port
    return None


def service_selector(service: Service) -> Selector:
    return from_set(service.spec.selector)


class ForServices(Handler):
    """Enqueues the Services that select a Pod, by its labels before and after the change."""

    def __init__(self) -> None:
        self._selectors = SelectingObjects(Service, service_selector, version=_resource_version)

    async def prepare(self, watched: View[Any], dependencies: Dependencies) -> None:  # noqa: ARG002
        self._selectors.prepare(dependencies)

    def keys(self, event: Event) -> Keys:
        entry = event.object
        found = self._selectors.matching(entry)
        if not isinstance(event, Updated):
            return found
        old = event.old
        return {*found, *self._selectors.matching(old)} if old.labels_json != entry.labels_json else found


def _resource_version(entry: Entry) -> str:
    return entry.resource_version  # Services have no generation


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
        times = {pod.metadata.name: changed for pod in pods if (changed := pod.ready_changed) is not None}
        created = service.metadata.creation_timestamp
        self._known[key] = times
        if before is None:
            return created
        new = [time for name, time in times.items() if name not in before or time > before[name]]
        return min(new, default=None)

    def forget(self, key: NamespacedName) -> None:
        self._known.pop(key, None)
