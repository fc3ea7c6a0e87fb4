"""Strategies of Events: the core group and events.k8s.io, over one storage.

Events are stored as v1. events.k8s.io has other names for some fields and stricter validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json, NameRule, Strategy
from ostinato.server.resources.validation.checks import checked, unchanged
from ostinato.server.resources.validation.internal_values import as_internal

_NAMES = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _NAMES.items()}
_ABOUT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_LONGEST = 128
_LONGEST_NOTE = 1024
_FIXED = ("involvedObject", "reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type")
_FIXED_TOO = ("eventTime", "action", "related", "reportingComponent", "reportingInstance")


def from_core(obj: Json) -> Json:
    """Convert an Event of the core group to events.k8s.io. Times and sources are present even if unset."""
    new = {_NAMES.get(key, key): value for key, value in obj.items()}
    for key in ("reportingController", "reportingInstance"):
        if not new.get(key):
            new.pop(key, None)
    return new


def to_core(obj: Json) -> Json:
    """Convert an Event of events.k8s.io to the core group."""
    new = {_CORE_NAMES.get(key, key): value for key, value in obj.items()}
    new.setdefault("reportingComponent", "")
    new.setdefault("reportingInstance", "")
    return new


class Event(Strategy):
    """Strategy of v1 Events."""

    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_path_segment)
    allow_create_on_update = True
    garbage_collected = False
    selectable = (*(f"involvedObject.{field}" for field in _ABOUT), "reason", "reportingComponent", "source", "type")

    def validate(self, obj: Json) -> list[FieldError]:
        return _common_errors(obj, "reportingComponent")

    def fields(self, obj: Mapping[str, Any]) -> dict[str, str]:
        about = obj.get("involvedObject") or {}
        reporter = obj.get("reportingComponent", "")
        return {
            **{f"involvedObject.{field}": about.get(field, "") for field in _ABOUT},
            "reason": obj.get("reason", ""),
            "reportingComponent": reporter,
            "source": (obj.get("source") or {}).get("component") or reporter,
            "type": obj.get("type", ""),
        }


class EventsEvent(Event):
    """Strategy of events.k8s.io Events."""

    name_rule: ClassVar[NameRule] = staticmethod(names.name_is_dns_subdomain)
    selectable = ("reason", "type")
    field_aliases = {
        **{f"regarding.{field}": f"involvedObject.{field}" for field in _ABOUT},
        "reportingController": "reportingComponent",
    }

    def validate(self, obj: Json) -> list[FieldError]:
        event = to_core(obj)
        errors = _common_errors(event, "reportingController") + _series_errors(event)
        if not event.get("eventTime"):
            errors.append(FieldError.required(Path("eventTime")))
        if event.get("type") not in ("Normal", "Warning"):
            errors.append(FieldError.invalid(Path("type"), "", f"has invalid value: {event.get('type', '')}"))
        source = event.get("source") or {}
        old = {**event, "source": source.get("component") or source.get("host")}
        return errors + [
            FieldError.invalid(Path(field), "", "needs to be unset")
            for field in ("firstTimestamp", "lastTimestamp", "count", "source")
            if old.get(field)
        ]

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        event, before = to_core(new), to_core(old)
        errors = _common_errors(event, "reportingController")
        if event.get("series") != before.get("series"):
            errors += _series_errors(event)
        shown, was = as_internal("core.v1.Event", event), as_internal("core.v1.Event", before)
        for field in (*_FIXED, *_FIXED_TOO):
            name = "reportingController" if field == "reportingComponent" else field
            inner = f"{name[0].upper()}{name[1:]}"
            errors += unchanged(shown[inner], was[inner], Path(name))
        return errors


def _series_errors(event: Json) -> list[FieldError]:
    series = event.get("series")
    if series is None:
        return []
    errors = []
    if series.get("count", 0) < 2:
        errors.append(FieldError.invalid(Path("series.count"), "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        errors.append(FieldError.required(Path("series.lastObservedTime")))
    return errors


def _common_errors(event: Json, reporter: str) -> list[FieldError]:
    namespace = event["metadata"].get("namespace", "")
    about = (event.get("involvedObject") or {}).get("namespace", "")
    elsewhere = FieldError.invalid(Path("involvedObject", "namespace"), about, "does not match event.namespace")
    errors: list[FieldError] = []
    if not event.get("eventTime"):
        if (about or "default") != namespace:
            errors.append(elsewhere)
    else:
        if not about and namespace not in ("default", "kube-system"):
            errors.append(elsewhere)
        errors += _reporting_errors(event, reporter)
    return errors + checked(names.is_dns1123_subdomain, namespace, Path("namespace"))


def _reporting_errors(event: Json, reporter: str) -> list[FieldError]:
    component = event.get("reportingComponent", "")
    errors = [] if component else [FieldError.required(Path(reporter))]
    errors += checked(names.is_qualified_name, component, Path(reporter))
    for field in ("reportingInstance", "action", "reason"):
        value = event.get(field, "")
        if not value:
            errors.append(FieldError.required(Path(field)))
        errors += _length_errors(value, field, _LONGEST)
    return errors + _length_errors(event.get("message", ""), "message", _LONGEST_NOTE)


def _length_errors(value: str, field: str, most: int) -> list[FieldError]:
    if names.byte_length(value) <= most:
        return []
    return [FieldError.invalid(Path(field), "", f"can have at most {most} characters")]


STRATEGIES: dict[tuple[str, str], Strategy] = {("", "events"): Event()}
