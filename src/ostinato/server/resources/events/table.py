"""Table rows of Events."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import Cells, first, name_of, since


def _event(obj: Json, now: datetime) -> list[Any]:
    about, source, series = obj.get("involvedObject") or {}, obj.get("source") or {}, obj.get("series")
    began = since(obj.get("firstTimestamp") or obj.get("eventTime"), now)
    if series is not None:
        last, count = since(series.get("lastObservedTime"), now), series.get("count", 0)
    else:
        last = since(obj["lastTimestamp"], now) if obj.get("lastTimestamp") else began
        count = obj.get("count") or 1
    kind, name = about.get("kind", "").lower(), about.get("name", "")
    component = first(source.get("component"), obj.get("reportingComponent"))
    instance = first(source.get("host"), obj.get("reportingInstance"))
    return [
        last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{name}" if name else kind,
        about.get("fieldPath", ""),
        f"{component}, {instance}" if instance else component,
        obj.get("message", "").strip(),
        began,
        count,
        name_of(obj),
    ]


CELLS: dict[tuple[str, str], Cells] = {
    ("", "events"): _event,
    ("events.k8s.io", "events"): _event,
}
