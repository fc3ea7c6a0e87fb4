"""Strategies of LimitRanges and ResourceQuotas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ostinato.api.quantity import Quantity
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.core.pods.spec.defaults import round_up
from ostinato.server.resources.strategy import Json, Strategy
from ostinato.server.resources.validation import quantities as amounts
from ostinato.server.resources.validation.checks import IMMUTABLE, checked
from ostinato.server.resources.validation.internal_values import as_internal

_SPEC = Path("spec")
_LIMITS = ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio")
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_SCOPES: dict[str, frozenset[str]] = {  # the resources that each scope can be applied to
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
_CONFLICTING = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_EXISTS_ALONE = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class LimitRange(Strategy):
    allow_create_on_update = True

    def default(self, obj: Json) -> None:
        for limit in obj.setdefault("spec", {}).get("limits") or ():
            for field in _LIMITS:
                if field in limit:
                    round_up(limit[field])
            if limit.get("type") == "Container":
                _default_container_limit(limit)

    def prepare_create(self, obj: Json) -> None:
        if not obj["metadata"].get("name"):
            obj["metadata"]["name"] = obj["metadata"]["uid"]

    def validate(self, obj: Json) -> list[FieldError]:
        errors: list[FieldError] = []
        seen: set[str] = set()
        for i, limit in enumerate(obj["spec"].get("limits") or ()):
            path = _SPEC.child("limits").index(i)
            errors += _validate_limit_type(limit.get("type", ""), path.child("type"), seen)
            errors += _validate_limit(limit, path)
        return errors


def _default_container_limit(limit: Json) -> None:
    highest, lowest = limit.get("max", {}), limit.get("min", {})
    default = {**highest, **limit.get("default", {})}
    request = {**lowest, **default, **limit.get("defaultRequest", {})}
    if default:
        limit["default"] = default
    if request:
        limit["defaultRequest"] = request


def _validate_limit_type(kind: str, path: Path, seen: set[str]) -> list[FieldError]:
    errors = checked(names.is_qualified_name, kind, path)
    if not errors and "/" not in kind and kind not in _LIMIT_TYPES:
        errors.append(FieldError.invalid(path, kind, "must be a standard limit type or fully qualified"))
    if kind in seen:
        errors.append(FieldError.duplicate(path, kind))
    seen.add(kind)
    return errors


def _validate_limit(limit: Json, path: Path) -> list[FieldError]:
    kind = limit.get("type", "")
    rule = amounts.validate_container_name if kind in ("Pod", "Container") else amounts.validate_name
    errors: list[FieldError] = []
    for field in _LIMITS:
        given = limit.get(field, {})
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if given:
                errors.append(FieldError.forbidden(path.child(field), "may not be specified when `type` is 'Pod'"))
            continue
        if field == "maxLimitRequestRatio":
            errors += _validate_claim_limit(limit, path)
        for name in given:
            errors += rule(name, path.child(field).key(name))
    fields = _LIMITS if kind != "Pod" else ("max", "min", "maxLimitRequestRatio")
    for name in sorted({name for field in fields for name in limit.get(field, {})}):
        values = {field: Quantity.parse(limit[field][name]) for field in fields if name in limit.get(field, {})}
        errors += _validate_order(name, values, path)
    return errors


def _validate_claim_limit(limit: Json, path: Path) -> list[FieldError]:
    if limit.get("type") != "PersistentVolumeClaim" or "storage" in {**limit.get("min", {}), **limit.get("max", {})}:
        return []
    detail = "either minimum or maximum storage value is required, but neither was provided"
    return [FieldError.required(path.child("limits"), detail)]


# (field in the error, lower value, higher value, message; the value shown is the first one)
_ORDER = (
    ("min", "min", "max", "min", "min value {} is greater than max value {}"),
    (
        "defaultRequest",
        "min",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "defaultRequest",
        "max",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        "defaultRequest",
        "defaultRequest",
        "default",
        "defaultRequest",
        "default request value {} is greater than default limit value {}",
    ),
    ("default", "min", "default", "min", "min value {} is greater than default value {}"),
    ("default", "default", "max", "max", "default value {} is greater than max value {}"),
)


def _validate_order(name: str, values: dict[str, Quantity], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field, low, high, shown, text in _ORDER:
        if low in values and high in values and values[low] > values[high]:
            detail = text.format(values[low], values[high])
            errors.append(FieldError.invalid(path.child(field).key(name), str(values[shown]), detail))
    ratio, lowest, highest = values.get("maxLimitRequestRatio"), values.get("min"), values.get("max")
    where = path.child("maxLimitRequestRatio").key(name)
    if ratio is not None and ratio < Quantity.of(1):
        errors.append(FieldError.invalid(where, str(ratio), f"ratio {ratio} is less than 1"))
    if ratio is not None and lowest is not None and highest is not None and lowest:
        most = highest.milli_value() / lowest.milli_value()
        if ratio.milli_value() / 1000 > most:
            errors.append(FieldError.invalid(where, str(ratio), f"ratio {ratio} is greater than max/min = {most:f}"))
    default, request = values.get("default"), values.get("defaultRequest")
    if not amounts.is_overcommittable(name) and default is not None and request is not None and default != request:
        detail = f"default value {default} must equal to defaultRequest value {request} in {name}"
        errors.append(FieldError.invalid(path.child("defaultRequest").key(name), str(request), detail))
    return errors


class ResourceQuota(Strategy):
    returns_deleted = True

    def default(self, obj: Json) -> None:
        spec, status = obj.setdefault("spec", {}), obj.setdefault("status", {})
        for holder, field in ((spec, "hard"), (status, "hard"), (status, "used")):
            if field in holder:
                round_up(holder[field])

    def prepare_create(self, obj: Json) -> None:
        obj["status"] = {}

    def validate(self, obj: Json) -> list[FieldError]:
        spec = obj["spec"]
        errors = _validate_amounts(spec.get("hard", {}), _SPEC.child("hard"))
        errors += _validate_scopes(spec)
        if "scopeSelector" in spec:
            errors += _validate_scope_selector(spec)
        return errors

    def validate_update(self, new: Json, old: Json) -> list[FieldError]:
        errors = self.validate(new)
        scopes = new["spec"].get("scopes", [])
        if set(scopes) != set(old["spec"].get("scopes", [])):
            errors.append(FieldError.invalid(_SPEC.child("scopes"), new["spec"].get("scopes"), IMMUTABLE))
        return errors

    def validate_status_update(self, new: Json, old: Json) -> list[FieldError]:
        status = new.get("status", {})
        return [
            error
            for field in ("hard", "used")
            for error in _validate_amounts(status.get(field, {}), Path("status", field))
        ]

    def warnings(self, new: Json, old: Json | None) -> list[str]:
        if old is not None:
            return []
        hard = new["spec"].get("hard", {})
        found = []
        for name in ("cpu", "memory", "storage", "ephemeral-storage"):
            request, limit = f"requests.{name}", f"limits.{name}"
            if request not in hard and name in ("cpu", "memory"):
                request = name
            if request in hard and limit in hard and Quantity.parse(hard[request]) > Quantity.parse(hard[limit]):
                found.append(f"ResourceQuota {request} ({hard[request]}) should be less than {limit} ({hard[limit]})")
        return found


def _validate_amounts(given: dict[str, str], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for name, amount in given.items():
        errors += amounts.validate_quota_name(name, path.key(name))
        errors += amounts.validate_amount(name, amount, path.key(name))
    return errors


def _misapplied(scope: str, hard: Iterable[str]) -> int:
    """Count the resources that a scope cannot be applied to."""
    allowed = _SCOPES.get(scope)
    return sum(allowed is not None and amounts.is_quota_resource(name) and name not in allowed for name in hard)


def _validate_scopes(spec: Json) -> list[FieldError]:
    scopes, path = spec.get("scopes", []), _SPEC.child("scopes")
    errors: list[FieldError] = []
    for scope in scopes:
        if scope not in _SCOPES:
            errors.append(FieldError.invalid(path, scopes, "unsupported scope"))
        misapplied = FieldError.invalid(path, scopes, "unsupported scope applied to resource")
        errors += [misapplied] * _misapplied(scope, spec.get("hard", ()))
    return errors + _conflicts(set(scopes), path, scopes)


def _conflicts(scopes: set[str], path: Path, shown: Any) -> list[FieldError]:
    return [FieldError.invalid(path, shown, "conflicting scopes") for pair in _CONFLICTING if pair <= scopes]


def _validate_scope_selector(spec: Json) -> list[FieldError]:
    path = _SPEC.child("scopeSelector").child("matchExpressions")
    errors: list[FieldError] = []
    scopes: set[str] = set()
    for term in spec["scopeSelector"].get("matchExpressions", ()):
        scope, operator, values = term.get("scopeName", ""), term.get("operator", ""), term.get("values", [])
        if scope not in _SCOPES:
            errors.append(FieldError.invalid(path.child("scopeName"), scope, "unsupported scope"))
        shown = as_internal("core.v1.ScopeSelector", spec["scopeSelector"])
        misapplied = FieldError.invalid(path, shown, "unsupported scope applied to resource")
        errors += [misapplied] * _misapplied(scope, spec.get("hard", ()))
        if scope in _SCOPES and scope not in ("PriorityClass", "VolumeAttributesClass") and operator != "Exists":
            errors.append(FieldError.invalid(path.child("operator"), operator, _EXISTS_ALONE))
        errors += _validate_operator(operator, values, path)
        scopes.add(scope)
    return errors + _conflicts(scopes, path, spec.get("scopes"))


def _validate_operator(operator: str, values: list[str], path: Path) -> list[FieldError]:
    match operator:
        case "In" | "NotIn":
            if not values:
                detail = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                return [FieldError.required(path.child("values"), detail)]
        case "Exists" | "DoesNotExist":
            if values:
                detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                return [FieldError.invalid(path.child("values"), values, detail)]
        case _:
            return [FieldError.invalid(path.child("operator"), operator, "not a valid selector operator")]
    return []
