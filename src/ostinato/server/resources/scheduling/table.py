"""Table rows of the scheduling.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import Cells, age, name_of


def _priority_class(obj: Json, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        obj.get("value", 0),
        obj.get("globalDefault", False),
        age(obj, now),
        obj.get("preemptionPolicy", ""),
    ]


CELLS: dict[tuple[str, str], Cells] = {
    ("scheduling.k8s.io", "priorityclasses"): _priority_class,
}
