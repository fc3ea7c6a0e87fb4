"""Path items: the part that OpenAPI v2 and v3 share; the caller writes parameters and operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.server.publish.openapi.operations import Operation, Path

Json = dict[str, Any]

DESCRIPTIONS: Final = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}


def write_path(path: Path, parameter: Callable[[str, str], Json], operation: Callable[[Path, Operation], Json]) -> Json:
    """Write the item of one path. A parameter is written from its name and its location: "path" or "query"."""
    item: Json = {each.method: operation(path, each) for each in path.operations}
    parameters = [{**parameter(name, "path"), "required": True} for name in path.parameters]
    if path.pretty:
        parameters.append(parameter("pretty", "query"))
    if parameters:
        item["parameters"] = parameters
    return item


def complete_operation(written: Json, operation: Operation, responses: Json) -> Json:
    """Add the responses, and the action and kind that kubectl looks operations up by."""
    written["responses"] = {**responses, "401": {"description": DESCRIPTIONS["401"]}}
    if operation.kind is not None:
        kind = operation.kind
        written["x-kubernetes-action"] = operation.action
        written["x-kubernetes-group-version-kind"] = {"group": kind.group, "kind": kind.kind, "version": kind.version}
    return written
