"""Validation of scheduling fields: tolerations, affinities, topology spread constraints, scheduling gates."""

from __future__ import annotations

from ostinato.api.selectors import labels
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OPERATOR = "not a valid selector operator"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"


def validate_tolerations(tolerations: list[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, toleration in enumerate(tolerations):
        at = path.index(i)
        key, effect = toleration.get("key", ""), toleration.get("effect", "")
        operator = toleration.get("operator", "")
        if key:
            errors += checked(names.is_label_key, key, at.child("key"))
        elif operator != "Exists":
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(FieldError.invalid(at.child("operator"), operator, detail))
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(FieldError.invalid(at.child("effect"), effect, detail))
        errors += _validate_toleration_value(operator, toleration.get("value", ""), at.child("operator"))
        if effect and effect not in TAINT_EFFECTS:
            errors.append(FieldError.not_supported(at.child("effect"), effect, TAINT_EFFECTS))
    return errors


def _validate_toleration_value(operator: str, value: str, path: Path) -> list[FieldError]:
    match operator:
        case "Equal" | "":
            wrong = names.is_label_value(value)
            return [FieldError.invalid(path, value, ";".join(wrong))] if wrong else []
        case "Exists":
            return [FieldError.invalid(path, value, "value must be empty when `operator` is 'Exists'")] if value else []
        case "Lt" | "Gt":
            return [FieldError.not_supported(path, operator, ("Equal", "Exists", "Lt", "Gt"))]
        case _:
            return [FieldError.not_supported(path, operator, ("Equal", "Exists"))]


def validate_affinity(affinity: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    node = affinity.get("nodeAffinity", {})
    if _REQUIRED in node:
        errors += validate_node_selector(node[_REQUIRED], path.child("nodeAffinity").child(_REQUIRED))
    for i, term in enumerate(node.get(_PREFERRED, ())):
        at = path.child("nodeAffinity").child(_PREFERRED).index(i)
        errors += _validate_weight(term, at) + _validate_node_term(term.get("preference", {}), at.child("preference"))
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(kind, {})
        for i, term in enumerate(pods.get(_REQUIRED, ())):
            errors += _validate_pod_term(term, path.child(kind).child(_REQUIRED).index(i))
        for i, term in enumerate(pods.get(_PREFERRED, ())):
            at = path.child(kind).child(_PREFERRED).index(i)
            errors += _validate_weight(term, at)
            errors += _validate_pod_term(term.get("podAffinityTerm", {}), at.child("podAffinityTerm"))
    return errors


def _validate_weight(term: Json, path: Path) -> list[FieldError]:
    weight = term.get("weight", 0)
    return [] if 0 < weight <= 100 else [FieldError.invalid(path.child("weight"), weight, _WEIGHT)]


def validate_node_selector(selector: Json, path: Path) -> list[FieldError]:
    terms = selector.get("nodeSelectorTerms") or []
    where = path.child("nodeSelectorTerms")
    if not terms:
        return [FieldError.required(where, "must have at least one node selector term")]
    return [error for i, term in enumerate(terms) for error in _validate_node_term(term, where.index(i))]


def _validate_node_term(term: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, expression in enumerate(term.get("matchExpressions", ())):
        errors += _validate_expression(expression, path.child("matchExpressions").index(i))
    for i, expression in enumerate(term.get("matchFields", ())):
        errors += _validate_field(expression, path.child("matchFields").index(i))
    return errors


def _validate_expression(expression: Json, path: Path) -> list[FieldError]:
    operator, values = expression.get("operator", ""), expression.get("values", [])
    errors: list[FieldError] = []
    where = path.child("values")
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(FieldError.required(where, "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            errors.append(FieldError.forbidden(where, detail))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(FieldError.required(where, detail))
    else:
        errors.append(FieldError.invalid(path.child("operator"), operator, _OPERATOR))
    errors += checked(names.is_label_key, expression.get("key", ""), path.child("key"))
    for i, value in enumerate(values):
        errors += checked(names.is_label_value, value, where.index(i))
    return errors


def _validate_field(expression: Json, path: Path) -> list[FieldError]:
    operator, values, key = expression.get("operator", ""), expression.get("values", []), expression.get("key", "")
    errors: list[FieldError] = []
    if operator not in ("In", "NotIn"):
        errors.append(FieldError.invalid(path.child("operator"), operator, _OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(FieldError.required(path.child("values"), detail))
    if key != "metadata.name":
        return [*errors, FieldError.invalid(path.child("key"), key, "not a valid field selector key")]
    for i, value in enumerate(values):
        errors += checked(names.name_is_dns_subdomain, value, path.child("values").index(i))
    return errors


def _validate_pod_term(term: Json, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        if field in term:
            errors += labels.validate_label_selector(term[field], path.child(field))
    errors += _validate_keys(term, path)
    for namespace in term.get("namespaces", ()):
        errors += checked(names.name_is_dns_label, namespace, path.child("namespace"))
    key = term.get("topologyKey", "")
    if not key:
        errors.append(FieldError.required(path.child("topologyKey"), "can not be empty"))
    return errors + checked(names.is_label_key, key, path.child("topologyKey"))


def _validate_keys(holder: Json, path: Path) -> list[FieldError]:
    """Validate matchLabelKeys and mismatchLabelKeys."""
    errors: list[FieldError] = []
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        at, keys = path.child(field), holder.get(field) or ()
        if keys and "labelSelector" not in holder:
            errors.append(FieldError.forbidden(at, "must not be specified when labelSelector is not set"))
        elif keys:
            errors += [error for i, key in enumerate(keys) for error in checked(names.is_label_key, key, at.index(i))]
    return errors


def validate_spread_constraints(constraints: list[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, constraint in enumerate(constraints):
        at = path.index(i)
        key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
        errors += _validate_positive(constraint.get("maxSkew", 0), at.child("maxSkew"))
        if not key:
            errors.append(FieldError.required(at.child("topologyKey"), "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            supported = ("DoNotSchedule", "ScheduleAnyway")
            errors.append(FieldError.not_supported(at.child("whenUnsatisfiable"), action, supported))
        if any(c.get("topologyKey", "") == key and c.get("whenUnsatisfiable") == action for c in constraints[i + 1 :]):
            where = at.child("{topologyKey, whenUnsatisfiable}")
            errors.append(FieldError.duplicate(where, f"{{{key}, {action}}}"))
        domains = constraint.get("minDomains")
        if domains is not None:
            errors += _validate_positive(domains, at.child("minDomains"))
            if action != "DoNotSchedule":
                detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                errors.append(FieldError.invalid(at.child("minDomains"), domains, detail))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy not in (None, "Honor", "Ignore"):
                errors.append(FieldError.not_supported(at.child(field), policy, ("Honor", "Ignore")))
        errors += _validate_keys(constraint, at)
        if "labelSelector" in constraint:
            errors += labels.validate_label_selector(constraint["labelSelector"], at.child("labelSelector"))
    return errors


def _validate_positive(value: int, path: Path) -> list[FieldError]:
    return [] if value > 0 else [FieldError.invalid(path, value, "must be greater than zero")]


def validate_gates(gates: list[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, gate in enumerate(gates):
        name = gate.get("name", "")
        errors += checked(names.is_qualified_name, name, path.index(i))
        if name in seen:
            errors.append(FieldError.duplicate(path.index(i), name))
        seen.add(name)
    return errors
