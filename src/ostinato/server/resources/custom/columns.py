"""Table of a custom resource: its name and its additionalPrinterColumns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ostinato.api.text.go_format import json_text, plain
from ostinato.api.text.json_path import JsonPath, JsonPathError
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import since

_AGE = [{"name": "Age", "type": "date", "description": "", "jsonPath": ".metadata.creationTimestamp"}]


class Columns:
    """The columns of a version, up to the first whose JSONPath cannot be parsed."""

    def __init__(self, version: Mapping[str, Any]) -> None:
        self.definitions: list[Json] = [
            {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}
        ]
        self._paths: list[tuple[JsonPath, str]] = []
        for raw in version.get("additionalPrinterColumns") or _AGE:
            try:
                path = JsonPath(raw["jsonPath"])
            except JsonPathError:
                break
            self._paths.append((path, raw["type"]))
            self.definitions.append(_definition(raw))

    def row(self, obj: Json, now: datetime) -> list[Any]:
        """The cells of a row."""
        return [obj["metadata"].get("name", ""), *(_cell(path, kind, obj, now) for path, kind in self._paths)]


def _definition(raw: Mapping[str, Any]) -> Json:
    described = raw.get("description")
    if described is None:
        described = f"Custom resource definition column (in JSONPath format): {raw['jsonPath']}"
    return {
        "name": raw["name"],
        "type": raw["type"],
        "format": raw.get("format", ""),
        "description": described,
        "priority": raw.get("priority", 0),
    }


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
            return int(value) if -(1 << 63) <= value < 1 << 63 else -(1 << 63)
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
