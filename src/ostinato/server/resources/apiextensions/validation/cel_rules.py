"""Validation of CEL rules in a schema (`x-kubernetes-validations`): form, compilation, estimated cost.

The cost of a rule is the worst-case cost of one evaluation times the maximum number of its values in an object.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.cel.check.declarations import Declaration, declared
from ostinato.cel.cost.ranges import MOST
from ostinato.cel.identifiers import escape
from ostinato.server.resources.apiextensions.validation.internal_form import shown_rule
from ostinato.server.schema.rules.field_paths import FieldPathError, normal_path
from ostinato.server.schema.rules.rule import Rule, cardinality, rules_of

Schema = Mapping[str, Any]

PER_RULE: Final = 10_000_000
PER_DEFINITION: Final = 100_000_000
_REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_BREAKS: Final = re.compile(r"[\n\r]")
_MOST_NAMED: Final = 4  # maximum number of rules named if the total cost is exceeded


def text_faults(schema: Schema, path: Path, readable: Callable[[Schema], bool]) -> list[FieldError]:
    """Validate the rules at one schema node, except for their expressions.

    `fieldPath` is resolved only in schemas that can be parsed.
    """
    errors: list[FieldError] = []
    for i, rule in enumerate(schema.get("x-kubernetes-validations") or ()):
        at = path.child("x-kubernetes-validations").index(i)
        errors += _message_faults(rule, at)
        expression = rule.get("messageExpression") or ""
        if expression and not expression.strip():
            why = "messageExpression must be non-empty if specified"
            errors.append(FieldError.required(at.child("messageExpression"), why))
        reason = rule.get("reason")
        if reason is not None and reason not in _REASONS:
            errors.append(FieldError.not_supported(at.child("reason"), reason, _REASONS))
        errors += _path_faults(rule, schema, at.child("fieldPath"), readable)
    return errors


def _message_faults(rule: Schema, at: Path) -> list[FieldError]:
    text, message = (rule.get("rule") or "").strip(), rule.get("message") or ""
    if not text:
        return [FieldError.required(at.child("rule"), "rule is not specified")]
    if message and not message.strip():
        return [FieldError.invalid(at.child("message"), message, "must be non-empty if specified")]
    if _BREAKS.search(message.strip()):
        return [FieldError.invalid(at.child("message"), message, "must not contain line breaks")]
    if _BREAKS.search(text) and not message.strip():
        why = "message must be specified if rule contains line breaks"
        return [FieldError.required(at.child("message"), why)]
    return []


def _path_faults(rule: Schema, schema: Schema, at: Path, readable: Callable[[Schema], bool]) -> list[FieldError]:
    text = rule.get("fieldPath") or ""
    if not text:
        return []
    errors: list[FieldError] = []
    if not text.strip():
        errors.append(FieldError.invalid(at, text, "must be non-empty if specified"))
    if _BREAKS.search(text):
        errors.append(FieldError.invalid(at, text, "must not contain line breaks"))
    try:
        normal_path(text, schema)
    except FieldPathError:
        if readable(schema):
            errors.append(FieldError.invalid(at, text, "must be a valid path"))
    return errors


class _Place(NamedTuple):
    """A schema node: its CEL declaration, the cardinality of its values, and where transition rules are not allowed."""

    schema: Schema
    path: Path
    declaration: Declaration | None
    most: int | None  # maximum cardinality; None: bounded by the request size only
    no_past: Path | None = None  # the node below which old values cannot be correlated


def expression_faults(schema: Schema, path: Path, sound: Callable[[Schema, Path], bool]) -> list[FieldError]:
    """Validate the expressions of all rules of a schema, except at nodes that are invalid."""
    costs: list[tuple[int, Path]] = []
    root = _Place(schema, path, declared(schema, root=True, name="selfType"), 1)
    errors = _below(root, costs, sound)
    total = min(sum(cost for cost, _ in costs), MOST)
    if total > PER_DEFINITION:
        dear = sorted((c for c in costs if c[0] >= PER_DEFINITION // 100), key=lambda c: -c[0])[:_MOST_NAMED]
        why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
        errors += [FieldError.forbidden(at, why) for _, at in dear]
        what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        errors.append(FieldError.forbidden(path, _too_expensive(what, total, PER_DEFINITION)))
    return errors


def _below(place: _Place, costs: list[tuple[int, Path]], sound: Callable[[Schema, Path], bool]) -> list[FieldError]:
    schema, path = place.schema, place.path
    errors: list[FieldError] = []
    count = _times(place.most, _most_elements(schema))
    inner = place.declaration.items if place.declaration is not None else None
    additional, items = schema.get("additionalProperties"), schema.get("items")
    if isinstance(additional, Mapping):
        below = _Place(additional, path.child("additionalProperties"), inner, count, place.no_past)
        errors += _below(below, costs, sound)
    for name, field in (schema.get("properties") or {}).items():
        at = path.child("properties").key(name)
        errors += _below(_Place(field, at, _field(place.declaration, name), count, place.no_past), costs, sound)
    if isinstance(items, Mapping):
        no_past = place.no_past if schema.get("x-kubernetes-list-type") == "map" else path
        errors += _below(_Place(items, path.child("items"), inner, count, no_past), costs, sound)
    if schema.get("x-kubernetes-validations") and sound(schema, path):
        errors += _own(place, costs)
    return errors


def _own(place: _Place, costs: list[tuple[int, Path]]) -> list[FieldError]:
    embedded = bool(place.schema.get("x-kubernetes-embedded-resource"))
    declaration = place.declaration or declared(place.schema, root=embedded, name="selfType")
    where = place.path.child("x-kubernetes-validations")
    if declaration is None:
        why = (
            "internal error: failed to construct type information for x-kubernetes-validations rules: unable to "
            "convert structural schema to CEL declarations"
        )
        return [FieldError.internal(where, why)]
    errors: list[FieldError] = []
    for i, rule in enumerate(rules_of(place.schema, declaration)):
        at = where.index(i)
        cost = min(rule.max_cost * (cardinality(declaration) if place.most is None else place.most), MOST)
        if cost > PER_RULE:
            errors.append(FieldError.forbidden(at.child("rule"), _too_expensive("estimated rule cost", cost, PER_RULE)))
        costs.append((cost, at.child("rule")))
        if rule.error:
            errors.append(FieldError.invalid(at.child("rule"), shown_rule(rule.raw), rule.error))
        errors += _message_expression(rule, at.child("messageExpression"), costs)
        errors += _old_self_faults(rule, at, place.no_past)
    return errors


def _message_expression(rule: Rule, at: Path, costs: list[tuple[int, Path]]) -> list[FieldError]:
    if rule.message_error:
        return [FieldError.invalid(at, shown_rule(rule.raw), rule.message_error)]
    if rule.message is None:
        return []
    costs.append((rule.message_cost, at))
    if rule.message_cost <= PER_RULE:
        return []
    return [FieldError.forbidden(at, _too_expensive("estimated messageExpression cost", rule.message_cost, PER_RULE))]


def _old_self_faults(rule: Rule, at: Path, no_past: Path | None) -> list[FieldError]:
    if rule.uses_old:
        if no_past is None:
            return []
        why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {no_past}"
        return [FieldError.invalid(at.child("rule"), rule.raw["rule"], why)]
    optional = rule.raw.get("optionalOldSelf")
    if optional is None:
        return []
    why = "may not be set if oldSelf is not used in rule"
    return [FieldError.invalid(at.child("optionalOldSelf"), optional, why)]


def _field(declaration: Declaration | None, name: str) -> Declaration | None:
    key = escape(name)
    return declaration.fields.get(key) if declaration is not None and key is not None else None


def _most_elements(schema: Schema) -> int | None:
    """The maximum number of values below a schema node."""
    if schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        most = schema.get("maxProperties")
    elif schema.get("type") == "array":
        most = schema.get("maxItems")
    else:
        return 1
    return None if most is None else max(most, 0)


def _times(count: int | None, most: int | None) -> int | None:
    return None if count is None or most is None else min(count * most, MOST)


def _too_expensive(what: str, cost: int, limit: int) -> str:
    times = cost / limit
    factor = "more than 100x" if times > 100 else f"{times:f}x" if times < 1.5 else f"{times:.1f}x"
    return (
        f"{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, "
        "and maxLength where arrays, maps, and strings are declared)"
    )
