"""EndpointSlice controller: maintains slices of up to 100 endpoints for each Service.

- Endpoints with equal ports share slices. An endpoint stays in its slice; new ones fill existing slices, the fullest
  first; empty slices are reused or deleted.
- A terminating Pod stays, as serving and not ready, until it has terminated.
- A Service without matching Pods has one empty slice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.api.owners import controller_reference_to
from ostinato.cache import Event
from ostinato.cache.readable_store import ReadableStore
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, ForEvent, Request, Result
from ostinato.kinds.core_v1 import Node, Service
from ostinato.kinds.discovery_v1 import (
    Endpoint,
    EndpointConditions,
    EndpointHints,
    EndpointPort,
    EndpointSlice,
    ForNode,
    ForZone,
)
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.endpoints.pods import (
    HEADLESS_LABEL,
    TRIGGER_ANNOTATION,
    EndpointPod,
    TriggerTimeTracker,
    addresses,
    create,
    families_of,
    hostname_of,
    is_endpoint,
    is_headless,
    service_selector,
    target_port,
)
from ostinato.plane.endpoints.selected_pods import ForServices, SelectedPods, UpdateBatch, selected_pods
from ostinato.plane.endpoints.slices import BY_SERVICE, MANAGED_BY, SERVICE_NAME, ManagedSlices
from ostinato.plane.objects.indexes import ensure_index
from ostinato.plane.objects.pod_state import PodState

_OWN: Final = ManagedSlices("endpointslice-controller.k8s.io")
_RESERVED: Final = frozenset({SERVICE_NAME, MANAGED_BY, HEADLESS_LABEL})
_MAX_ENDPOINTS: Final = 100  # per slice
_ZONE: Final = "topology.kubernetes.io/zone"
_DISTRIBUTIONS: Final = ("PreferClose", "PreferSameZone", "PreferSameNode")


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    ensure_index(manager.informers.of(EndpointSlice), BY_SERVICE)
    pods, nodes = selected_pods(manager), manager.informers.of(Node).store
    (
        manager.build("endpoint-slice-controller")
        .watch_for(Service)
        .watches(PodState, handler=ForServices(pods))
        .watches(Node, handler=ForEvent(_no_services))  # only to have the zones
        .watches(EndpointSlice, handler=ForEvent(_OWN.services))
        .with_options(max_concurrent=5)
        .complete(EndpointSliceReconciler(pods, nodes))
    )


def _no_services(event: Event) -> tuple[NamespacedName, ...]:  # noqa: ARG001
    return ()


class EndpointSliceReconciler:
    def __init__(self, pods: SelectedPods, nodes: ReadableStore) -> None:
        self._pods = pods
        self._nodes = nodes
        self._triggers = TriggerTimeTracker()
        self._batch = UpdateBatch()

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        wait = self._batch.wait(request, ctx.world.clock)
        if wait > 0:
            return Result(requeue_after=wait)
        await self._update(request, ctx)
        return None

    async def _update(self, request: Request, ctx: Context) -> None:
        service = await ctx.client.get(Service, request, missing=None)
        if service is None or service.metadata.deletion_timestamp is not None:
            self._triggers.forget(request)
            self._batch.forget(request)
            return  # slices are garbage-collected with their owner
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return
        pods = self._pods.of(request.namespace, service_selector(service))
        self._batch.reconciled(request, len(pods), ctx.world.clock)
        existing = [each for each in await _OWN.of(request, ctx.client) if each.metadata.deletion_timestamp is None]
        trigger = self._triggers.compute(service, pods)
        zones = self._zones(pods)
        plan = _SliceChanges(service, trigger)
        families = families_of(service)
        for family in families:
            wanted = _wanted(service, pods, family, zones)
            plan.place_endpoints(family, wanted, [each for each in existing if each.address_type == family])
        plan.deleted += [each for each in existing if each.address_type not in families]
        await plan.apply(ctx)

    def _zones(self, pods: Iterable[EndpointPod]) -> dict[str, str]:
        """Return the zones of the Pods' nodes."""
        zones = {}
        for name in {pod.node_name for pod in pods if pod.node_name}:
            node = self._nodes.get(NamespacedName("", name))
            if node is not None and (zone := node.labels.get(_ZONE)):
                zones[name] = zone
        return zones


_Group = tuple[list[EndpointPort], list[Endpoint]]


def _wanted(
    service: Service, pods: Iterable[EndpointPod], family: str, zones: Mapping[str, str]
) -> dict[Hashable, _Group]:
    """Return the endpoints of an address family, grouped by ports."""
    groups: dict[Hashable, _Group] = {}
    of_ports: dict[tuple[tuple[str, str, int], ...], _Group] = {}  # by container ports, equal for most Pods
    for pod in pods:
        if not is_endpoint(pod, terminating=True) or not (found := addresses(pod, family)):
            continue
        if pod.ports not in of_ports:
            ports = [
                EndpointPort(name=each.name or "", port=number, protocol=each.protocol, app_protocol=each.app_protocol)
                for each in service.spec.ports
                if (number := target_port(pod, each)) is not None
            ]
            of_ports[pod.ports] = groups.setdefault(_ports_key(ports), (ports, []))
        of_ports[pod.ports][1].append(_endpoint(pod, service, found, zones))
    return groups


def _ports_key(ports: Iterable[EndpointPort]) -> Hashable:
    return frozenset((each.name or "", each.port, each.protocol, each.app_protocol) for each in ports)


def _endpoint(pod: EndpointPod, service: Service, found: list[str], zones: Mapping[str, str]) -> Endpoint:
    serving, terminating = pod.is_ready, pod.is_terminating
    ready = bool(service.spec.publish_not_ready_addresses) or (serving and not terminating)
    return Endpoint(
        addresses=found,
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=terminating),
        hostname=hostname_of(pod, service),
        node_name=pod.node_name or None,
        target_ref=pod.reference,
        zone=zones.get(pod.node_name),
        hints=_hints(service, pod.node_name, zones.get(pod.node_name, "")) if ready else None,
    )


def _hints(service: Service, node: str, zone: str) -> EndpointHints | None:
    """Return the hints that the Service's trafficDistribution asks for; None without one."""
    distribution = service.spec.traffic_distribution
    by_node = distribution == "PreferSameNode" and node
    if distribution not in _DISTRIBUTIONS or not (zone or by_node):
        return None
    return EndpointHints(
        for_zones=[ForZone(name=zone)] if zone else [], for_nodes=[ForNode(name=node)] if by_node else []
    )


class _SliceChanges:
    """Slices of one Service to create, update and delete."""

    def __init__(self, service: Service, trigger: datetime | None) -> None:
        self._service = service
        self._trigger = trigger
        self._labels = _labels(service)
        self.created: list[EndpointSlice] = []
        self.updated: list[tuple[EndpointSlice, EndpointSlice]] = []  # (before, after)
        self.deleted: list[EndpointSlice] = []

    def place_endpoints(self, family: str, wanted: Mapping[Hashable, _Group], existing: list[EndpointSlice]) -> None:
        """Distribute the endpoints of a family over existing slices, then new ones."""
        by_ports: dict[Hashable, list[EndpointSlice]] = {}
        for each in existing:
            by_ports.setdefault(_ports_key(each.ports), []).append(each)
        spare: list[EndpointSlice] = []
        new: list[_Group] = []
        for key, (ports, endpoints) in wanted.items():
            rest = self._fill_existing(ports, endpoints, by_ports.pop(key, []), spare)
            new += [(ports, rest[start : start + _MAX_ENDPOINTS]) for start in range(0, len(rest), _MAX_ENDPOINTS)]
        spare += [each for slices in by_ports.values() for each in slices]
        if not wanted:
            new.append(([], []))
        for ports, endpoints in new:
            if spare:
                self._update(spare.pop(0), ports, endpoints)
            else:
                self.created.append(self._new_slice(family, ports, endpoints))
        self.deleted += spare

    def _fill_existing(
        self,
        ports: list[EndpointPort],
        endpoints: list[Endpoint],
        slices: list[EndpointSlice],
        spare: list[EndpointSlice],
    ) -> list[Endpoint]:
        """Keep endpoints in their slices and fill free capacity; return the endpoints that are left."""
        waiting = {_identity(each): each for each in endpoints}
        staying = [
            (each, [waiting.pop(known) for one in each.endpoints if (known := _identity(one)) in waiting])
            for each in slices
        ]
        left = list(waiting.values())
        for each, stay in sorted(staying, key=lambda pair: -len(pair[1])):
            room = _MAX_ENDPOINTS - len(stay)
            full, left = [*stay, *left[:room]], left[room:]
            if full:
                self._update(each, ports, full)
            else:
                spare.append(each)
        return left

    def _update(self, current: EndpointSlice, ports: list[EndpointPort], endpoints: list[Endpoint]) -> None:
        same = _ports_key(current.ports) == _ports_key(ports) and _same(current.endpoints, endpoints)
        if same and current.metadata.labels == self._labels:
            return
        new = msgspec.structs.replace(current, ports=ports, endpoints=endpoints)
        new.metadata = msgspec.structs.replace(
            current.metadata, labels=self._labels, annotations=self._annotations(current.metadata.annotations)
        )
        self.updated.append((current, new))

    def _new_slice(self, family: str, ports: list[EndpointPort], endpoints: list[Endpoint]) -> EndpointSlice:
        service = self._service
        metadata = ObjectMeta(
            generate_name=f"{service.metadata.name}-",
            namespace=service.metadata.namespace,
            labels=self._labels,
            annotations=self._annotations({}),
            owner_references=[controller_reference_to(service)],
        )
        return EndpointSlice(metadata=metadata, address_type=family, ports=ports, endpoints=endpoints)

    def _annotations(self, before: Mapping[str, str]) -> dict[str, str]:
        annotations = {name: value for name, value in before.items() if name != TRIGGER_ANNOTATION}
        if self._trigger is not None:
            annotations[TRIGGER_ANNOTATION] = str(self._trigger)
        return annotations

    async def apply(self, ctx: Context) -> None:
        for each in self.created:
            await create(each, ctx)
        for before, after in self.updated:
            change = {
                "metadata": {
                    "resourceVersion": before.metadata.resource_version,
                    "labels": dict.fromkeys(before.metadata.labels) | after.metadata.labels,
                    "annotations": dict.fromkeys(before.metadata.annotations) | after.metadata.annotations,
                },
                "endpoints": [to_dict(each) for each in after.endpoints] or None,
                "ports": [to_dict(each) for each in after.ports] or None,
            }
            await ctx.client.patch(EndpointSlice, before.metadata, MergePatch(change))
        for each in self.deleted:
            await ctx.client.delete(each, missing_ok=True)


def _labels(service: Service) -> dict[str, str]:
    labels = {name: value for name, value in service.metadata.labels.items() if name not in _RESERVED}
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    return labels | _OWN.labels(service.metadata.name)


def _identity(endpoint: Endpoint) -> Hashable:
    uid = "" if endpoint.target_ref is None else endpoint.target_ref.uid
    return (uid, *endpoint.addresses)


def _same(one: list[Endpoint], other: list[Endpoint]) -> bool:
    """Return whether the endpoints are equal, in any order."""
    if len(one) != len(other):
        return False
    known = {_identity(each): each for each in one}
    return all(known.get(_identity(each)) == each for each in other)
