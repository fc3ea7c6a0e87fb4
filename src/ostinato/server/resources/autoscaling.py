"""The autoscaling group: HorizontalPodAutoscalers in two versions, over one storage."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, ClassVar

from ostinato.api import names
from ostinato.api.field_errors import FieldError, Path
from ostinato.api.gvk import GroupVersion
from ostinato.server.resources.autoscaling_conversion import CPU_UTILIZATION, from_v2, to_v2
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation import checked

_SPEC = Path("spec")
_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}
_SOURCES = {
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "External": "external",
}


class HorizontalPodAutoscaler(Strategy):
    """Version v2, the one that is stored."""

    empty_status: ClassVar[Json] = {"desiredReplicas": 0, "currentMetrics": None}

    def default(self, obj: Json) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": CPU_UTILIZATION}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        behavior = spec.get("behavior")
        if behavior is not None:
            for field, defaults in (("scaleUp", _UP), ("scaleDown", _DOWN)):
                behavior[field] = {**deepcopy(defaults), **(behavior.get(field) or {})}

    def validate(self, obj: Json) -> list[FieldError]:
        return _spec_errors(obj.get("spec") or {}, None)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return _spec_errors(new.get("spec") or {}, old.get("spec") or {})


class OldHorizontalPodAutoscaler(Strategy):
    """Version v1: knows CPU utilization alone, and keeps the rest in annotations."""

    empty_status: ClassVar[Json] = {"currentReplicas": 0, "desiredReplicas": 0}

    def default(self, obj: Json) -> None:
        obj.setdefault("spec", {}).setdefault("minReplicas", 1)

    def validate(self, obj: Json) -> list[FieldError]:
        return _spec_errors(to_v2(obj)["spec"], None)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return _spec_errors(to_v2(new)["spec"], to_v2(old)["spec"])


def _spec_errors(spec: Json, old: Json | None) -> list[FieldError]:
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    lowest = 0 if (old or {}).get("minReplicas") == 0 else 1
    errors = []
    if least is not None and least < lowest:
        errors.append(
            FieldError.invalid(_SPEC.child("minReplicas"), least, f"must be greater than or equal to {lowest}")
        )
    if most == 0:
        errors.append(FieldError.required(_SPEC.child("maxReplicas"), "must be set and greater than 0"))
    elif most < 0:
        errors.append(FieldError.invalid(_SPEC.child("maxReplicas"), most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        detail = "must be greater than or equal to `minReplicas`"
        errors.append(FieldError.invalid(_SPEC.child("maxReplicas"), most, detail))
    target = spec.get("scaleTargetRef") or {}
    errors += _target_errors(target, (old or {}).get("scaleTargetRef"), _SPEC.child("scaleTargetRef"))
    return errors + _metrics_errors(spec.get("metrics") or (), least, _SPEC.child("metrics"))


def _target_errors(target: Json, old: Json | None, path: Path) -> list[FieldError]:
    errors = []
    for field in ("kind", "name"):
        if not target.get(field):
            errors.append(FieldError.required(path.child(field)))
        else:
            errors += checked(names.name_is_path_segment, target[field], path.child(field))
    text = target.get("apiVersion", "")
    if old is not None and (old.get("apiVersion", ""), old.get("kind")) == (text, target.get("kind")):
        return errors
    try:
        group = GroupVersion.parse(text).group
    except ValueError as error:
        return [*errors, FieldError.invalid(path.child("apiVersion"), text, str(error))]
    if not group and target.get("kind") != "ReplicationController":
        errors.append(FieldError.invalid(path.child("apiVersion"), text, "apiVersion must specify API group"))
    return errors


def _metrics_errors(metrics: Any, least: int | None, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    outside = False  # whether some metric says something of Pods that do not run
    for i, metric in enumerate(metrics):
        errors += _metric_errors(metric, path.index(i))
        outside = outside or metric.get("type") in ("Object", "External")
    if least == 0 and not outside:
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(FieldError.forbidden(path, detail))
    return errors


def _metric_errors(metric: Json, path: Path) -> list[FieldError]:
    kind = metric.get("type", "")
    if not kind:
        return [FieldError.required(path.child("type"), "must specify a metric source type")]
    field = _SOURCES.get(kind)
    if field is None:
        return [FieldError.not_supported(path.child("type"), kind, sorted(_SOURCES))]
    source = metric.get(field)
    if source is None:
        detail = "must populate information for the given metric source"
        return [FieldError.required(path.child(field), detail)]
    if field in ("resource", "containerResource"):
        return _resource_errors(source, path.child(field))
    return []


def _resource_errors(source: Json, path: Path) -> list[FieldError]:
    target, at = source.get("target") or {}, path.child("target")
    errors = [] if source.get("name") else [FieldError.required(path.child("name"), "must specify a resource name")]
    if "averageUtilization" in target and target["averageUtilization"] < 1:
        detail = "must be greater than 0"
        errors.append(FieldError.invalid(at.child("averageUtilization"), target["averageUtilization"], detail))
    both = [field for field in ("averageUtilization", "averageValue") if field in target]
    if not both:
        detail = "must set either a target raw value or a target utilization"
        errors.append(FieldError.required(at.child("averageUtilization"), detail))
    elif len(both) == 2:
        detail = "may not set both a target raw value and a target utilization"
        errors.append(FieldError.forbidden(at.child("averageValue"), detail))
    return errors


STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("autoscaling", "horizontalpodautoscalers"): HorizontalPodAutoscaler(),
}

__all__ = ["STRATEGIES", "HorizontalPodAutoscaler", "OldHorizontalPodAutoscaler", "from_v2", "to_v2"]
