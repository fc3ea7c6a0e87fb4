"""Pod resources: defaults, totals and the QoS class."""

from __future__ import annotations

from ostinato.api.quantity import Quantity
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.quantities import is_huge_pages, is_overcommittable

Amounts = dict[str, Quantity]
_COMPUTE = ("cpu", "memory")


def default_pod_resources(spec: Json) -> None:
    """Default requests to limits, for each container and for Pod-level resources."""
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or ():
            limits = container.get("resources", {}).get("limits")
            if limits:
                resources = container["resources"]
                resources["requests"] = {**limits, **resources.get("requests", {})}
    resources = spec.get("resources")
    if resources is None:
        return
    if resources.get("limits") or resources.get("requests"):
        _default_huge_page_limits(resources, spec)
    if resources.get("limits"):
        _default_requests(resources, spec)


def _default_huge_page_limits(resources: Json, spec: Json) -> None:
    limits = dict(resources.get("limits", {}))
    for name, amount in total(spec, "limits").items():
        if is_huge_pages(name) and name not in resources.get("requests", {}):
            limits.setdefault(name, str(amount))
    if limits:
        resources["limits"] = limits


def _default_requests(resources: Json, spec: Json) -> None:
    requests = dict(resources.get("requests", {}))
    for name, amount in total(spec, "requests").items():
        if _is_of_pods(name) and is_overcommittable(name):
            requests.setdefault(name, str(amount))
    for name, text in resources["limits"].items():
        if _is_of_pods(name):
            requests.setdefault(name, text)
    if requests:
        resources["requests"] = requests


def _is_of_pods(name: str) -> bool:
    return name in _COMPUTE or is_huge_pages(name)


def total(spec: Json, side: str) -> Amounts:
    """The total of all containers: the sum of those that run together, or the maximum while init containers run."""
    running: Amounts = {}
    for container in spec.get("containers") or ():
        _add(running, _amounts(container, side))
    sidecars: Amounts = {}
    most: Amounts = {}  # maximum while init containers run, each beside the sidecars started before it
    for container in spec.get("initContainers", ()):
        amounts = _amounts(container, side)
        if container.get("restartPolicy") == "Always":
            _add(running, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            amounts = dict(amounts)
            _add(amounts, sidecars)
        for name, amount in amounts.items():
            most[name] = max(most.get(name, amount), amount)
    for name, amount in most.items():
        running[name] = max(running.get(name, amount), amount)
    return running


def own_total(spec: Json, side: str) -> Amounts:
    """The Pod-level resources, or else the total of the containers."""
    own = spec.get("resources", {}).get(side, {})
    return total(spec, side) | {name: Quantity.parse(text) for name, text in own.items() if _is_of_pods(name)}


def pod_total(spec: Json, side: str) -> Amounts:
    """The resources of a Pod with its overhead."""
    amounts = own_total(spec, side)
    for name, text in spec.get("overhead", {}).items():
        if side == "requests" or name in amounts:
            amounts[name] = amounts.get(name, Quantity()) + Quantity.parse(text)
    return amounts


def _amounts(container: Json, side: str) -> Amounts:
    return {name: Quantity.parse(text) for name, text in container.get("resources", {}).get(side, {}).items()}


def _add(to: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        to[name] = to[name] + amount if name in to else amount


def quality_of_service(spec: Json) -> str:
    """The QoS class of a Pod: Guaranteed, Burstable or BestEffort."""
    own = spec.get("resources")
    if own is not None:
        holders = [own]
        guaranteed = not own.get("limits") or _limits_compute(own)
    else:
        holders = [c.get("resources", {}) for kind in ("containers", "initContainers") for c in spec.get(kind) or ()]
        guaranteed = all(map(_limits_compute, holders))
    requests, limits = _compute(holders, "requests"), _compute(holders, "limits")
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _limits_compute(resources: Json) -> bool:
    limits = resources.get("limits", {})
    return all(name in limits and Quantity.parse(limits[name]).sign > 0 for name in _COMPUTE)


def _compute(holders: list[Json], side: str) -> Amounts:
    sums: Amounts = {}
    for resources in holders:
        given = resources.get(side, {})
        amounts = {name: Quantity.parse(given[name]) for name in _COMPUTE if name in given}
        _add(sums, {name: amount for name, amount in amounts.items() if amount.sign > 0})
    return sums
