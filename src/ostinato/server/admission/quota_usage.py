"""What an object uses of a quota."""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.api.gvk import GroupResource
from ostinato.api.quantity import Quantity
from ostinato.server.resources.amounts import is_huge_pages, is_native
from ostinato.server.resources.pod_resources import pod_total, quality_of_service
from ostinato.server.resources.strategy import Json

Usage = dict[str, Quantity]
_ONE = Quantity.of(1)
_OLD_COUNTS = frozenset({"configmaps", "secrets", "resourcequotas", "replicationcontrollers"})
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_DEMANDED = frozenset(
    {"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
)  # what a quota makes every container say


def count_name(resource: GroupResource) -> str:
    return f"count/{resource.resource}" + (f".{resource.group}" if resource.group else "")


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
    storage = spec.get("resources", {}).get("requests", {}).get("storage")
    if name:
        used[f"{name}.storageclass.storage.k8s.io/persistentvolumeclaims"] = _ONE
    if storage is not None:
        used["requests.storage"] = Quantity.parse(storage)
        if name:
            used[f"{name}.storageclass.storage.k8s.io/requests.storage"] = Quantity.parse(storage)
    return used


def undemanded(pod: Json, hard: Iterable[str]) -> str:
    """What the containers of a Pod leave open though a quota limits it; "" if nothing."""
    demanded = _DEMANDED & set(hard)
    if not demanded or pod["spec"].get("resources"):
        return ""
    missing: dict[str, set[str]] = {}
    for kind in ("containers", "initContainers"):
        for container in pod["spec"].get(kind) or ():
            resources = container.get("resources", {})
            said = set(
                _compute(
                    dict.fromkeys(resources.get("requests", ()), _ONE), dict.fromkeys(resources.get("limits", ()), _ONE)
                )
            )
            for name in demanded - said:
                missing.setdefault(name, set()).add(container.get("name", ""))
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def in_scope(pod: Json, spec: Json) -> bool:
    """Whether a Pod is of the kind that a quota with scopes is about."""
    terms = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes", ())]
    terms += spec.get("scopeSelector", {}).get("matchExpressions", ())
    return all(_matches(pod, term) for term in terms)


def _matches(pod: Json, term: Json) -> bool:
    spec = pod["spec"]
    name = spec.get("priorityClassName", "")
    match term.get("scopeName"):
        case "Terminating":
            return "activeDeadlineSeconds" in spec
        case "NotTerminating":
            return "activeDeadlineSeconds" not in spec
        case "BestEffort":
            return quality_of_service(spec) == "BestEffort"
        case "NotBestEffort":
            return quality_of_service(spec) != "BestEffort"
        case "PriorityClass":
            match term.get("operator"):
                case "Exists":
                    return bool(name)
                case "DoesNotExist":
                    return not name
                case "In":
                    return bool(name) and name in term.get("values", ())
                case _:
                    return name not in term.get("values", ())
        case _:
            return False
