"""Table rows of the apiregistration.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import Cells, age, name_of


def _api_service(obj: Json, now: datetime) -> list[Any]:
    service, shown, available = (obj.get("spec") or {}).get("service"), "Local", "Unknown"
    if service is not None:
        shown = f"{service.get('namespace', '')}/{service.get('name', '')}"
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Available":
            available = condition.get("status", "")
            if available != "True" and condition.get("reason"):
                available = f"{available} ({condition['reason']})"
            break
    return [name_of(obj), shown, available, age(obj, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("apiregistration.k8s.io", "apiservices"): _api_service,
}
