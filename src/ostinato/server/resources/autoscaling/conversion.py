"""Conversion of HorizontalPodAutoscalers between autoscaling/v2, the storage version, and v1.

Version v1 has fields for CPU utilization only. Other metrics, the behavior and the conditions are kept in annotations
as JSON.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.server.resources.strategy import Json

CPU_UTILIZATION = 80  # percent, the default target

_METRICS = "autoscaling.alpha.kubernetes.io/metrics"
_CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
_CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
_BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_ROUND_TRIP = (
    _METRICS,
    _CURRENT_METRICS,
    _CONDITIONS,
    _BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
)


def from_v2(obj: Json) -> Json:
    """Convert a stored autoscaler to v1."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metrics, current = _without_nulls(spec.get("metrics")), _without_nulls(status.get("currentMetrics"))
    new_spec = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if key in spec}
    for metric in metrics:
        if _is_cpu_utilization(metric):
            new_spec["targetCPUUtilizationPercentage"] = metric["resource"]["target"]["averageUtilization"]
            break
    new_status = {key: status[key] for key in ("observedGeneration", "lastScaleTime") if key in status}
    new_status["currentReplicas"] = status.get("currentReplicas", 0)
    new_status["desiredReplicas"] = status.get("desiredReplicas", 0)
    for metric in current:
        used = ((metric.get("resource") or {}).get("current") or {}).get("averageUtilization")
        if metric.get("type") == "Resource" and metric["resource"].get("name") == "cpu" and used is not None:
            new_status["currentCPUUtilizationPercentage"] = used
    kept = {}
    others = [_source_to_v1(metric, _SPEC) for metric in metrics if not _is_cpu_utilization(metric)]
    if others:
        kept[_METRICS] = _text(others)
    if current:
        kept[_CURRENT_METRICS] = _text([_source_to_v1(metric, _STATUS) for metric in current])
    if spec.get("behavior") is not None:
        kept[_BEHAVIOR] = _text(_behavior_to_internal(spec["behavior"]))
    if status.get("conditions"):
        kept[_CONDITIONS] = _text([_ordered_condition(condition) for condition in _without_nulls(status["conditions"])])
    return {**obj, "metadata": _annotated(obj.get("metadata") or {}, kept), "spec": new_spec, "status": new_status}


def to_v2(obj: Json) -> Json:
    """Convert an autoscaler of v1 to the storage version."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    new_spec = {key: spec[key] for key in ("scaleTargetRef", "minReplicas", "maxReplicas") if key in spec}
    metrics = [_source_to_v2(metric, _SPEC) for metric in _list(annotations.get(_METRICS))]
    if "targetCPUUtilizationPercentage" in spec:
        metrics.append(_cpu(spec["targetCPUUtilizationPercentage"]))
    new_spec["metrics"] = metrics or [_cpu(CPU_UTILIZATION)]
    behavior = _decoded(annotations.get(_BEHAVIOR))
    if isinstance(behavior, dict) and any(behavior.values()):
        new_spec["behavior"] = _behavior_from_internal(behavior)
    new_status = {
        key: status[key]
        for key in ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")
        if key in status
    }
    if not new_status.get("currentReplicas"):
        new_status.pop("currentReplicas", None)
    new_status.setdefault("desiredReplicas", 0)
    current = [_source_to_v2(metric, _STATUS) for metric in _list(annotations.get(_CURRENT_METRICS))]
    if not current and "currentCPUUtilizationPercentage" in status:
        used = {"averageUtilization": status["currentCPUUtilizationPercentage"]}
        current = [{"type": "Resource", "resource": {"name": "cpu", "current": used}}]
    new_status["currentMetrics"] = current or None
    conditions = _list(annotations.get(_CONDITIONS))
    if conditions:
        new_status["conditions"] = conditions
    return {**obj, "metadata": _annotated(metadata, {}), "spec": new_spec, "status": new_status}


def _without_nulls(items: list[Json | None] | None) -> list[Json]:
    """Replace null items of a list with empty objects: an applied configuration may contain them."""
    return [item or {} for item in items or []]


def _is_cpu_utilization(metric: Json) -> bool:
    source = metric.get("resource") or {}
    return (
        metric.get("type") == "Resource"
        and source.get("name") == "cpu"
        and "averageUtilization" in (source.get("target") or {})
    )


def _cpu(utilization: int) -> Json:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _annotated(metadata: Json, kept: dict[str, str]) -> Json:
    """Metadata with these conversion annotations and no others of them."""
    annotations = {k: v for k, v in (metadata.get("annotations") or {}).items() if k not in _ROUND_TRIP} | kept
    new = {key: value for key, value in metadata.items() if key != "annotations"}
    if annotations:
        new["annotations"] = annotations
    return new


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _decoded(text: str | None) -> Any:
    """Decode an annotation; None if it is not valid JSON, since clients can write it."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _list(text: str | None) -> list[Json]:
    value = _decoded(text)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


# Fields of v1 and their paths in v2, in the order of the Go struct: (v1 name, v2 path, value if absent).
_Fields = tuple[tuple[str, tuple[str, ...], Any], ...]

_SPEC: dict[str, _Fields] = {
    "object": (
        ("target", ("describedObject",), {}),
        ("metricName", ("metric", "name"), ""),
        ("targetValue", ("target", "value"), "0"),
        ("selector", ("metric", "selector"), None),
        ("averageValue", ("target", "averageValue"), None),
    ),
    "pods": (
        ("metricName", ("metric", "name"), ""),
        ("targetAverageValue", ("target", "averageValue"), "0"),
        ("selector", ("metric", "selector"), None),
    ),
    "resource": (
        ("name", ("name",), ""),
        ("targetAverageUtilization", ("target", "averageUtilization"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
    ),
    "containerResource": (
        ("name", ("name",), ""),
        ("targetAverageUtilization", ("target", "averageUtilization"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
        ("container", ("container",), ""),
    ),
    "external": (
        ("metricName", ("metric", "name"), ""),
        ("metricSelector", ("metric", "selector"), None),
        ("targetValue", ("target", "value"), None),
        ("targetAverageValue", ("target", "averageValue"), None),
    ),
}
_STATUS: dict[str, _Fields] = {
    "object": (
        ("target", ("describedObject",), {}),
        ("metricName", ("metric", "name"), ""),
        ("currentValue", ("current", "value"), "0"),
        ("selector", ("metric", "selector"), None),
        ("averageValue", ("current", "averageValue"), None),
    ),
    "pods": (
        ("metricName", ("metric", "name"), ""),
        ("currentAverageValue", ("current", "averageValue"), "0"),
        ("selector", ("metric", "selector"), None),
    ),
    "resource": (
        ("name", ("name",), ""),
        ("currentAverageUtilization", ("current", "averageUtilization"), None),
        ("currentAverageValue", ("current", "averageValue"), "0"),
    ),
    "containerResource": (
        ("name", ("name",), ""),
        ("currentAverageUtilization", ("current", "averageUtilization"), None),
        ("currentAverageValue", ("current", "averageValue"), "0"),
        ("container", ("container",), ""),
    ),
    "external": (
        ("metricName", ("metric", "name"), ""),
        ("metricSelector", ("metric", "selector"), None),
        ("currentValue", ("current", "value"), "0"),
        ("currentAverageValue", ("current", "averageValue"), None),
    ),
}


def _source_to_v1(metric: Json, table: dict[str, _Fields]) -> Json:
    new: Json = {"type": metric.get("type", "")}
    for field, fields in table.items():
        source = metric.get(field)
        if source is None:
            continue
        made = new[field] = {}
        for name, path, absent in fields:
            value = source
            for step in path:
                value = value.get(step) if isinstance(value, dict) else None
            if value is None:
                value = absent
            if value is not None:
                made[name] = value
    return new


def _source_to_v2(metric: Json, table: dict[str, _Fields]) -> Json:
    new: Json = {"type": metric.get("type", "")}
    for field, fields in table.items():
        source = metric.get(field)
        if not isinstance(source, dict):
            continue
        made = new[field] = {}
        for name, path, _ in fields:
            if source.get(name) is None:
                continue
            place = made
            for step in path[:-1]:
                place = place.setdefault(step, {})
            place[path[-1]] = source[name]
        if table is _SPEC:
            made.setdefault("target", {})["type"] = _target_type(field, source)
            _drop_zero(field, made["target"])
        else:
            made.setdefault("current", {})
    return new


def _target_type(field: str, source: Json) -> str:
    if field in ("resource", "containerResource"):
        return "Utilization" if "targetAverageUtilization" in source else "AverageValue"
    if field == "object":
        return "AverageValue" if "averageValue" in source else "Value"
    if field == "external":
        return "Value" if "targetValue" in source else "AverageValue"
    return "AverageValue"


def _drop_zero(field: str, target: Json) -> None:
    """Version v1 has the value of an object metric even if the target is an average."""
    if field == "object" and target["type"] == "AverageValue" and target.get("value") == "0":
        del target["value"]


def _behavior_to_internal(behavior: Json) -> Json:
    """The behavior with the field names of kube-apiserver's internal version, as the annotation has it."""
    return {
        name: _rules_to_internal(behavior.get(key))
        for name, key in (("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown"))
    }


def _rules_to_internal(rules: Json | None) -> Json | None:
    if rules is None:
        return None
    policies = rules.get("policies")
    return {
        "StabilizationWindowSeconds": rules.get("stabilizationWindowSeconds"),
        "SelectPolicy": rules.get("selectPolicy"),
        "Policies": None if policies is None else [_policy_to_internal(policy) for policy in policies],
        "Tolerance": rules.get("tolerance"),
    }


def _policy_to_internal(policy: Json) -> Json:
    return {
        "Type": policy.get("type", ""),
        "Value": policy.get("value", 0),
        "PeriodSeconds": policy.get("periodSeconds", 0),
    }


def _behavior_from_internal(behavior: Json) -> Json:
    found = {"scaleUp": behavior.get("ScaleUp"), "scaleDown": behavior.get("ScaleDown")}
    return {key: _rules_from_internal(rules) for key, rules in found.items() if isinstance(rules, dict)}


def _rules_from_internal(rules: Json) -> Json:
    new = {
        "stabilizationWindowSeconds": rules.get("StabilizationWindowSeconds"),
        "selectPolicy": rules.get("SelectPolicy"),
        "tolerance": rules.get("Tolerance"),
    }
    policies = rules.get("Policies")
    if isinstance(policies, list):
        new["policies"] = [
            {
                "type": policy.get("Type", ""),
                "value": policy.get("Value", 0),
                "periodSeconds": policy.get("PeriodSeconds", 0),
            }
            for policy in policies
            if isinstance(policy, dict)
        ]
    return {key: value for key, value in new.items() if value is not None}


def _ordered_condition(condition: Json) -> Json:
    return {
        key: condition.get(key)
        for key in ("type", "status", "lastTransitionTime", "reason", "message")
        if key in condition or key == "lastTransitionTime"
    }
