"""Table rows of the flowcontrol.apiserver.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import NONE, Cells, age, condition_status, name_of


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


def _priority_level(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    limited = spec.get("limited")
    queuing = ((limited or {}).get("limitResponse") or {}).get("queuing")
    shares: list[Any] = [NONE if limited is None else limited.get("nominalConcurrencyShares", 0)]
    queues = (NONE if queuing is None else queuing.get(key, 0) for key in ("queues", "handSize", "queueLengthLimit"))
    return [name_of(obj), spec.get("type", ""), *shares, *queues, age(obj, now)]


def flow_schema_order(obj: Json) -> tuple[int, str]:
    """Sort FlowSchemas in matching order."""
    return (obj.get("spec") or {}).get("matchingPrecedence", 0), name_of(obj)


CELLS: dict[tuple[str, str], Cells] = {
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): _flow_schema,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): _priority_level,
}
