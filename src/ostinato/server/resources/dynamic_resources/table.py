"""Table rows of the resource.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import Cells, age, name_and_age, name_of


def _claim(obj: Json, now: datetime) -> list[Any]:
    status, dying = obj.get("status") or {}, obj["metadata"].get("deletionTimestamp")
    states = ["deleted"] if dying else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not dying:
        states.append("pending")
    return [name_of(obj), ",".join(states), age(obj, now)]


def _slice(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    pool = (spec.get("pool") or {}).get("name", "")
    return [name_of(obj), spec.get("nodeName", ""), spec.get("driver", ""), pool, age(obj, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("resource.k8s.io", "deviceclasses"): name_and_age,
    ("resource.k8s.io", "resourceclaimtemplates"): name_and_age,
    ("resource.k8s.io", "resourceclaims"): _claim,
    ("resource.k8s.io", "resourceslices"): _slice,
}
