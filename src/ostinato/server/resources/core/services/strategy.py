"""Strategy of Services."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ostinato.api.validation import names
from ostinato.api.validation.addresses import cidr_warnings, ip_warning
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.services import validation as service_validation
from ostinato.server.resources.core.services.allocation import Allocator
from ostinato.server.resources.core.services.ports import NODE_PORTS
from ostinato.server.resources.core.services.shape import (
    drop_fields_of_other_types,
    is_externally_accessible,
    node_ports,
    normalize_cluster_ips,
    patch_allocated,
)
from ostinato.server.resources.strategy import Allocation, Json, NameRule, Strategy
from ostinato.server.store.records import Conflict

if TYPE_CHECKING:
    from ostinato.server.store.index import Index
    from ostinato.world import World

_SPEC = Path("spec")
_AFFINITY_SECONDS = 10800
_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"


class Service(Strategy):
    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_dns_label)
    allow_create_on_update = True
    returns_deleted = True
    selectable = ("spec.clusterIP", "spec.type")

    def __init__(self, world: World | None = None) -> None:
        self._allocator = None if world is None else Allocator(world)

    def for_server(self, world: World) -> Strategy:
        return Service(world)

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        if spec.setdefault("sessionAffinity", "None") == "None":
            spec.pop("sessionAffinityConfig", None)
        elif spec["sessionAffinity"] == "ClientIP":
            configured = spec.get("sessionAffinityConfig", {}).get("clientIP", {})
            if "timeoutSeconds" not in configured:
                spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": _AFFINITY_SECONDS}}
        kind = spec.setdefault("type", "ClusterIP")
        for port in spec.get("ports", ()):
            port.setdefault("protocol", "TCP")
            if not port.get("targetPort"):
                port["targetPort"] = port.get("port", 0)
        if is_externally_accessible(spec):
            spec.setdefault("externalTrafficPolicy", "Cluster")
        if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
            spec.setdefault("internalTrafficPolicy", "Cluster")
        if kind == "LoadBalancer":
            spec.setdefault("allocateLoadBalancerNodePorts", True)
            for ingress in obj.get("status", {}).get("loadBalancer", {}).get("ingress", ()):
                if ingress.get("ip"):
                    ingress.setdefault("ipMode", "VIP")

    def allocate(self, new: Json, old: Json | None, index: Index, *, dry: bool) -> Awaitable[Allocation | None]:
        return self._allocate(new, old, index, dry=dry)

    async def _allocate(self, new: Json, old: Json | None, index: Index, *, dry: bool) -> Allocation | None:
        assert self._allocator is not None
        spec = new["spec"]
        if old is not None:
            patch_allocated(spec, old["spec"])
        normalize_cluster_ips(spec, None if old is None else old["spec"])
        allocated = await self._allocator.allocate(new, old, index, dry=dry)
        if spec["type"] == "ExternalName" and spec.get("internalTrafficPolicy") in ("Cluster", "Local"):
            del spec["internalTrafficPolicy"]
        if "healthCheckNodePort" in spec:
            spec["healthCheckNodePort"] = spec.pop("healthCheckNodePort")  # moved behind the ports
        return allocated

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {"loadBalancer": {}}

    def prepare_update(self, new: Json, old: Json) -> None:
        drop_fields_of_other_types(new["spec"], old["spec"])
        if new["spec"]["type"] != "LoadBalancer":
            new["status"] = {**new.get("status", {}), "loadBalancer": {}}

    def validate(self, obj: Json) -> list[FieldError]:
        return service_validation.validate(obj, None)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return service_validation.validate_update(new, old)

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return service_validation.validate_load_balancer(new, old)

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        spec = new["spec"]
        found: list[str] = []
        if _TOPOLOGY_HINTS in new["metadata"].get("annotations", {}):
            found.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
        address = spec.get("clusterIP", "")
        if address and address != "None":
            found += _ip_warnings(_SPEC.child("clusterIPs"), spec.get("clusterIPs", ()))
        headless = spec["type"] == "ClusterIP" and address == "None"
        external = spec.get("externalIPs", ())
        if headless:
            if spec.get("loadBalancerIP"):
                found.append("spec.loadBalancerIP is ignored for headless services")
            if external:
                found.append("spec.externalIPs is ignored for headless services")
            if spec.get("sessionAffinity") != "None":
                found.append("spec.SessionAffinity is ignored for headless services")
        found += _ip_warnings(_SPEC.child("externalIPs"), external)
        if external and not headless and spec["type"] != "ExternalName":
            found.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
        if spec.get("loadBalancerIP"):
            text = ip_warning(spec["loadBalancerIP"])
            found += [f"{_SPEC.child('loadBalancerIP')}: {text}"] if text else []
        for i, network in enumerate(spec.get("loadBalancerSourceRanges", ())):
            path = _SPEC.child("loadBalancerSourceRanges").index(i)
            found += [f"{path}: {text}" for text in cidr_warnings(network)]
        if spec["type"] == "ExternalName" and external:
            found.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
        if spec["type"] != "ExternalName" and spec.get("externalName"):
            found.append('spec.externalName is ignored when spec.type is not "ExternalName"')
        if spec.get("trafficDistribution") == "PreferClose":
            found.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
        return found

    async def after_delete(self, obj: Json, index: Index) -> None:
        """Release addresses and ports, and delete the Endpoints, which a new Service of that name would inherit."""
        assert self._allocator is not None
        await self._allocator.release(obj, index)
        collection = index.collections.get("endpoints")
        metadata = obj["metadata"]
        entry = collection.newest(f"{metadata['namespace']}/{metadata['name']}") if collection is not None else None
        if collection is not None and entry is not None and not _is_held(entry.data):
            with suppress(Conflict):  # changed concurrently: still in use
                await index.delete(collection, entry.key, entry)

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        spec = obj.get("spec", {})
        found = {"spec.clusterIP": spec.get("clusterIP", ""), "spec.type": spec.get("type", "")}
        ports = node_ports(spec)
        if ports:
            found[NODE_PORTS] = ",".join(map(str, ports))
        return found


def _is_held(data: bytes) -> bool:
    return bool(msgspec.json.decode(data)["metadata"].get("finalizers"))


def _ip_warnings(path: Path, addresses: list[str]) -> list[str]:
    return [
        f"{path.index(i)}: {text}"
        for i, text in enumerate(ip_warning(address) for address in addresses)
        if text is not None
    ]
