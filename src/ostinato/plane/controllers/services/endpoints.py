"""Endpoints controller: maintains the legacy Endpoints object of each Service.

Addresses with equal ports form a subset. Beyond 1,000 addresses the object is truncated, unready addresses first, and
annotated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ostinato.api.meta import ObjectMeta
from ostinato.controllers import Context, ForObject, Request
from ostinato.kinds.core_v1 import EndpointAddress, EndpointPort, Endpoints, EndpointSubset, Service
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.endpoints.pods import (
    HEADLESS_LABEL,
    TRIGGER_ANNOTATION,
    EndpointPod,
    ForServices,
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

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
_OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"
_MOST: Final = 1000


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    (
        manager.build("endpoint-controller")
        .watches(Service, handler=ForObject())
        .watches(EndpointPod, handler=ForServices())
        .watches(Endpoints, handler=ForObject())  # has the name of its Service
        .with_options(max_concurrent=5)
        .complete(EndpointsReconciler())
    )


class EndpointsReconciler:
    def __init__(self) -> None:
        self._triggers = TriggerTimeTracker()

    async def reconcile(self, request: Request, ctx: Context) -> None:
        service = await ctx.client.get(Service, request, missing=None)
        current = await ctx.client.get(Endpoints, request, missing=None)
        if service is None:
            self._triggers.forget(request)
            if current is not None and current.metadata.labels.get(MANAGED_BY) == MANAGER:
                await ctx.client.delete(current, missing_ok=True)
            return
        if service.spec.type == "ExternalName" or not service.spec.selector:
            return
        pods = await ctx.client.list(EndpointPod, namespace=request.namespace, labels=service_selector(service))
        trigger = self._triggers.compute(service, pods)
        subsets = subsets_of(service, pods)
        labels = _labels(service)
        over = _truncate(subsets)
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
            metadata = ObjectMeta(
                name=request.name, namespace=request.namespace, labels=labels, annotations=annotations
            )
            await create(Endpoints(metadata=metadata, subsets=subsets), ctx)
            return
        current.metadata.labels, current.metadata.annotations, current.subsets = labels, annotations, subsets
        await ctx.client.update(current)


def _labels(service: Service) -> dict[str, str]:
    labels = {name: value for name, value in service.metadata.labels.items() if name != HEADLESS_LABEL}
    if is_headless(service):
        labels[HEADLESS_LABEL] = ""
    return labels | {MANAGED_BY: MANAGER}


def subsets_of(service: Service, pods: Iterable[EndpointPod]) -> list[EndpointSubset]:
    """Return the subsets of a Service: addresses grouped by ports, in an order that does not depend on that of the
    Pods.
    """
    publish = bool(service.spec.publish_not_ready_addresses)
    family = families_of(service)[0]
    ports_of: dict[_Address, list[EndpointPort]] = {}  # by address and readiness
    for pod in pods:
        if not is_endpoint(pod, terminating=publish) or not (found := addresses(pod, family)):
            continue
        address = EndpointAddress(
            ip=found[0], node_name=pod.spec.node_name, target_ref=pod.reference, hostname=hostname_of(pod, service)
        )
        ports = [
            EndpointPort(name=each.name or None, port=number, protocol=each.protocol, app_protocol=each.app_protocol)
            for each in service.spec.ports
            if (number := target_port(pod, each)) is not None
        ]
        if ports or (not service.spec.ports and is_headless(service)):
            ready = publish or pod.is_ready
            ports_of[_Address(found[0], pod.metadata.uid, ready, address)] = sorted(ports, key=_kube_port_hash)
    subsets: dict[tuple[bytes, ...], EndpointSubset] = {}
    for each in sorted(ports_of, key=lambda known: (known.ip, known.uid)):
        ports = ports_of[each]
        key = tuple(msgspec.json.encode(port) for port in ports)
        subset = subsets.setdefault(key, EndpointSubset(ports=ports, addresses=[], not_ready_addresses=[]))
        (subset.addresses if each.ready else subset.not_ready_addresses).append(each.address)
    return [subsets[key] for key in sorted(subsets)]


class _Address(msgspec.Struct, frozen=True):
    ip: str
    uid: str
    ready: bool
    address: EndpointAddress

    def __hash__(self) -> int:
        return hash((self.ip, self.uid))


def _kube_port_hash(port: EndpointPort) -> int:
    """Return the key by which kube-controller-manager orders ports: FNV-1a of their Go representation."""
    protocol = f"AppProtocol:(*string){'<nil>' if port.app_protocol is None else f'({port.app_protocol})'}"
    text = f"(v1.EndpointPort){{Name:(string){port.name or ''} Port:(int32){port.port} "
    text += f"Protocol:(v1.Protocol){port.protocol or ''} {protocol}}}"
    found = 0x6C62272E07BB014262B821756295C58D  # FNV-1a of 128 bits
    for byte in text.encode():
        found = (found ^ byte) * 0x0000000001000000000000000000013B % (1 << 128)
    return found


def _truncate(subsets: list[EndpointSubset]) -> bool:
    """Truncate to 1,000 addresses; return whether any were removed."""
    ready = sum(len(each.addresses) for each in subsets)
    waiting = sum(len(each.not_ready_addresses) for each in subsets)
    if ready + waiting <= _MOST:
        return False
    room = _MOST
    for names in ("addresses", "not_ready_addresses"):
        for subset in subsets:
            found = getattr(subset, names)[:room]
            setattr(subset, names, found)
            room -= len(found)
    subsets[:] = [each for each in subsets if each.addresses or each.not_ready_addresses]
    return True
