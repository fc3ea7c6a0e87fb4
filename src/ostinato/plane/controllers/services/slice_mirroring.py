"""EndpointSliceMirroring controller: mirrors manually managed Endpoints of Services without selector to EndpointSlices.

Each subset has a slice of up to 1,000 addresses. Endpoints with the label `endpointslice.kubernetes.io/skip-mirror:
"true"` and those of leader election are not mirrored.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ostinato.api.apply.managedfields.last_applied import LAST_APPLIED
from ostinato.api.codec import to_dict
from ostinato.api.meta import ObjectMeta
from ostinato.api.owners import controller_reference_to
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, ForEvent, ForObject, Request
from ostinato.kinds.core_v1 import EndpointAddress, Endpoints, EndpointSubset, Service
from ostinato.kinds.discovery_v1 import Endpoint, EndpointConditions, EndpointPort, EndpointSlice
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.endpoints.pods import TRIGGER_ANNOTATION, create, family_of
from ostinato.plane.endpoints.slices import BY_SERVICE, ManagedSlices
from ostinato.plane.objects.indexes import ensure_index

_OWN: Final = ManagedSlices("endpointslicemirroring-controller.k8s.io")
_SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
_LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
_MOST: Final = 1000


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    ensure_index(manager.informers.of(EndpointSlice), BY_SERVICE)
    (
        manager.build("endpoint-slice-mirroring-controller")
        .watches(Endpoints, handler=ForObject())
        .watches(Service, handler=ForObject())
        .watches(EndpointSlice, handler=ForEvent(_OWN.services))
        .with_options(max_concurrent=5)
        .complete(MirroringReconciler())
    )


class MirroringReconciler:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        existing = await _OWN.of(request, ctx.client)
        endpoints = await ctx.client.get(Endpoints, request, missing=None)
        service = await ctx.client.get(Service, request, missing=None)
        wanted: list[EndpointSlice] = []
        if endpoints is not None and _is_mirrored(endpoints) and service is not None and not service.spec.selector:
            wanted = self._wanted(endpoints, ctx)
        await self._apply(wanted, existing, ctx)

    def _wanted(self, endpoints: Endpoints, ctx: Context) -> list[EndpointSlice]:
        slices: list[EndpointSlice] = []
        invalid = skipped = 0
        for subset in endpoints.subsets:
            found = _endpoints(subset)
            for family in ("IPv4", "IPv6"):
                chosen = [each for each in found if family_of(each.addresses[0]) == family]
                skipped += len(chosen[_MOST:])
                if chosen:
                    slices.append(_slice(endpoints, subset, family, chosen[:_MOST]))
            invalid += sum(not family_of(each.addresses[0]) for each in found)
        if invalid:
            text = f"Skipped {invalid} invalid IP addresses when mirroring to EndpointSlices"
            ctx.event(endpoints, "InvalidIPAddress", text, kind="Warning")
        if skipped:
            most = f"A max of {_MOST} addresses can be mirrored to EndpointSlices per Endpoints subset"
            ctx.event(
                endpoints, "TooManyAddressesToMirror", f"{most}. {skipped} addresses were skipped", kind="Warning"
            )
        return slices

    async def _apply(self, wanted: list[EndpointSlice], existing: list[EndpointSlice], ctx: Context) -> None:
        known = {_key(each): each for each in existing}
        kept = set()  # the first slice per set of ports
        for each in wanted:
            current = known.get(_key(each))
            if current is not None:
                kept.add(current.metadata.name)
            if current is None:
                await create(each, ctx)
            elif not _same(current, each):
                await ctx.client.patch(EndpointSlice, current.metadata, MergePatch(_change(current, each)))
        for each in existing:
            if each.metadata.name not in kept:
                await ctx.client.delete(each, missing_ok=True)


def _is_mirrored(endpoints: Endpoints) -> bool:
    metadata = endpoints.metadata
    return metadata.labels.get(_SKIP) != "true" and _LEADER not in metadata.annotations


def _endpoints(subset: EndpointSubset) -> list[Endpoint]:
    def endpoint(address: EndpointAddress, *, ready: bool) -> Endpoint:
        return Endpoint(
            addresses=[address.ip],
            conditions=EndpointConditions(ready=ready),
            hostname=address.hostname or None,
            node_name=address.node_name,
            target_ref=address.target_ref,
        )

    return [
        *(endpoint(each, ready=True) for each in subset.addresses),
        *(endpoint(each, ready=False) for each in subset.not_ready_addresses),
    ]


def _slice(endpoints: Endpoints, subset: EndpointSubset, family: str, chosen: list[Endpoint]) -> EndpointSlice:
    metadata = endpoints.metadata
    annotations = {
        name: value for name, value in metadata.annotations.items() if name not in (TRIGGER_ANNOTATION, LAST_APPLIED)
    }
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=f"{metadata.name}-",
            namespace=metadata.namespace,
            labels=metadata.labels | _OWN.labels(metadata.name),
            annotations=annotations,
            owner_references=[controller_reference_to(endpoints)],
        ),
        address_type=family,
        endpoints=chosen,
        ports=[
            EndpointPort(name=each.name or "", port=each.port, protocol=each.protocol, app_protocol=each.app_protocol)
            for each in subset.ports
        ],
    )


def _key(each: EndpointSlice) -> tuple[str, bytes]:
    ports = sorted(msgspec.json.encode(to_dict(port)) for port in each.ports)
    return each.address_type, b",".join(ports)


def _same(one: EndpointSlice, other: EndpointSlice) -> bool:
    return (
        one.endpoints == other.endpoints
        and one.metadata.labels == other.metadata.labels
        and one.metadata.annotations == other.metadata.annotations
        and [each.uid for each in one.metadata.owner_references]
        == [each.uid for each in other.metadata.owner_references]
    )


def _change(before: EndpointSlice, after: EndpointSlice) -> dict[str, Any]:
    return {
        "metadata": {
            "resourceVersion": before.metadata.resource_version,
            "labels": dict.fromkeys(before.metadata.labels) | after.metadata.labels,
            "annotations": dict.fromkeys(before.metadata.annotations) | after.metadata.annotations,
            "ownerReferences": [to_dict(each) for each in after.metadata.owner_references],
        },
        "endpoints": [to_dict(each) for each in after.endpoints],
        "ports": [to_dict(each) for each in after.ports] or None,
    }
