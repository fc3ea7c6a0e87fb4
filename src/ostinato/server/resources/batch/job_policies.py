"""Validation of a Job's podFailurePolicy and successPolicy."""

from __future__ import annotations

from typing import Final

from ostinato.api.text.go_format import quote
from ostinato.api.validation import names
from ostinato.api.validation.field_errors import OMIT, FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, not_negative
from ostinato.server.resources.validation.internal_values import as_internal

_ACTIONS: Final = ["Count", "FailIndex", "FailJob", "Ignore"]
_OPERATORS: Final = ["In", "NotIn"]
_STATUSES: Final = ["False", "True", "Unknown"]
_MOST_RULES: Final = 20
_MOST_CONDITIONS: Final = 20
_MOST_CODES: Final = 255
_LONGEST_INDEXES: Final = 64 * 1024


def validate_failure_policy(spec: Json, path: Path) -> list[FieldError]:
    rules, at = spec["podFailurePolicy"].get("rules") or [], path.child("podFailurePolicy", "rules")
    errors = [] if len(rules) <= _MOST_RULES else [FieldError.too_many(at, len(rules), _MOST_RULES)]
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {c.get("name") for field in ("containers", "initContainers") for c in pod.get(field) or ()}
    for i, rule in enumerate(rules):
        errors += _failure_rule(spec, rule, at.index(i), containers)
    return errors


def _one_of(value: str, supported: list[str], path: Path) -> list[FieldError]:
    if not value:
        return [FieldError.required(path, f"valid values: [{' '.join(map(quote, supported))}]")]
    return [] if value in supported else [FieldError.not_supported(path, value, supported)]


def _failure_rule(spec: Json, rule: Json, path: Path, containers: set[str]) -> list[FieldError]:
    action = rule.get("action", "")
    errors = _one_of(action, _ACTIONS, path.child("action"))
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        errors.append(FieldError.invalid(path.child("action"), action, "requires the backoffLimitPerIndex to be set"))
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    if codes is not None:
        errors += _exit_codes(codes, path.child("onExitCodes"), containers)
    at = path.child("onPodConditions")
    if len(conditions) > _MOST_CONDITIONS:
        errors.append(FieldError.too_many(at, len(conditions), _MOST_CONDITIONS))
    for i, condition in enumerate(conditions):
        errors += checked(names.is_qualified_name, condition.get("type", ""), at.index(i).child("type"))
        errors += _one_of(condition.get("status", ""), _STATUSES, at.index(i).child("status"))
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        errors.append(FieldError.invalid(path, OMIT, detail))
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        errors.append(FieldError.invalid(path, OMIT, detail))
    return errors


def _exit_codes(codes: Json, path: Path, containers: set[str]) -> list[FieldError]:
    operator, container, values = codes.get("operator", ""), codes.get("containerName"), codes.get("values")
    errors = _one_of(operator, _OPERATORS, path.child("operator"))
    if container is not None and container not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        errors.append(FieldError.invalid(path.child("containerName"), container, detail))
    at = path.child("values")
    if not values:
        return [*errors, FieldError.invalid(at, values, "at least one value is required")]
    if len(values) > _MOST_CODES:
        errors.append(FieldError.too_many(at, len(values), _MOST_CODES))
    seen: set[int] = set()
    for i, code in enumerate(values):
        if operator == "In" and code == 0:
            errors.append(FieldError.invalid(at.index(i), code, "must not be 0 for the In operator"))
        if code in seen:
            errors.append(FieldError.duplicate(at.index(i), code))
        seen.add(code)
    if values != sorted(values):
        errors.append(FieldError.invalid(at, values, "must be ordered"))
    return errors


def validate_success_policy(spec: Json, path: Path) -> list[FieldError]:
    policy, at = spec["successPolicy"], path.child("successPolicy")
    rules = policy.get("rules")
    if spec.get("completionMode") != "Indexed":
        return [
            FieldError.invalid(at, as_internal("batch.v1.SuccessPolicy", policy), "requires indexed completion mode")
        ]
    errors, at = [], at.child("rules")
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        errors.append(FieldError.required(at, detail))
    elif len(rules) > _MOST_RULES:
        errors.append(FieldError.too_many(at, len(rules), _MOST_RULES))
    for i, rule in enumerate(rules or ()):
        errors += _success_rule(rule, spec.get("completions") or 0, at.index(i))
    return errors


def _success_rule(rule: Json, completions: int, path: Path) -> list[FieldError]:
    indexes, count, errors, total = rule.get("succeededIndexes"), rule.get("succeededCount"), [], 0
    if indexes is None and count is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        errors.append(FieldError.required(path, detail))
    if indexes is not None:
        at = path.child("succeededIndexes")
        if names.byte_length(indexes) > _LONGEST_INDEXES:
            errors.append(FieldError.too_long(at, _LONGEST_INDEXES))
        try:
            total = count_indexes(indexes, completions)
        except ValueError as error:
            errors.append(FieldError.invalid(at, indexes, f"error parsing succeededIndexes: {error}"))
    if count is not None:
        at = path.child("succeededCount")
        errors += not_negative(count, at)
        if count > completions:
            detail = f"must be less than or equal to {completions} (the number of specified completions)"
            errors.append(FieldError.invalid(at, count, detail))
        if indexes is not None and count > total:
            what = "the number of indexes in the specified succeededIndexes field"
            errors.append(FieldError.invalid(at, count, f"must be less than or equal to {total} ({what})"))
    return errors


def count_indexes(text: str, completions: int) -> int:
    """Count the indexes in a text such as `1,3-5`; ValueError if it is malformed."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        ends = part.split("-")
        if len(ends) > 2:
            rule = "that an index interval can have at most two parts separated by '-'"
            raise ValueError(f"the fragment {quote(part)} violates the requirement {rule}")
        first, *rest = (_index(end, completions) for end in ends)
        if rest and first >= rest[0]:
            raise ValueError(f"non-increasing order, previous: {first}, current: {rest[0]}")
        if last >= first:
            raise ValueError(f"non-increasing order, previous: {last}, current: {first}")
        last = rest[0] if rest else first
        total += last - first + 1
    return total


def _index(text: str, completions: int) -> int:
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"cannot convert string to integer for index: {quote(text)}")
    if int(text) >= completions:
        raise ValueError(f"too large index: {quote(text)}")
    return int(text)
