"""Table rows of the node.k8s.io group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import Cells, age, name_of


def _runtime_class(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), obj.get("handler", ""), age(obj, now)]


CELLS: dict[tuple[str, str], Cells] = {
    ("node.k8s.io", "runtimeclasses"): _runtime_class,
}
