"""Table rows: the columns of `kubectl get` for each built-in kind.

The `table` module of a group's package has `CELLS`: by group and resource, the function that returns the cells of a
row, in the order of the kind's columns.

- The function takes the stored object and the current time: the server renders ages.
- A kind without an entry shows its name and its creation time.
- A `table` module is loaded with the first Table of its group.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ostinato.server.resources.builtin import PACKAGES

if TYPE_CHECKING:
    from ostinato.server.resources.strategy import Json
    from ostinato.server.resources.tables.cells import Cells

_WITHOUT_ROWS = frozenset({"apiextensions"})  # packages without a `table` module


@cache
def _cells(group: str) -> dict[tuple[str, str], Cells]:
    found: dict[tuple[str, str], Cells] = {}
    for package in PACKAGES.get(group, ()):
        if package not in _WITHOUT_ROWS:
            found |= import_module(f"ostinato.server.resources.{package}.table").CELLS
    return found


def cells_of(group: str, resource: str) -> Cells:
    """Return the function that returns the cells of a resource's rows."""
    from ostinato.server.resources.tables.cells import name_and_creation  # noqa: PLC0415

    return _cells(group).get((group, resource), name_and_creation)


def pod_conditions(pod: Json) -> list[Json]:
    """Return the conditions of a Pod's row."""
    from ostinato.server.resources.core.pods import table  # noqa: PLC0415

    return table.pod_conditions(pod)


def flow_schema_order(schema: Json) -> Any:
    """Return the sort key of a FlowSchema's row."""
    from ostinato.server.resources.flowcontrol import table  # noqa: PLC0415

    return table.flow_schema_order(schema)
