"""Validation of conditions (metav1.Condition)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ostinato.api.validation import names
from ostinato.api.validation.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation.checks import checked, listed

_STATUSES = ("False", "True", "Unknown")
_LONGEST_REASON = 1024
_LONGEST_MESSAGE = 32 * 1024
_REASON = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_REASON_FORM = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    "'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    "'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"
)


def validate_conditions(conditions: Sequence[Json], path: Path) -> list[FieldError]:
    """Validate conditions: unique types, required fields."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        at, kind = path.index(i), condition.get("type", "")
        if kind in seen:
            errors.append(FieldError.duplicate(at.child("type"), kind))
        seen.add(kind)
        errors += _validate(condition, at)
    return errors


def _validate(condition: Json, path: Path) -> list[FieldError]:
    errors = checked(names.is_label_key, condition.get("type", ""), path.child("type"))
    errors += listed(condition.get("status", ""), _STATUSES, path.child("status"))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        at = path.child("observedGeneration")
        errors.append(FieldError.invalid(at, generation, "must be greater than or equal to zero"))
    if not condition.get("lastTransitionTime"):
        errors.append(FieldError.required(path.child("lastTransitionTime")))
    reason, at = condition.get("reason", ""), path.child("reason")
    if not reason:
        errors.append(FieldError.required(at))
    else:
        if not _REASON.fullmatch(reason):
            errors.append(FieldError.invalid(at, reason, _REASON_FORM))
        if names.byte_length(reason) > _LONGEST_REASON:
            errors.append(FieldError.too_long(at, _LONGEST_REASON))
    if names.byte_length(condition.get("message", "")) > _LONGEST_MESSAGE:
        errors.append(FieldError.too_long(path.child("message"), _LONGEST_MESSAGE))
    return errors
