"""Conditions as most kinds have them: what is wrong with a list of them."""

from __future__ import annotations

import re

from ostinato.api import names
from ostinato.api.field_errors import FieldError, Path
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.validation import checked, listed

_STATES = ("False", "True", "Unknown")
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024
_REASON = r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_REASON_RULE = names.pattern_message(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def validate_conditions(conditions: list[Json], path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        kind, here = condition.get("type", ""), path.index(i)
        if kind in seen:
            errors.append(FieldError.duplicate(here.child("type"), kind))
        seen.add(kind)
        errors += _validate(condition, here)
    return errors


def _validate(condition: Json, path: Path) -> list[FieldError]:
    errors = checked(names.is_qualified_name, condition.get("type", ""), path.child("type"))
    errors += listed(condition.get("status", ""), _STATES, path.child("status"))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        detail = "must be greater than or equal to zero"
        errors.append(FieldError.invalid(path.child("observedGeneration"), generation, detail))
    if not condition.get("lastTransitionTime"):
        errors.append(FieldError.required(path.child("lastTransitionTime")))
    reason = condition.get("reason", "")
    if not reason:
        errors.append(FieldError.required(path.child("reason")))
    else:
        if not _is_reason(reason):
            errors.append(FieldError.invalid(path.child("reason"), reason, _REASON_RULE))
        if names.byte_length(reason) > _LONGEST_REASON:
            errors.append(FieldError.too_long(path.child("reason"), _LONGEST_REASON))
    if names.byte_length(condition.get("message", "")) > _LONGEST_MESSAGE:
        errors.append(FieldError.too_long(path.child("message"), _LONGEST_MESSAGE))
    return errors
