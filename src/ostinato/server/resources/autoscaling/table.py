"""Table rows of the autoscaling group."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import NONE, UNKNOWN, UNSET, Cells, age, name_of, spec_and_status


def _autoscaler(obj: Json, now: datetime) -> list[Any]:
    spec, status = spec_and_status(obj)
    target = spec.get("scaleTargetRef") or {}
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        str(spec.get("minReplicas", UNSET)),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(specs: Any, statuses: Any) -> str:
    """The first two metrics, each with its current value and target."""
    if not specs:
        return NONE
    texts = [_metric(spec, statuses[i] if i < len(statuses) else {}) for i, spec in enumerate(specs)]
    shown = ", ".join(texts[:2])
    return f"{shown} + {len(texts) - 2} more..." if len(texts) > 2 else shown


_METRIC_FIELDS = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(spec: Json, status: Json) -> str:
    field = _METRIC_FIELDS.get(spec.get("type", ""))
    if field is None:
        return "<unknown type>"
    source, found = spec.get(field) or {}, status.get(field)
    target, current = source.get("target") or {}, (found or {}).get("current") or {}
    if field in ("resource", "containerResource"):
        name = source.get("name", "")
        if "averageValue" in target:
            now = UNKNOWN if found is None else current.get("averageValue", "<nil>")
            return f"{name}: {now}/{target['averageValue']}"
        now, wanted = (
            f"{part['averageUtilization']}%" if "averageUtilization" in part else otherwise
            for part, otherwise in ((current, UNKNOWN), (target, "<auto>"))
        )
        return f"{name}: {now}/{wanted}"
    if field == "pods":
        now = UNKNOWN if found is None else current.get("averageValue", "<nil>")
        return f"{now}/{target.get('averageValue', '<nil>')}"
    if "averageValue" in target:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    now = UNKNOWN if found is None else current.get("value", "<nil>")
    return f"{now}/{target.get('value', '<nil>')}"


CELLS: dict[tuple[str, str], Cells] = {
    ("autoscaling", "horizontalpodautoscalers"): _autoscaler,
}
