"""Validation of a HorizontalPodAutoscaler's metrics and scaling behavior."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ostinato.api.gvk import GroupVersion
from ostinato.api.quantity import Quantity
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, listed, named, not_negative_quantity
from ostinato.server.resources.validation.quantities import validate_container_name

_SOURCES: Final = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_LONGEST_PERIOD: Final = 1800  # seconds
_LONGEST_WINDOW: Final = 3600


def validate_reference(reference: Json, path: Path) -> list[FieldError]:
    """Validate the kind and the name of a reference."""
    return named(reference.get("kind", ""), path.child("kind")) + named(reference.get("name", ""), path.child("name"))


def validate_api_version(text: str, path: Path, *, core: bool) -> list[FieldError]:
    """Validate the apiVersion of a reference; `core`: the core group is allowed."""
    try:
        group = GroupVersion.parse(text).group
    except ValueError as error:
        return [FieldError.invalid(path, text, str(error))]
    return [] if group or core else [FieldError.invalid(path, text, "apiVersion must specify API group")]


def validate_metrics(metrics: Sequence[Json], least: int | None, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    outside = False  # whether any metric is not measured on Pods
    for i, metric in enumerate(metrics):
        errors += _metric(metric, path.index(i))
        outside = outside or metric.get("type") in ("Object", "External")
    if least == 0 and not outside:
        detail = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(FieldError.forbidden(path, detail))
    return errors


def _metric(metric: Json, path: Path) -> list[FieldError]:
    kind, errors = metric.get("type", ""), []
    wanted = _SOURCES.get(kind)
    unknown = listed(kind, sorted(_SOURCES), path.child("type"))
    if not kind:
        errors.append(FieldError.required(path.child("type"), "must specify a metric source type"))
    errors += unknown
    given = [field for field in _SOURCES.values() if metric.get(field) is not None]
    if given:
        errors += _RULES[given[0]](metric[given[0]], path.child(given[0]))
    if wanted is None:
        errors += unknown  # repeated by the check of the metric source
    elif wanted not in given:
        errors.append(FieldError.required(path.child(wanted), "must populate information for the given metric source"))
    if len(given) > 1:
        detail = "must populate the given metric source only"
        errors += [FieldError.forbidden(path.child(field), detail) for field in given if field != wanted]
    return errors


def _object(source: Json, path: Path) -> list[FieldError]:
    described, at = source.get("describedObject") or {}, path.child("describedObject")
    errors = validate_reference(described, at)
    errors += validate_api_version(described.get("apiVersion", ""), at.child("apiVersion"), core=True)
    errors += _identified(source, path)
    if not _targets(source) & {"value", "averageValue"}:
        detail = "must set either a target value or averageValue"
        errors.append(FieldError.required(path.child("target", "averageValue"), detail))
    return errors


def _external(source: Json, path: Path) -> list[FieldError]:
    errors = _identified(source, path)
    given = _targets(source) & {"value", "averageValue"}
    if not given:
        detail = "must set either a target value for metric or a per-pod target"
        errors.append(FieldError.required(path.child("target", "averageValue"), detail))
    elif len(given) == 2:
        detail = "may not set both a target value for metric and a per-pod target"
        errors.append(FieldError.forbidden(path.child("target", "value"), detail))
    return errors


def _pods(source: Json, path: Path) -> list[FieldError]:
    errors = _identified(source, path)
    if "averageValue" not in _targets(source):
        detail = "must specify a positive target averageValue"
        errors.append(FieldError.required(path.child("target", "averageValue"), detail))
    return errors


def _resource(source: Json, path: Path) -> list[FieldError]:
    errors = [] if source.get("name") else [FieldError.required(path.child("name"), "must specify a resource name")]
    return errors + _resource_target(source, path)


def _container_resource(source: Json, path: Path) -> list[FieldError]:
    name, container = source.get("name", ""), source.get("container", "")
    if name:
        errors = validate_container_name(name, path.child("name"))
    else:
        errors = [FieldError.required(path.child("name"), "must specify a resource name")]
    if container:
        errors += checked(names.is_dns1123_label, container, path.child("container"))
    else:
        errors.append(FieldError.required(path.child("container"), "must specify a container"))
    return errors + _resource_target(source, path)


_RULES: Final[dict[str, Callable[[Json, Path], list[FieldError]]]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


def _identified(source: Json, path: Path) -> list[FieldError]:
    """Validate a metric identifier."""
    name = (source.get("metric") or {}).get("name", "")
    return named(name, path.child("metric", "name"), "must specify a metric name") + _target(source, path)


def _resource_target(source: Json, path: Path) -> list[FieldError]:
    errors, at = _target(source, path), path.child("target")
    given = _targets(source) & {"averageUtilization", "averageValue"}
    if not given:
        detail = "must set either a target raw value or a target utilization"
        errors.append(FieldError.required(at.child("averageUtilization"), detail))
    elif len(given) == 2:
        detail = "may not set both a target raw value and a target utilization"
        errors.append(FieldError.forbidden(at.child("averageValue"), detail))
    return errors


def _targets(source: Json) -> set[str]:
    return {field for field, value in (source.get("target") or {}).items() if value is not None}


def _target(source: Json, path: Path) -> list[FieldError]:
    target, at = source.get("target") or {}, path.child("target")
    kind, errors = target.get("type", ""), []
    if not kind:
        errors.append(FieldError.required(at.child("type"), "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        errors.append(FieldError.invalid(at.child("type"), kind, "must be either Utilization, Value, or AverageValue"))
    errors += [
        FieldError.invalid(at.child(field), target[field], "must be positive")
        for field in ("value", "averageValue")
        if target.get(field) is not None and Quantity.parse(target[field]).sign <= 0
    ]
    utilization = target.get("averageUtilization")
    if utilization is not None and utilization < 1:
        errors.append(FieldError.invalid(at.child("averageUtilization"), utilization, "must be greater than 0"))
    return errors


def validate_behavior(behavior: Json, path: Path) -> list[FieldError]:
    return [
        error
        for field in ("scaleUp", "scaleDown")
        if behavior.get(field) is not None
        for error in _scaling_rules(behavior[field], path.child(field))
    ]


def _scaling_rules(rules: Json, path: Path) -> list[FieldError]:
    errors = []
    window, at = rules.get("stabilizationWindowSeconds"), path.child("stabilizationWindowSeconds")
    if window is not None and window < 0:
        errors.append(FieldError.invalid(at, window, "must be greater than or equal to zero"))
    if window is not None and window > _LONGEST_WINDOW:
        errors.append(FieldError.invalid(at, window, f"must be less than or equal to {_LONGEST_WINDOW}"))
    if rules.get("selectPolicy") is not None:
        errors += listed(rules["selectPolicy"], ["Disabled", "Max", "Min"], path.child("selectPolicy"))
    policies = rules.get("policies") or ()
    if not policies:
        errors.append(FieldError.required(path.child("policies"), "must specify at least one Policy"))
    for i, policy in enumerate(policies):
        errors += _scaling_policy(policy, path.child("policies").index(i))
    if rules.get("tolerance") is not None:
        errors += not_negative_quantity(rules["tolerance"], path.child("tolerance"))
    return errors


def _scaling_policy(policy: Json, path: Path) -> list[FieldError]:
    errors = listed(policy.get("type", ""), ["Percent", "Pods"], path.child("type"))
    for field in ("value", "periodSeconds"):
        if policy.get(field, 0) <= 0:
            errors.append(FieldError.invalid(path.child(field), policy.get(field, 0), "must be greater than zero"))
    period = policy.get("periodSeconds", 0)
    if period > _LONGEST_PERIOD:
        detail = f"must be less than or equal to {_LONGEST_PERIOD}"
        errors.append(FieldError.invalid(path.child("periodSeconds"), period, detail))
    return errors
