"""Omission of fields that were not set.

- Empty structs, as Go's `omitzero`: a `status` that defaults to an empty struct is convenient to read, but
  `"status":{}` in JSON would own a field that was not set.
- Fields of classes with defaults other than None: msgspec cannot tell a field that was set to its default from one that
  was not set (`ostinato.api.struct`).
- Fields of dataclasses that are None. A dataclass does not record which fields were set, so all others are encoded.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from ostinato.api.serializer.generics import class_of
from ostinato.api.serializer.type_info import Field, TypeInfo, fields_of
from ostinato.api.struct import is_default


class _Step(msgspec.Struct, frozen=True):
    """What to do with one field."""

    attribute: str
    is_recorded: bool  # omitted if it has its default and was not set
    default: Any
    empty: msgspec.Struct | None  # omitted if it equals this
    below: TypeInfo | None  # its type, if it contains structs with steps


def omit_zero_structs(struct: msgspec.Struct) -> msgspec.Struct:
    """Return the struct, or a copy without unset fields that shares the unchanged parts."""
    return _omit(struct, type(struct))


def _omit(struct: msgspec.Struct, cls: Any) -> msgspec.Struct:
    """`cls`: its class, with type arguments if it is generic."""
    changes: dict[str, Any] | None = None
    explicit = getattr(struct, "__explicit__", None) or ()
    for step in _steps(cls):
        value = getattr(struct, step.attribute)
        if step.is_recorded and (value is None or (step.attribute not in explicit and is_default(value, step.default))):
            kept: Any = msgspec.UNSET
        elif value is None:
            continue
        elif step.empty is not None and value == step.empty and not _sets_any(value):
            kept = msgspec.UNSET
        else:
            kept = value if step.below is None else _omit_in_value(value, step.below)
        if kept is not value:
            changes = changes or {}
            changes[step.attribute] = kept
    return struct if changes is None else msgspec.structs.replace(struct, **changes)


def _sets_any(struct: msgspec.Struct) -> bool:
    """Whether fields of a struct that equals its default were set, in the struct itself or below."""
    if getattr(struct, "__explicit__", None):
        return True
    below = (getattr(struct, step.attribute) for step in _steps(type(struct)))
    return any(_sets_any(value) for value in below if isinstance(value, msgspec.Struct))


def _omit_in_value(value: Any, info: TypeInfo) -> Any:
    if isinstance(value, msgspec.Struct):
        if info.type is type(value):  # the usual case
            return _omit(value, info.type)
        known = (each.type for each in (info, *info.variants) if each.form == "struct")
        return _omit(value, next((cls for cls in known if class_of(cls) is type(value)), type(value)))
    if hasattr(type(value), "__dataclass_fields__"):
        return _dataclass_fields(value)
    inner = info.inner
    if isinstance(value, list) and inner is not None:
        kept = [_omit_in_value(item, inner) for item in value]
        return value if all(new is old for new, old in zip(kept, value, strict=True)) else kept
    if isinstance(value, dict) and inner is not None:
        entries = {key: _omit_in_value(item, inner) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value


def _dataclass_fields(value: Any) -> dict[str, Any]:
    cls: Any = type(value)
    fields = ((field, getattr(value, field.attribute)) for field in fields_of(cls))
    return {field.wire: _omit_in_value(item, field.type_info) for field, item in fields if item is not None}


@cache
def _steps(cls: Any) -> tuple[_Step, ...]:  # Any: a struct class
    """Return the fields that can be omitted, or contain something that can."""
    defaults = getattr(class_of(cls), "__value_defaults__", {})
    steps = []
    for field in fields_of(cls):
        below = field.type_info if any(map(_has_steps, _structs_in(field.type_info))) else None
        recorded = field.attribute in defaults
        if recorded or field.empty_struct is not None or below is not None:
            steps.append(_Step(field.attribute, recorded, defaults.get(field.attribute), field.empty_struct, below))
    return tuple(steps)


@cache
def _has_steps(cls: Any) -> bool:  # Any: a struct or dataclass
    """Whether a struct, or one below it, has fields that can be omitted; so has every dataclass."""
    seen: set[type[Any]] = set()
    waiting = [cls]
    while waiting:
        each = waiting.pop()
        if each not in seen:
            seen.add(each)
            cls = class_of(each)
            if hasattr(cls, "__dataclass_fields__") or getattr(cls, "__value_defaults__", None):
                return True
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
