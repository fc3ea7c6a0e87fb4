"""Rows of the kinds that a cluster is made of: Nodes, namespaces, their contents, Events, classes and priorities."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import (
    NONE,
    UNKNOWN,
    Cells,
    age,
    condition_status,
    first,
    name_and_age,
    name_of,
    since,
)

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def _node(obj: Json, now: datetime) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    ready = condition_status(obj, "Ready")
    words = ["Unknown" if ready is None else "Ready" if ready == "True" else "NotReady"]
    if spec.get("unschedulable"):
        words.append("SchedulingDisabled")
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        name_of(obj),
        ",".join(words),
        ",".join(_roles(obj["metadata"].get("labels") or {})) or NONE,
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _roles(labels: dict[str, str]) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return sorted((roles | {labels.get(_ROLE, "")}) - {""})


def _address(status: Json, kind: str) -> str:
    found = (a.get("address", "") for a in status.get("addresses") or () if a.get("type") == kind)
    return next(found, NONE)


def _namespace(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), (obj.get("status") or {}).get("phase", ""), age(obj, now)]


def _secret(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def _config_map(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def _quota(obj: Json, now: datetime) -> list[Any]:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        column = limits if resource.startswith("limits.") else requests
        column.append(f"{resource}: {used.get(resource, '0')}/{hard[resource]}")
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age(obj, now)]


def _component(obj: Json, now: datetime) -> list[Any]:  # noqa: ARG001
    for condition in obj.get("conditions") or ():
        if condition.get("type") == "Healthy":
            state = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            return [name_of(obj), state, condition.get("message", ""), condition.get("error", "")]
    return [name_of(obj), "Unknown", "", ""]


def _event(obj: Json, now: datetime) -> list[Any]:
    about, source, series = obj.get("involvedObject") or {}, obj.get("source") or {}, obj.get("series")
    began = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    if series is not None:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    else:
        last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else began
        count = obj.get("count") or 1
    kind, name = about.get("kind", "").lower(), about.get("name", "")
    component = first(source.get("component"), obj.get("reportingComponent"))
    instance = first(source.get("host"), obj.get("reportingInstance"))
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        obj.get("message", "").strip(),
        began,
        count,
        name_of(obj),
    ]


def _lease(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), (obj.get("spec") or {}).get("holderIdentity", ""), age(obj, now)]


def _priority_class(obj: Json, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value", 0),
        obj.get("globalDefault", False),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


def _runtime_class(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("handler", ""), age(obj, now)]


def _flow_schema(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    method = spec.get("distinguisherMethod")
    return [
        name_of(obj),
        (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
        spec.get("matchingPrecedence", 0),
        NONE if method is None else method.get("type", ""),
        age(obj, now),
        condition_status(obj, "Dangling") or "?",
    ]


def flow_schema_order(obj: Json) -> tuple[int, str]:
    """FlowSchemas are shown in the order in which they are tried."""
    return (obj.get("spec") or {}).get("matchingPrecedence", 0), name_of(obj)


def _priority_level(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    shares: list[Any] = [NONE if limited is None else limited.get("nominalConcurrencyShares", 0)]
    queues = (NONE if queuing is None else queuing.get(key, 0) for key in ("queues", "handSize", "queueLengthLimit"))
    return [name_of(obj), spec.get("type", ""), *shares, *queues, age(obj, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("", "nodes"): _node,
    ("", "namespaces"): _namespace,
    ("", "secrets"): _secret,
    ("", "configmaps"): _config_map,
    ("", "serviceaccounts"): name_and_age,
    ("", "resourcequotas"): _quota,
    ("", "componentstatuses"): _component,
    ("", "events"): _event,
    ("events.k8s.io", "events"): _event,
    ("coordination.k8s.io", "leases"): _lease,
    ("scheduling.k8s.io", "priorityclasses"): _priority_class,
    ("node.k8s.io", "runtimeclasses"): _runtime_class,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): _flow_schema,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): _priority_level,
}
