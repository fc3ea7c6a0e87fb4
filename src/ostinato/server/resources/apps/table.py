"""Table rows of the apps group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.api.gvk import GroupVersion
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import (
    NONE,
    Cells,
    age,
    container_cells,
    label_text,
    name_of,
    replica_counts,
    selector_text,
    spec_and_status,
)


def _replica_set(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        *replica_counts(obj, now),
        *container_cells(spec.get("template") or {}),
        selector_text(spec.get("selector")),
    ]


def _deployment(obj: Json, now: datetime) -> list[Any]:
    spec, status = spec_and_status(obj)
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *container_cells(spec.get("template") or {}),
        selector_text(spec.get("selector"), ""),
    ]


def _stateful_set(obj: Json, now: datetime) -> list[Any]:
    spec, status = spec_and_status(obj)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(obj), ready, age(obj, now), *container_cells(spec.get("template") or {})]


def _daemon_set(obj: Json, now: datetime) -> list[Any]:
    spec, status = spec_and_status(obj)
    template = spec.get("template") or {}
    return [
        name_of(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        label_text((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *container_cells(template),
        selector_text(spec.get("selector")),
    ]


def _controller_revision(obj: Json, now: datetime) -> list[Any]:
    controller = NONE
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            kind = GroupVersion.parse(owner["apiVersion"]).kind(owner["kind"]).group_kind
            controller = f"{str(kind).lower()}/{owner['name']}"
            break
    return [name_of(obj), controller, obj.get("revision", 0), age(obj, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("apps", "statefulsets"): _stateful_set,
    ("apps", "daemonsets"): _daemon_set,
    ("apps", "controllerrevisions"): _controller_revision,
}
