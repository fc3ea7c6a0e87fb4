"""Descriptors: how a console presents the fields of spec and status, from their schema."""

from __future__ import annotations

import re
from typing import Any, Final

Json = dict[str, Any]

_UI: Final = "urn:alm:descriptor:com.tectonic.ui"
_CONDITIONS: Final = "urn:alm:descriptor:io.kubernetes.conditions"


def descriptors(schema: Json, part: str) -> list[Json]:
    """Return the descriptors of the fields of `spec` or `status`."""
    fields = schema.get("properties", {}).get(part, {}).get("properties", {})
    return [_descriptor(name, field, part) for name, field in sorted(fields.items())]


def spaced(name: str) -> str:
    """Return a name as words: `minReadySeconds` and `min-ready-seconds` are `Min Ready Seconds`."""
    words = re.findall(r"[A-Z]{2,}s?(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]", name)
    return " ".join(word[0].upper() + word[1:] for word in words) or name


def _descriptor(name: str, field: Json, part: str) -> Json:
    title = spaced(name)
    found: Json = {"path": name, "displayName": title, "description": field.get("description") or title}
    hints = _hints(name, field, part)
    return {**found, "x-descriptors": hints} if hints else found


def _hints(name: str, field: Json, part: str) -> list[str]:
    kind = str(field.get("type"))
    if part == "status":
        return [_CONDITIONS] if name == "conditions" else [f"{_UI}:text"] if kind == "string" else []
    if field.get("enum"):
        return [f"{_UI}:select:{value}" for value in field["enum"] if isinstance(value, str)]
    if kind == "integer":
        return [f"{_UI}:podCount" if name in ("replicas", "size") else f"{_UI}:number"]
    return {"boolean": [f"{_UI}:booleanSwitch"], "string": [f"{_UI}:text"], "number": [f"{_UI}:number"]}.get(kind, [])
