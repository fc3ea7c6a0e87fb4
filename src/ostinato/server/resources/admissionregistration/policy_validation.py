"""Validation of the expressions of webhooks and policies, and of the fields beside them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.cel.expression import Expression
from ostinato.cel.identifiers import is_identifier
from ostinato.server.resources.admissionregistration.policy_expressions import Compiler, ExpressionError
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked

_SPEC: Final = Path("spec")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_MOST_CONDITIONS: Final = 64
_MOST_ANNOTATIONS: Final = 20
_LONGEST_VALUE: Final = 5 * 1024
_BREAKS: Final = re.compile(r"[\n\r]")


def _fault(compile_: Callable[[str], Any], text: str, path: Path) -> list[FieldError]:
    """Validate an expression; return its error, if any."""
    try:
        compile_(text)
    except ExpressionError as error:
        if error.internal:
            return [FieldError.internal(path, str(error))]
        return [FieldError.invalid(path, text, str(error))]
    return []


def conditions(items: list[Json], path: Path, spec: Json | None = None) -> list[FieldError]:
    """Validate the matchConditions of a webhook or a policy; `spec` is the policy's."""
    compiler = Compiler({"paramKind": (spec or {}).get("paramKind")})
    errors: list[FieldError] = []
    if len(items) > _MOST_CONDITIONS:
        errors.append(FieldError.too_many(path, len(items), _MOST_CONDITIONS))
    seen: set[str] = set()
    for i, item in enumerate(items):
        at, name, text = path.index(i), item.get("name", ""), item.get("expression", "").strip()
        if text:
            errors += _fault(compiler.condition, text, at.child("expression"))
        else:
            errors.append(FieldError.required(at.child("expression")))
        if name:
            errors += checked(names.is_qualified_name, name, at.child("name"))
            if name in seen:
                errors.append(FieldError.duplicate(at.child("name"), name))
            seen.add(name)
        else:
            errors.append(FieldError.required(at.child("name")))
    return errors


def variables(spec: Json, compiler: Compiler) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, item in enumerate(spec.get("variables") or ()):
        at, name, text = _SPEC.child("variables").index(i), item.get("name", ""), item.get("expression", "")
        if not name.strip():
            errors.append(FieldError.required(at.child("name"), "name is not specified"))
        elif not is_identifier(name):
            errors.append(FieldError.invalid(at.child("name"), name, "must be a valid CEL identifier"))
        if not text.strip():
            errors.append(FieldError.required(at.child("expression"), "expression is not specified"))
            continue
        errors += _fault(lambda text, name=name: compiler.add_variable(name, text), text, at.child("expression"))  # type: ignore[misc]
    return errors


def validations(spec: Json, compiler: Compiler) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, item in enumerate(spec.get("validations") or ()):
        errors += _validation(item, _SPEC.child("validations").index(i), compiler)
    return errors


def _validation(item: Json, at: Path, compiler: Compiler) -> list[FieldError]:
    text, message_expression, message = (
        item.get("expression", ""),
        item.get("messageExpression", ""),
        item.get("message", ""),
    )
    if text.strip():
        errors = _fault(compiler.validation, text, at.child("expression"))
    else:
        errors = [FieldError.required(at.child("expression"), "expression is not specified")]
    if message_expression and not message_expression.strip():
        errors.append(
            FieldError.invalid(at.child("messageExpression"), message_expression, "must be non-empty if specified")
        )
    elif message_expression:
        errors += _fault(compiler.message, message_expression, at.child("messageExpression"))
    if message and not message.strip():
        errors.append(FieldError.invalid(at.child("message"), message, "must be non-empty if specified"))
    elif _BREAKS.search(message.strip()):
        errors.append(FieldError.invalid(at.child("message"), message, "must not contain line breaks"))
    reason = item.get("reason")
    if reason is not None and reason not in _REASONS:
        errors.append(FieldError.not_supported(at.child("reason"), reason, _REASONS))
    return errors


def audit_annotations(policy: str, spec: Json, compiler: Compiler) -> list[FieldError]:
    items, path = spec.get("auditAnnotations") or (), _SPEC.child("auditAnnotations")
    errors: list[FieldError] = []
    if len(items) > _MOST_ANNOTATIONS:
        why = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        shown = [{"Key": item.get("key", ""), "ValueExpression": item.get("valueExpression", "")} for item in items]
        errors.append(FieldError.invalid(path, shown, why))
    seen: set[str] = set()
    for i, item in enumerate(items):
        at, key, text = path.index(i), item.get("key", ""), item.get("valueExpression", "").strip()
        if policy:
            errors += checked(names.is_qualified_name, f"{policy}/{key}", at.child("key"))
        else:
            errors.append(FieldError.invalid(at.child("key"), key, "requires metadata.name be non-empty"))
        at_value = at.child("valueExpression")
        if not text:
            errors.append(FieldError.required(at_value, "valueExpression is not specified"))
        elif len(text.encode()) > _LONGEST_VALUE:
            errors.append(FieldError.required(at_value, f"must not exceed {_LONGEST_VALUE} bytes in length"))
        else:
            errors += _fault(compiler.annotation, text, at_value)
        if key in seen:
            errors.append(FieldError.duplicate(at.child("key"), key))
        seen.add(key)
    return errors


# Patch types: the field with the expression, and the function that compiles it.
_PATCHES: Final[dict[str, tuple[str, Callable[[Compiler, str], Expression]]]] = {
    "ApplyConfiguration": ("applyConfiguration", Compiler.configuration),
    "JSONPatch": ("jsonPatch", Compiler.patch),
}


def mutations(spec: Json, compiler: Compiler) -> list[FieldError]:
    path = _SPEC.child("mutations")
    if not spec.get("mutations"):
        return [FieldError.required(path, "mutations must contain at least one item")]
    errors: list[FieldError] = []
    for i, item in enumerate(spec["mutations"]):
        errors += _mutation(item, path.index(i), compiler)
    return errors


def _mutation(item: Json, at: Path, compiler: Compiler) -> list[FieldError]:
    kind = item.get("patchType", "")
    if not kind:
        return [FieldError.required(at.child("patchType"))]
    if kind not in _PATCHES:
        return [FieldError.not_supported(at.child("patchType"), kind, sorted(_PATCHES))]
    errors: list[FieldError] = []
    field, compile_ = _PATCHES[kind]
    if item.get(field) is None:
        errors.append(FieldError.required(at.child(field), f"must be specified when patchType is {kind}"))
    else:
        where, text = at.child(field).child("expression"), item[field].get("expression", "").strip()
        if text:
            errors += _fault(lambda text: compile_(compiler, text), text, where)
        else:
            errors.append(FieldError.required(where))
    for other, _ in _PATCHES.values():
        if other != field and item.get(other) is not None:
            why = f"must not be specified when patchType is {kind}"
            errors.append(FieldError.invalid(at.child(other), f"{{{other}}}", why))
    return errors
