"""Path items: what OpenAPI 2 and 3 say alike of a path; each brings its own way to write parameters and operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ostinato.server.publish.openapi.operations import Operation, Path

Json = dict[str, Any]

DESCRIPTIONS: Final = {"200": "OK", "201": "Created", "202": "Accepted", "401": "Unauthorized"}


def write_path(path: Path, parameter: Callable[[str, str], Json], operation: Callable[[Path, Operation], Json]) -> Json:
    """What can be done at one path. A parameter is written from its name and its place: "path" or "query"."""
    item: Json = {each.method: operation(path, each) for each in path.operations}
    parameters = [{**parameter(name, "path"), "required": True} for name in path.parameters]
    if path.pretty:
        parameters.append(parameter("pretty", "query"))
    if parameters:
        item["parameters"] = parameters
    return item
