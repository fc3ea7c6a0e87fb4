"""Endpoints controller: maintains the legacy Endpoints object of each Service.

Addresses with equal ports form a subset. Beyond 1,000 addresses the object is truncated, unready addresses first, and
annotated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ostinato.api.meta import ObjectMeta
from ostinato.controllers import Context, ForObject, Request, Result
from ostinato.kinds.core_v1 import EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Service
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
from ostinato.plane.objects.pod_state import PodState

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_MOST: Final = 1000


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    pods = selected_pods(manager)
    (
        manager.build("endpoint-controller")
        .watches(Service, handler=ForObject())
        .watches(PodState, handler=ForServices(pods))
        .watches(Endpoints, handler=ForObject())  # has the name of its Service
        .with_options(max_concurrent=5)
        .complete(EndpointsReconciler(pods))
    )


class EndpointsReconciler:
    def __init__(self, pods: SelectedPods) -> None:
        self._pods = pods
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
        current = await ctx.client.get(Endpoints, request, missing=None)
        if service is None:
            self._triggers.forget(request)
            self._batch.forget(request)
            if current is not None and current.metadata.labels.get(MANAGED_BY) == MANAGER:
                await ctx.client.delete(current, missing_ok=True)
            return
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return
        pods = self._pods.of(request.namespace, service_selector(service))
        self._batch.reconciled(request, len(pods), ctx.world.clock)
        trigger = self._triggers.compute(service, pods)
        subsets, over = subsets_of(service, pods)
        labels = _labels(service)
        annotations = {} if current is None else dict(current.metadata.annotations)
        is_told = current is not None and current.subsets == subsets and current.metadata.labels == labels
        if is_told and (annotations.get(_OVER_CAPACITY) == "truncated") == over:
            return
        annotations.pop(TRIGGER_ANNOTATION, None)
        annotations.pop(_OVER_CAPACITY, None)
        if trigger is not None:
            annotations[TRIGGER_ANNOTATION] = str(trigger)
        if over:
            annotations[_OVER_CAPACITY] = "truncated"
        if current is None:
            if not await self._exists(service, ctx):
                return
            metadata = ObjectMeta(
                name=request.name, namespace=request.namespace, labels=labels, annotations=annotations
            )
            await create(Endpoints(metadata=metadata, subsets=subsets), ctx)
            return
        current.metadata.labels, current.metadata.annotations, current.subsets = labels, annotations, subsets
        await ctx.client.update(current)

    async def _exists(self, service: Service, ctx: Context) -> bool:
        """Ask the server whether a Service still exists: it deletes the Endpoints of a Service with it, and the cache
        of Services may be behind."""
        live = await ctx.client.live.get(Service, service.metadata, missing=None)
        return live is not None and live.metadata.uid == service.metadata.uid


def _labels(service: Service) -> dict[str, str]:
    labels = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS_LABEL}
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    return labels | {MANAGED_BY: MANAGER}


class _Group(msgspec.Struct):
    """Pods with equal ports."""

    ports: list[EndpointPort]
    ready: list[EndpointPod] = []
    waiting: list[EndpointPod] = []


def subsets_of(service: Service, pods: Iterable[EndpointPod]) -> tuple[list[EndpointSubset], bool]:
    """Return the subsets of a Service, and whether addresses were left out.

    Addresses are grouped by ports, in an order that does not depend on that of the Pods.
    """
    groups = _groups(service, pods)
    over = _truncate(groups)

    def address(pod: EndpointPod) -> EndpointAddress:
        return EndpointAddress(
            ip=_address(pod, service),
            node_name=pod.node_name,
            target_ref=pod.reference,
            hostname=hostname_of(pod, service),
        )

    subsets = [
        EndpointSubset(
            ports=group.ports,
            addresses=[address(pod) for pod in group.ready],
            not_ready_addresses=[address(pod) for pod in group.waiting],
        )
        for group in groups
    ]
    return subsets, over


def _groups(service: Service, pods: Iterable[EndpointPod]) -> list[_Group]:
    publish = bool(service.spec.publish_not_ready_addresses)
    without_ports = not service.spec.ports and is_headless(service)
    found = [
        (ip, pod.uid, pod) for pod in pods if is_endpoint(pod, terminating=publish) and (ip := _address(pod, service))
    ]
    groups: dict[tuple[bytes, ...], _Group] = {}
    of_ports: dict[tuple[tuple[str, str, int], ...], _Group | None] = {}  # by container ports, equal for most Pods
    for _, _, pod in sorted(found, key=lambda each: each[:2]):
        if pod.ports not in of_ports:
            ports = _ports(service, pod)
            key = tuple(msgspec.json.encode(port) for port in ports)
            of_ports[pod.ports] = groups.setdefault(key, _Group(ports)) if ports or without_ports else None
        group = of_ports[pod.ports]
        if group is not None:
            (group.ready if publish or pod.is_ready else group.waiting).append(pod)
    return [groups[key] for key in sorted(groups)]


def _address(pod: EndpointPod, service: Service) -> str:
    """Return the Pod's address of the Service's first family; "" if it has none."""
    return next(iter(addresses(pod, families_of(service)[0])), "")


def _ports(service: Service, pod: EndpointPod) -> list[EndpointPort]:
    ports = [
        EndpointPort(name=each.name or None, port=number, protocol=each.protocol, app_protocol=each.app_protocol)
        for each in service.spec.ports
        if (number := target_port(pod, each)) is not None
    ]
    return sorted(ports, key=_kube_port_hash)


def _kube_port_hash(port: EndpointPort) -> int:
    """Return the key by which kube-controller-manager orders ports: FNV-1a of their Go representation."""
    protocol = f"AppProtocol:(*string){'<nil>' if port.app_protocol is None else f'({port.app_protocol})'}"
    text = f"(v1.EndpointPort){{Name:(string){port.name or ''} Port:(int32){port.port} "
    text += f"Protocol:(v1.Protocol){port.protocol or ''} {protocol}}}"
    found = 0x6C62272E07BB014262B821756295C58D  # FNV-1a of 128 bits
    for byte in text.encode():
        found = (found ^ byte) * 0x0000000001000000000000000000013B % (1 << 128)
    return found


def _truncate(groups: list[_Group]) -> bool:
    """Truncate to 1,000 addresses, those of unready Pods first; return whether any were removed."""
    if sum(len(each.ready) + len(each.waiting) for each in groups) <= _MOST:
        return False
    room = _MOST
    for group in groups:
        group.ready = group.ready[:room]
        room -= len(group.ready)
    for group in groups:
        group.waiting = group.waiting[:room]
        room -= len(group.waiting)
    groups[:] = [each for each in groups if each.ready or each.waiting]
    return True
