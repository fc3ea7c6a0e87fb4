"""Table rows of the policy group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import Cells, age, name_of, spec_and_status


def _disruption_budget(obj: Json, now: datetime) -> list[Any]:
    spec, status = spec_and_status(obj)
    return [
        name_of(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status.get("disruptionsAllowed", 0),
        age(obj, now),
    ]


CELLS: dict[tuple[str, str], Cells] = {
    ("policy", "poddisruptionbudgets"): _disruption_budget,
}
