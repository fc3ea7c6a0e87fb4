"""Validation errors with the values that the client sent.

Decoding drops empty lists and maps, which are not stored; kube-apiserver's messages show them. An invalid object is
therefore validated again with its empty lists and maps restored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ostinato.api.errors import Invalid
from ostinato.api.validation.field_errors import FieldError
from ostinato.server.request.context import Context
from ostinato.server.resources.strategy import Json


def invalid(context: Context, obj: Json, name: str, check: Callable[[], list[FieldError]]) -> Invalid | None:
    """Return the error for an invalid object; None if it is valid. `check` returns its validation errors."""
    errors = check()
    if not errors:
        return None
    sent = context.request.sent
    if sent is not None and not context.resource.custom and _restore(obj, sent()):
        again = check()
        if [(error.type, error.field) for error in again] == [(error.type, error.field) for error in errors]:
            errors = again
    return Invalid.of(context.resource.storage_gvk.group_kind, name, errors)


def _restore(obj: Any, sent: Any) -> bool:
    """Restore empty lists and maps that the object dropped; return whether there were any."""
    if isinstance(sent, dict) and isinstance(obj, dict):
        empty = {key: value for key, value in sent.items() if obj.get(key) is None and value in ([], {})}
        obj.update(empty)
        below = [
            _restore(obj[key], value)
            for key, value in sent.items()
            if key in obj and obj[key] is not value and key != "managedFields"  # shared among objects
        ]
        return bool(empty) or any(below)
    if isinstance(sent, list) and isinstance(obj, list) and len(sent) == len(obj):
        found = [_restore(*pair) for pair in zip(obj, sent, strict=True)]
        return any(found)
    return False
