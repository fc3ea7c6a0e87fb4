"""Omission of empty structs, as Go's `omitzero`.

A `status` that defaults to an empty struct is convenient to read, but `"status":{}` in JSON would own a field that was
not set. msgspec omits plain defaults, but not these.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from ostinato.api.serializer.type_info import Field, TypeInfo, fields_of


def omit_zero_structs(struct: msgspec.Struct) -> msgspec.Struct:
    """Return the struct, or a copy without empty structs that shares the unchanged parts."""
    changes: dict[str, Any] | None = None
    for attribute, empty, info in _steps(type(struct)):
        value = getattr(struct, attribute)
        if value is None:
            continue
        if empty is not None and value == empty:
            kept: Any = msgspec.UNSET
        else:
            kept = value if info is None else _omit_in_value(value, info)
        if kept is not value:
            changes = changes or {}
            changes[attribute] = kept
    return struct if changes is None else msgspec.structs.replace(struct, **changes)


def _omit_in_value(value: Any, info: TypeInfo) -> Any:
    if isinstance(value, msgspec.Struct):
        return omit_zero_structs(value)
    inner = info.inner
    if isinstance(value, list) and inner is not None:
        kept = [_omit_in_value(item, inner) for item in value]
        return value if all(new is old for new, old in zip(kept, value, strict=True)) else kept
    if isinstance(value, dict) and inner is not None:
        entries = {key: _omit_in_value(item, inner) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value


@cache
def _steps(cls: type[msgspec.Struct]) -> tuple[tuple[str, msgspec.Struct | None, TypeInfo | None], ...]:
    """Return the fields that can be an empty struct, or contain one (with their type)."""
    steps = []
    for field in fields_of(cls):
        below = field.type_info if any(map(_holds_empties, _structs_in(field.type_info))) else None
        if field.empty_struct is not None or below is not None:
            steps.append((field.attribute, field.empty_struct, below))
    return tuple(steps)


@cache
def _holds_empties(cls: type[msgspec.Struct]) -> bool:
    """Whether a struct can contain an empty struct."""
    seen: set[type[msgspec.Struct]] = set()
    waiting = [cls]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            fields: tuple[Field, ...] = fields_of(each)
            if any(field.empty_struct is not None for field in fields):
                return True
            for field in fields:
                waiting.extend(_structs_in(field.type_info))
    return False


def _structs_in(info: TypeInfo) -> list[type[msgspec.Struct]]:
    if info.form == "struct":
        return [info.type]
    inner = [] if info.inner is None else [info.inner]
    return [cls for part in (*inner, *info.variants) for cls in _structs_in(part)]
