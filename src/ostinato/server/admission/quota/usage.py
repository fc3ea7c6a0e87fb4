"""Quota usage of an object."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.api.gvk import GroupResource
from ostinato.api.quantity import Quantity
from ostinato.server.resources.core.pods.spec.resources import pod_total
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.quantities import is_huge_pages, is_native

Usage = dict[str, Quantity]
_ONE = Quantity.of(1)
_OF_CLASS = ".storageclass.storage.k8s.io/"
_OLD_COUNTS = frozenset({"configmaps", "secrets", "resourcequotas", "replicationcontrollers"})
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_CONSTRAINED = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)  # constraints: must be set in every container


def count_name(resource: GroupResource) -> str:
    return f"count/{resource.resource}" + (f".{resource.group}" if resource.group else "")


def limited_names(resource: GroupResource, hard: Iterable[str], requested: Usage) -> list[str]:
    """The names in `hard` that objects of a resource can use."""
    match (resource.group, resource.resource):
        case ("", "pods"):
            return [name for name in hard if name in requested or name == "pods" or _is_of_pods(name)]
        case ("", "persistentvolumeclaims"):
            return [name for name in hard if name in requested or name == "requests.storage" or _OF_CLASS in name]
        case _:
            return [name for name in hard if name in requested]


def _is_of_pods(name: str) -> bool:
    if name == "requests.storage":
        return False
    return name in _COMPUTE or is_huge_pages(name) or name.startswith(("requests.", "limits."))


def usage(resource: GroupResource, obj: Json) -> Usage:
    used = {count_name(resource): _ONE}
    if resource.group:
        return used
    match resource.resource:
        case "pods":
            used |= _pod_usage(obj)
        case "services":
            used |= _service_usage(obj["spec"])
        case "persistentvolumeclaims":
            used |= _claim_usage(obj)
        case name if name in _OLD_COUNTS:
            used[name] = _ONE
    return used


def _pod_usage(pod: Json) -> Usage:
    if pod.get("status", {}).get("phase") in ("Failed", "Succeeded"):
        return {}
    return {"pods": _ONE, **_compute(pod_total(pod["spec"], "requests"), pod_total(pod["spec"], "limits"))}


def _compute(requests: Usage, limits: Usage) -> Usage:
    used: Usage = {}
    for name in _COMPUTE:
        if name in requests:
            used[name] = used[f"requests.{name}"] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if is_huge_pages(name):
            used[name] = used[f"requests.{name}"] = amount
        elif not is_native(name):
            used[f"requests.{name}"] = amount
    return used


def _service_usage(spec: Json) -> Usage:
    ports = spec.get("ports", [])
    used = {"services": _ONE, "services.nodeports": Quantity(), "services.loadbalancers": Quantity()}
    if spec["type"] == "NodePort":
        used["services.nodeports"] = Quantity.of(len(ports))
    elif spec["type"] == "LoadBalancer":
        allocated = spec.get("allocateLoadBalancerNodePorts", True)
        counted = ports if allocated else [port for port in ports if port.get("nodePort")]
        used["services.nodeports"] = Quantity.of(len(counted))
        used["services.loadbalancers"] = _ONE
    return used


def _claim_usage(claim: Json) -> Usage:
    used = {"persistentvolumeclaims": _ONE}
    spec = claim["spec"]
    annotations = claim["metadata"].get("annotations", {})
    name = annotations.get("volume.beta.kubernetes.io/storage-class") or spec.get("storageClassName")
    if name:
        used[f"{name}{_OF_CLASS}persistentvolumeclaims"] = _ONE
    requested = spec.get("resources", {}).get("requests", {}).get("storage")
    if requested is not None:
        allocated = claim.get("status", {}).get("allocatedResources", {}).get("storage", "0")
        storage = max(Quantity.parse(requested), Quantity.parse(allocated)).round_up(0)
        used["requests.storage"] = storage
        if name:
            used[f"{name}{_OF_CLASS}requests.storage"] = storage
    return used


def missing_constraints(pod: Json, hard: Iterable[str]) -> str:
    """The constraints that a Pod's containers do not set though a quota limits them, "" if none."""
    constrained = _CONSTRAINED & set(hard)
    if not constrained or pod["spec"].get("resources"):
        return ""
    missing: dict[str, set[str]] = {}
    for kind in ("containers", "initContainers"):
        for container in pod["spec"].get(kind) or ():
            resources = container.get("resources", {})
            specified = set(
                _compute(
                    dict.fromkeys(resources.get("requests", ()), _ONE), dict.fromkeys(resources.get("limits", ()), _ONE)
                )
            )
            for name in constrained - specified:
                missing.setdefault(name, set()).add(container.get("name", ""))
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
