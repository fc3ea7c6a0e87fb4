"""Validation of FlowSchemas and PriorityLevelConfigurations."""

from __future__ import annotations

import math
from typing import Final

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, one_of
from ostinato.server.resources.validation.internal_values import as_internal

_SPEC: Final = Path("spec")
_VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"]
_LAST_PRECEDENCE: Final = 10_000
_MOST_QUEUES: Final = 10_000_000
_HASH_BITS: Final = 60  # of the hash that shuffle sharding draws queues from
_SUBJECTS: Final = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}
# Mandatory objects, whose specs are immutable.
_EVERYTHING: Final = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}
_EVERY_PATH: Final = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_FIXED_SCHEMAS: Final[dict[str, Json]] = {
    "exempt": {
        "priorityLevelConfiguration": {"name": "exempt"},
        "matchingPrecedence": 1,
        "rules": [
            {
                "subjects": [{"kind": "Group", "group": {"name": "system:masters"}}],
                "resourceRules": [_EVERYTHING],
                "nonResourceRules": [_EVERY_PATH],
            }
        ],
    },
    "catch-all": {
        "priorityLevelConfiguration": {"name": "catch-all"},
        "matchingPrecedence": 10_000,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [
            {
                "subjects": [
                    {"kind": "Group", "group": {"name": "system:unauthenticated"}},
                    {"kind": "Group", "group": {"name": "system:authenticated"}},
                ],
                "resourceRules": [_EVERYTHING],
                "nonResourceRules": [_EVERY_PATH],
            }
        ],
    },
}
_CATCH_ALL: Final[Json] = {
    "type": "Limited",
    "limited": {"nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"}},
}


def validate_flow_schema(spec: Json, name: str) -> list[FieldError]:
    precedence, at = spec.get("matchingPrecedence", 0), _SPEC.child("matchingPrecedence")
    errors = []
    if precedence <= 0:
        errors.append(FieldError.invalid(at, precedence, "must be a positive value"))
    if precedence > _LAST_PRECEDENCE:
        errors.append(FieldError.invalid(at, precedence, f"must not be greater than {_LAST_PRECEDENCE}"))
    if precedence == 1 and name != "exempt":
        detail = "only the schema named 'exempt' may have matchingPrecedence 1"
        errors.append(FieldError.invalid(at, precedence, detail))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        path, shown = _SPEC.child("distinguisherMethod", "type"), {"Type": method.get("type", "")}
        errors.append(FieldError.not_supported(path, shown, ["ByNamespace", "ByUser"]))
    level, at = (spec.get("priorityLevelConfiguration") or {}).get("name"), _SPEC.child("priorityLevelConfiguration")
    if level:
        errors += checked(names.name_is_dns_subdomain, level, at.child("name"))
    else:
        errors.append(FieldError.required(at.child("name"), "must reference a priority level"))
    for i, rule in enumerate(spec.get("rules") or ()):
        errors += _rule(rule, _SPEC.child("rules").index(i))
    fixed = _FIXED_SCHEMAS.get(name)
    if fixed is not None and spec != fixed:
        errors.append(
            FieldError.invalid(
                _SPEC,
                as_internal("flowcontrol.v1.FlowSchemaSpec", spec),
                f"spec of '{name}' must equal the fixed value",
            )
        )
    return errors


def _rule(rule: Json, path: Path) -> list[FieldError]:
    errors = []
    for i, subject in enumerate(rule.get("subjects") or ()):
        errors += _subject(subject, path.child("subjects").index(i))
    if not rule.get("subjects"):
        errors.append(FieldError.required(path.child("subjects"), "subjects must contain at least one value"))
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(FieldError.required(path, detail))
    for i, one in enumerate(rule.get("resourceRules") or ()):
        errors += _resource_rule(one, path.child("resourceRules").index(i))
    for i, one in enumerate(rule.get("nonResourceRules") or ()):
        errors += _path_rule(one, path.child("nonResourceRules").index(i))
    return errors


def _subject(subject: Json, path: Path) -> list[FieldError]:
    kind = subject.get("kind", "")
    field = _SUBJECTS.get(kind)
    if field is None:
        return [FieldError.not_supported(path.child("kind"), kind, sorted(_SUBJECTS))]
    value, at, errors = subject.get(field), path.child(field), []
    if value is None:
        errors.append(FieldError.required(at, f"{field} is required when subject kind is '{kind}'"))
    else:
        errors += _subject_name(value.get("name", ""), at.child("name"), account=field == "serviceAccount")
        if field == "serviceAccount" and value.get("namespace"):
            errors += checked(names.name_is_dns_label, value["namespace"], at.child("namespace"))
        elif field == "serviceAccount":
            errors.append(FieldError.required(at.child("namespace"), "must specify namespace for service account"))
    order = ("serviceAccount", "user", "group")
    wrong = {field: kind for kind, field in _SUBJECTS.items() if field in subject and subject[field] is not None}
    return errors + [
        FieldError.forbidden(path.child(other), f"{other} is forbidden when subject kind is not '{wrong[other]}'")
        for other in order
        if other in wrong and other != field
    ]


def _subject_name(name: str, path: Path, *, account: bool) -> list[FieldError]:
    if not name:
        return [FieldError.required(path)]
    return checked(names.name_is_dns_subdomain, name, path) if account and name != "*" else []


def _verbs(rule: Json, path: Path) -> list[FieldError]:
    verbs, at = rule.get("verbs") or [], path.child("verbs")
    if not verbs:
        return [FieldError.required(at, "verbs must contain at least one value")]
    if "*" in verbs:
        return _alone(verbs, at, "verbs")
    return [] if set(verbs) <= set(_VERBS) else [FieldError.not_supported(at, verbs, _VERBS)]


def _alone(values: list[str], path: Path, what: str) -> list[FieldError]:
    if len(values) == 1:
        return []
    return [FieldError.invalid(path, values, f"if '*' is present, must not specify other {what}")]


def _resource_rule(rule: Json, path: Path) -> list[FieldError]:
    errors = _verbs(rule, path)
    for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values, at = rule.get(field) or [], path.child(field)
        if not values:
            errors.append(FieldError.required(at, f"resource rules must supply at least one {one}"))
        elif "*" in values:
            errors += _alone(values, at, many)
    namespaces, at = rule.get("namespaces") or [], path.child("namespaces")
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        return [*errors, FieldError.required(at, detail)]
    if "*" in namespaces:
        return errors + _alone(namespaces, at, "namespaces")
    intro = "each member of this list must be '*' or a DNS-1123 label; "
    return errors + [
        FieldError.invalid(at.index(i), namespace, intro + text)
        for i, namespace in enumerate(namespaces)
        for text in names.name_is_dns_label(namespace)
    ]


def _path_rule(rule: Json, path: Path) -> list[FieldError]:
    errors = _verbs(rule, path)
    paths, at = rule.get("nonResourceURLs") or [], path.child("nonResourceURLs")
    if not paths:
        return [*errors, FieldError.required(at, "nonResourceURLs must contain at least one value")]
    if "*" in paths:
        return errors + _alone(paths, at, "non-resource URLs")
    return errors + [error for i, one in enumerate(paths) for error in checked(_is_path, one, at.index(i))]


def _is_path(path: str) -> list[str]:
    if not path:
        return ["must not be empty"]
    if not path.startswith("/"):
        return ["must start with slash"]
    if " " in path:
        return ["must not contain white-space"]
    if "//" in path:
        return ["must not contain double slash"]
    if "*" in path and (path.count("*") > 1 or not path.endswith("/*")):
        return ["wildcard can only do suffix matching"]
    return []


def validate_priority_level(spec: Json, name: str) -> list[FieldError]:
    kind, limited, exempt, errors = spec.get("type", ""), spec.get("limited"), spec.get("exempt"), []
    if (name == "exempt") != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        errors.append(FieldError.invalid(_SPEC.child("type"), kind, detail))
    if kind == "Exempt":
        if limited is not None:
            errors.append(FieldError.forbidden(_SPEC.child("limited"), "must be nil if the type is not Limited"))
        errors += _shares(exempt or {}, _SPEC.child("exempt")) + _lendable(exempt or {}, _SPEC.child("exempt"))
    elif kind == "Limited":
        if exempt is not None:
            errors.append(FieldError.forbidden(_SPEC.child("exempt"), "must be nil if the type is Limited"))
        if limited is None:
            errors.append(FieldError.required(_SPEC.child("limited"), "must not be empty when type is Limited"))
        else:
            errors += _limited(limited, _SPEC.child("limited"))
    else:
        errors += one_of(kind, ["Exempt", "Limited"], _SPEC.child("type"))
    if name == "exempt" and {key for key in spec if key != "exempt"} != {"type"}:
        detail = "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value"
        errors.append(
            FieldError.invalid(_SPEC, as_internal("flowcontrol.v1.PriorityLevelConfigurationSpec", spec), detail)
        )
    if name == "catch-all" and spec != _CATCH_ALL:
        detail = "spec of 'catch-all' must equal the fixed value"
        errors.append(
            FieldError.invalid(_SPEC, as_internal("flowcontrol.v1.PriorityLevelConfigurationSpec", spec), detail)
        )
    return errors


def _shares(level: Json, path: Path) -> list[FieldError]:
    shares = level.get("nominalConcurrencyShares")
    if shares is None or shares >= 0:
        return []
    return [FieldError.invalid(path.child("nominalConcurrencyShares"), shares, "must be a non-negative integer")]


def _lendable(level: Json, path: Path) -> list[FieldError]:
    percent = level.get("lendablePercent")
    if percent is None or 0 <= percent <= 100:
        return []
    return [FieldError.invalid(path.child("lendablePercent"), percent, "must be between 0 and 100, inclusive")]


def _limited(level: Json, path: Path) -> list[FieldError]:
    errors = _shares(level, path)
    response, at = level.get("limitResponse") or {}, path.child("limitResponse")
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            detail = "must be nil if limited.limitResponse.type is not Limited"
            errors.append(FieldError.forbidden(at.child("queuing"), detail))
    elif kind == "Queue":
        if queuing is None:
            detail = "must not be empty if limited.limitResponse.type is Limited"
            errors.append(FieldError.required(at.child("queuing"), detail))
        else:
            errors += _queuing(queuing, at.child("queuing"))
    else:
        errors += one_of(kind, ["Queue", "Reject"], at.child("type"))
    errors += _lendable(level, path)
    borrowed = level.get("borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        detail = "if specified, must be a non-negative integer"
        errors.append(FieldError.invalid(path.child("borrowingLimitPercent"), borrowed, detail))
    return errors


def _queuing(queuing: Json, path: Path) -> list[FieldError]:
    length, queues, hand = (queuing[field] for field in ("queueLengthLimit", "queues", "handSize"))
    errors = []
    if length <= 0:
        errors.append(FieldError.invalid(path.child("queueLengthLimit"), length, "must be positive"))
    if queues <= 0:
        errors.append(FieldError.invalid(path.child("queues"), queues, "must be positive"))
    elif queues > _MOST_QUEUES:
        errors.append(FieldError.invalid(path.child("queues"), queues, f"must not be greater than {_MOST_QUEUES}"))
    at = path.child("handSize")
    if hand <= 0:
        errors.append(FieldError.invalid(at, hand, "must be positive"))
    elif hand > queues:
        errors.append(FieldError.invalid(at, hand, f"should not be greater than queues ({queues})"))
    elif hand * math.log2(queues) > _HASH_BITS:
        sizes = f"deckSize {queues} and handSize {hand}"
        detail = f"required entropy bits of {sizes} should not be greater than {_HASH_BITS}"
        errors.append(FieldError.invalid(at, hand, detail))
    return errors


def validate_condition_types(obj: Json) -> list[FieldError]:
    """Validate that conditions have a type, and that types are unique."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, condition in enumerate((obj.get("status") or {}).get("conditions") or ()):
        at, kind = Path("status", "conditions").index(i).child("type"), condition.get("type", "")
        if kind in seen:
            errors.append(FieldError.duplicate(at, kind))
        seen.add(kind)
        if not kind:
            errors.append(FieldError.required(at))
    return errors
