"""Table rows of the core group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.core.pods import table as pods
from ostinato.server.resources.core.services import table as services
from ostinato.server.resources.core.storage import table as storage
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import (
    NONE,
    UNKNOWN,
    Cells,
    age,
    condition_status,
    container_cells,
    label_text,
    name_and_age,
    name_of,
    replica_counts,
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


def _pod_template(obj: Json, now: datetime) -> list[Any]:  # noqa: ARG001
    template = obj.get("template") or {}
    return [name_of(obj), *container_cells(template), label_text((template.get("metadata") or {}).get("labels"))]


def _replication_controller(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [*replica_counts(obj, now), *container_cells(spec.get("template") or {}), label_text(spec.get("selector"))]


CELLS: dict[tuple[str, str], Cells] = {
    **pods.CELLS,
    **services.CELLS,
    **storage.CELLS,
    ("", "nodes"): _node,
    ("", "namespaces"): _namespace,
    ("", "secrets"): _secret,
    ("", "configmaps"): _config_map,
    ("", "serviceaccounts"): name_and_age,
    ("", "resourcequotas"): _quota,
    ("", "componentstatuses"): _component,
    ("", "podtemplates"): _pod_template,
    ("", "replicationcontrollers"): _replication_controller,
}
