"""Strategies of the autoscaling group: HorizontalPodAutoscalers in two versions over one storage."""

from __future__ import annotations

from copy import deepcopy
from typing import ClassVar

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.autoscaling.conversion import CPU_UTILIZATION, from_v2, to_v2
from ostinato.server.resources.autoscaling.validation import (
    validate_api_version,
    validate_behavior,
    validate_metrics,
    validate_reference,
)
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation.workloads import STATUS, counts

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


class HorizontalPodAutoscaler(Strategy):
    """Version v2, the storage version."""

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

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return counts(new.get("status") or {}, STATUS, "currentReplicas", "desiredReplicas")


class HorizontalPodAutoscalerV1(Strategy):
    """Version v1: CPU utilization only, everything else in annotations."""

    empty_status: ClassVar[Json] = {"currentReplicas": 0, "desiredReplicas": 0}

    def default(self, obj: Json) -> None:
        obj.setdefault("spec", {}).setdefault("minReplicas", 1)

    def validate(self, obj: Json) -> list[FieldError]:
        return _spec_errors(to_v2(obj)["spec"], None)

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        return _spec_errors(to_v2(new)["spec"], to_v2(old)["spec"])

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        return counts(new.get("status") or {}, STATUS, "currentReplicas", "desiredReplicas")


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
    errors += validate_metrics(spec.get("metrics") or (), least, _SPEC.child("metrics"))
    return errors + validate_behavior(spec.get("behavior") or {}, _SPEC.child("behavior"))


def _target_errors(target: Json, old: Json | None, path: Path) -> list[FieldError]:
    errors = validate_reference(target, path)
    text, kind = target.get("apiVersion", ""), target.get("kind")
    if old is not None and (old.get("apiVersion", ""), old.get("kind")) == (text, kind):
        return errors
    return errors + validate_api_version(text, path.child("apiVersion"), core=kind == "ReplicationController")


STRATEGIES: dict[tuple[str, str], Strategy] = {
    ("autoscaling", "horizontalpodautoscalers"): HorizontalPodAutoscaler(),
}

__all__ = ["STRATEGIES", "HorizontalPodAutoscaler", "HorizontalPodAutoscalerV1", "from_v2", "to_v2"]
