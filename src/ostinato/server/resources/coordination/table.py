"""Table rows of the coordination.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import Cells, age, name_of


def _lease(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), (obj.get("spec") or {}).get("holderIdentity", ""), age(obj, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("coordination.k8s.io", "leases"): _lease,
}
