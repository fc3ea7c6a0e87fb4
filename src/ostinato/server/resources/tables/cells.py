"""Cells that the rows of many kinds share: ages, selectors, counts, short lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from ostinato.api.selectors import labels
from ostinato.api.time import Time
from ostinato.server.resources.strategy import Json

# The cells of a row: (object, current time) -> one cell per column.
Cells = Callable[[Json, datetime], list[Any]]

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"

_SECOND = timedelta(seconds=1)


def name_of(obj: Json) -> str:
    name: str = obj["metadata"].get("name", "")
    return name


def age(obj: Json, now: datetime) -> str:
    """The age of the object."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def since(text: str | None, now: datetime) -> str:
    """The time since a moment, in kubectl's format."""
    return human(now - Time.parse(text)) if text else UNKNOWN


def human(length: timedelta) -> str:
    """A duration in at most two units, like duration.HumanDuration."""
    seconds = length // _SECOND if length >= timedelta() else -(-length // _SECOND)
    if seconds < -1:
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{days}d"
    if hours < 24 * 365 * 8:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def name_and_age(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), age(obj, now)]


def name_and_creation(obj: Json, now: datetime) -> list[Any]:  # noqa: ARG001 - signature of all cell functions
    """The default row: name and creation time."""
    return [name_of(obj), obj["metadata"].get("creationTimestamp", "")]


def label_text(values: Mapping[str, str] | None) -> str:
    """Labels as `key=value,key=value`, sorted."""
    return ",".join(f"{key}={value}" for key, value in sorted((values or {}).items())) or NONE


def selector_text(selector: Mapping[str, Any] | None, otherwise: str = NONE) -> str:
    """A label selector as text; `otherwise` if it is absent or invalid."""
    try:
        return str(labels.from_label_selector(selector)) or otherwise
    except ValueError:
        return "<error>"


def some(items: Sequence[str], shown: int = 3, otherwise: str = UNSET) -> str:
    """The first few items, and how many more there are."""
    text = ",".join(items[:shown])
    if len(items) > shown:
        return f"{text} + {len(items) - shown} more..."
    return text or otherwise


def container_cells(template: Json) -> list[Any]:
    """The names and the images of a Pod template's containers."""
    containers = (template.get("spec") or {}).get("containers") or ()
    return [",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)]


def condition_status(obj: Json, kind: str) -> str | None:
    """The status of the first condition of a type; None if absent."""
    for condition in (obj.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            return str(condition.get("status", ""))
    return None


def first(*texts: str | None) -> str:
    """The first text that is not empty."""
    return next((text for text in texts if text), "")


def joined(items: Iterable[Any] | None, by: str = ",") -> str:
    return by.join(str(item) for item in items or ())


def load_balancer_addresses(obj: Json) -> list[str]:
    """The addresses in `status.loadBalancer`, sorted."""
    points = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return sorted({point.get("ip") or point.get("hostname") or "" for point in points} - {""})


def spec_and_status(obj: Json) -> tuple[Json, Json]:
    return obj.get("spec") or {}, obj.get("status") or {}


def replica_counts(obj: Json, now: datetime) -> list[Any]:
    """Name, desired, current and ready replicas, age."""
    spec, status = spec_and_status(obj)
    return [
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
    ]
