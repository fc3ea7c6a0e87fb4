"""The Table of a custom resource: its name, and the columns that its definition names by JSONPath."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from ostinato.api.json_path import JsonPath, JsonPathError
from ostinato.api.quoting import json_text, plain
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import since
from ostinato.world import Clock

_AGE = [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]


def columns_of(version: Mapping[str, Any]) -> list[Json]:
    """The column definitions of a version's Table."""
    found = [{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}]
    for raw in version.get("additionalPrinterColumns") or _AGE:
        described = raw.get("description")
        if described is None:
            described = (
                f"Custom resource definition column (in JSONPath format): {raw['jsonPath']}" if raw not in _AGE else ""
            )
        found.append(
            {
                "name": raw["name"],
                "type": raw["type"],
                "format": raw.get("format", ""),
                "description": described,
                "priority": raw.get("priority", 0),
            }
        )
    return found


def row_of(version: Mapping[str, Any], clock: Clock) -> Callable[[Json], list[Any]]:
    """What makes the cells of a row."""
    columns = [(JsonPath(raw["jsonPath"]), raw["type"]) for raw in version.get("additionalPrinterColumns") or _AGE]

    def row(obj: Json) -> list[Any]:
        now = clock.now()
        return [obj["metadata"].get("name", ""), *(_cell(path, kind, obj, now) for path, kind in columns)]

    return row


def _cell(path: JsonPath, kind: str, obj: Json, now: datetime) -> Any:
    try:
        found = path.find(obj)
    except JsonPathError:
        return None
    if not found:
        return None
    value = found[0]
    if kind == "string":
        return _text(value)
    match value:
        case bool():
            return value if kind == "boolean" else None
        case int() | float() if kind == "integer":
            return int(value)
        case int() | float() if kind == "number":
            return float(value) if isinstance(value, float) or not -(1 << 53) < value < 1 << 53 else value
        case str() if kind == "date":
            return _since(value, now)
        case _:
            return None


def _text(value: Any) -> str:
    if value is None:
        return "<no value>"
    return json_text(value) if isinstance(value, dict | list) else plain(value)


def _since(value: str, now: datetime) -> str:
    try:
        return since(value, now)
    except ValueError:
        return "<invalid>"
