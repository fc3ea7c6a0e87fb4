"""LimitRanger: applies the defaults and bounds of LimitRanges to Pods and claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ostinato.api.quantity import Quantity
from ostinato.server.admission.chain import Plugin, resources
from ostinato.server.admission.objects import forbidden, is_of
from ostinato.server.resources.core.pods.spec.resources import own_total
from ostinato.server.resources.lister import Lister
from ostinato.server.resources.strategy import Json

if TYPE_CHECKING:
    from ostinato.server.request.context import Context

_ANNOTATION = "kubernetes.io/limit-ranger"


class LimitRanger(Plugin):
    covers = resources("pods", "persistentvolumeclaims")
    mutates = validates = frozenset({"CREATE", "UPDATE"})
    judges_status_by_content = True  # it ignores them

    def __init__(self, ranges: Lister) -> None:
        self._ranges = ranges

    def _limits(self, context: Context) -> list[list[Json]]:
        """The limits of each LimitRange of the namespace."""
        entries = self._ranges.entries(context.route.namespace)
        return [msgspec.json.decode(entry.data)["spec"].get("limits") or [] for entry in entries]

    async def mutate(self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any) -> None:
        if not _is_for_pod(context, operation):
            return
        assert obj is not None
        for limits in self._limits(context):
            _default(obj, limits)

    async def validate(
        self, context: Context, operation: str, obj: Json | None, old: Json | None, options: Any
    ) -> None:
        pods = _is_for_pod(context, operation)
        claims = is_of(context, "", "persistentvolumeclaims")
        if not pods and not claims:
            return
        assert obj is not None
        if old is not None and old["metadata"].get("deletionTimestamp"):
            return
        for limits in self._limits(context):
            found = _problems_of_pod(obj["spec"], limits) if pods else _problems_of_claim(obj["spec"], limits)
            problems = list(dict.fromkeys(found))  # equal problems of several containers are reported once
            if problems:
                raise forbidden(context, obj, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")


def _is_for_pod(context: Context, operation: str) -> bool:
    """Whether a write sets the resources of a Pod."""
    if operation == "UPDATE" and context.route.subresource == "resize":
        return context.resource.gvr.resource == "pods" and not context.resource.gvr.group
    return operation == "CREATE" and is_of(context, "", "pods")


def _default(pod: Json, limits: list[Json]) -> None:
    wanted: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for limit in limits:
        if limit.get("type") == "Container":
            wanted["requests"].update(limit.get("defaultRequest", {}))
            wanted["limits"].update(limit.get("default", {}))
    message = []
    for kind, what in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(kind) or ():
            for side in ("requests", "limits"):
                resources = container.setdefault("resources", {})
                given = resources.get(side, {})
                missing = {name: amount for name, amount in wanted[side].items() if name not in given}
                if missing:
                    resources[side] = {**given, **missing}
                    names = ", ".join(sorted(missing))
                    message.append(f"{names} {side.removesuffix('s')} for {what} {container.get('name', '')}")
    if message:
        annotations = pod["metadata"].get("annotations", {})
        pod["metadata"]["annotations"] = {**annotations, _ANNOTATION: "LimitRanger plugin set: " + "; ".join(message)}


def _problems_of_pod(spec: Json, limits: list[Json]) -> Iterator[str]:
    for limit in limits:
        if limit.get("type") == "Container":
            for kind in ("containers", "initContainers"):
                for container in spec.get(kind) or ():
                    resources = container.get("resources", {})
                    requests, most = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
                    yield from _problems(limit, requests, most)
        elif limit.get("type") == "Pod":
            yield from _problems(limit, own_total(spec, "requests"), own_total(spec, "limits"))


def _problems_of_claim(spec: Json, limits: list[Json]) -> Iterator[str]:
    requests = _amounts(spec.get("resources", {}).get("requests"))
    for limit in limits:
        if limit.get("type") == "PersistentVolumeClaim":
            for name, enforced in _amounts(limit.get("min")).items():
                yield from _too_little("PersistentVolumeClaim", name, enforced, requests, {})
            for name, enforced in _amounts(limit.get("max")).items():
                what = f"maximum {name} usage per PersistentVolumeClaim is {enforced}"
                if name not in requests:
                    yield f"{what}.  No request is specified"
                elif requests[name] > enforced:
                    yield f"{what}, but request is {requests[name]}"


Amounts = dict[str, Quantity]


def _amounts(given: dict[str, str] | None) -> Amounts:
    return {name: Quantity.parse(text) for name, text in (given or {}).items()}


def _problems(limit: Json, requests: Amounts, limits: Amounts) -> Iterator[str]:
    kind = limit["type"]
    for name, enforced in _amounts(limit.get("min")).items():
        yield from _too_little(kind, name, enforced, requests, limits)
    for name, enforced in _amounts(limit.get("max")).items():
        what = f"maximum {name} usage per {kind} is {enforced}"
        if name not in limits:
            yield f"{what}.  No limit is specified"
        elif limits[name] > enforced:
            yield f"{what}, but limit is {limits[name]}"
        elif name in requests and requests[name] > enforced:
            yield f"{what}, but request is {requests[name]}"
    for name, enforced in _amounts(limit.get("maxLimitRequestRatio")).items():
        what = f"{name} max limit to request ratio per {kind} is {enforced}, but"
        if not requests.get(name):
            yield f"{what} no request is specified or request is 0"
        elif not limits.get(name):
            yield f"{what} no limit is specified or limit is 0"
        else:
            ratio = limits[name].milli_value() / requests[name].milli_value()
            if ratio * 1000 > enforced.milli_value():
                yield f"{what} provided ratio is {ratio:f}"


def _too_little(kind: str, name: str, enforced: Quantity, requests: Amounts, limits: Amounts) -> Iterator[str]:
    what = f"minimum {name} usage per {kind} is {enforced}"
    if name not in requests:
        yield f"{what}.  No request is specified"
    elif requests[name] < enforced:
        yield f"{what}, but request is {requests[name]}"
    elif name in limits and limits[name] < enforced:
        yield f"{what}, but limit is {limits[name]}"
