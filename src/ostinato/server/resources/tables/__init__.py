"""Table rows: what `kubectl get` shows of each built-in kind.

Each module here has `CELLS`: by group and resource, the function that makes the cells of one row, in the order of the
kind's columns. It takes the object as it is stored and the present time, for ages are told by the server. Kinds that
have none show their name and when they were created. The modules are loaded with the first Table that is asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ostinato.server.resources.strategy import Json
    from ostinato.server.resources.tables.cells import Cells

_MODULES = ("workloads", "network", "storage", "cluster", "access", "devices")


@cache
def _all_cells() -> dict[tuple[str, str], Cells]:
    found: dict[tuple[str, str], Cells] = {}
    for name in _MODULES:
        found |= import_module(f"{__name__}.{name}").CELLS
    return found


def cells_of(group: str, resource: str) -> Cells:
    """What makes the cells of a row of a resource."""
    from ostinato.server.resources.tables.cells import name_and_creation  # noqa: PLC0415

    return _all_cells().get((group, resource), name_and_creation)


def pod_conditions(pod: Json) -> list[Json]:
    """What the row of a Pod says about it."""
    from ostinato.server.resources.tables import pods  # noqa: PLC0415

    return pods.pod_conditions(pod)


def flow_schema_order(schema: Json) -> Any:
    """Where the row of a FlowSchema stands."""
    from ostinato.server.resources.tables import cluster  # noqa: PLC0415

    return cluster.flow_schema_order(schema)
