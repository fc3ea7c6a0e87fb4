"""Conditions: aspects of an object's state, each True, False or Unknown, with the time of its last change.

    set_condition(widget, Condition(type="Ready", status="True", reason="AllUp"), now)

- Functions take an object, typed or a dict, for its `status.conditions`; or any list of conditions.
- `lastTransitionTime` changes only with the status: a new message is not a transition.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ostinato.api.accessors import describe
from ostinato.api.codec import ObjectError, from_dict, to_dict
from ostinato.api.meta import Condition
from ostinato.api.object import Object
from ostinato.api.serializer.type_info import fields_of
from ostinato.api.time import Time

Holder = Object | dict[str, Any] | list[Any]


def conditions_of(holder: Holder) -> list[Any]:
    """Return the conditions, typed or dicts, read-only."""
    if isinstance(holder, list):
        return holder
    if isinstance(holder, Object):
        found = getattr(getattr(holder, "status", None), "conditions", None)
    else:
        status = holder.get("status")
        found = status.get("conditions") if isinstance(status, dict) else None
    return found if isinstance(found, list) else []


def find_condition(holder: Holder, kind: str) -> Condition | None:
    """Return a copy of the condition of this type."""
    found = _find(conditions_of(holder), kind)
    if found is None:
        return None
    return from_dict(Condition, found if isinstance(found, dict) else to_dict(found))


def is_condition_true(holder: Holder, kind: str) -> bool:
    return has_condition(holder, kind, "True")


def is_condition_false(holder: Holder, kind: str) -> bool:
    """Whether the condition exists and is False."""
    return has_condition(holder, kind, "False")


def has_condition(holder: Holder, kind: str, status: str) -> bool:
    found = _find(conditions_of(holder), kind)
    return found is not None and _get(found, "status", "status") == status


def set_condition(holder: Holder, condition: Condition, now: Time) -> bool:
    """Add or update the condition of this type. Returns whether anything changed.

    `now` is the transition time if the status changes and the condition has no `last_transition_time`.
    """
    conditions = _writable(holder)
    current = _find(conditions, condition.type)
    time = condition.last_transition_time or now
    if current is None:
        added = msgspec.structs.replace(condition, last_transition_time=time)
        conditions.append(_as_item(holder, conditions, added))
        return True
    changes: dict[str, Any] = {}
    if _get(current, "status", "status") != condition.status:
        changes |= {"status": condition.status, "last_transition_time": time}
    for attribute, wire, wanted in (
        ("reason", "reason", condition.reason),
        ("message", "message", condition.message),
        ("observed_generation", "observedGeneration", condition.observed_generation),
    ):
        if (_get(current, attribute, wire) or None) != (wanted or None):
            changes[attribute] = wanted
    changed = False
    for attribute, value in changes.items():
        changed |= _set(current, attribute, value)
    return changed


def remove_condition(holder: Holder, kind: str) -> bool:
    """Remove the condition of this type. Returns whether it existed."""
    conditions = conditions_of(holder)
    kept = [each for each in conditions if _type(each) != kind]
    if len(kept) == len(conditions):
        return False
    conditions[:] = kept
    return True


def _find(conditions: list[Any], kind: str) -> Any:
    return next((each for each in conditions if _type(each) == kind), None)


def _type(condition: Any) -> Any:
    return _get(condition, "type", "type")


def _get(condition: Any, attribute: str, wire: str) -> Any:
    return condition.get(wire) if isinstance(condition, dict) else getattr(condition, attribute, None)


def _set(condition: Any, attribute: str, value: Any) -> bool:
    """Set a field, unless the condition lacks it, as some built-in ones lack `observed_generation`."""
    if isinstance(condition, dict):
        wire = {field.attribute: field.wire for field in fields_of(Condition)}[attribute]
        if value is None:
            condition.pop(wire, None)
        else:
            condition[wire] = str(value) if isinstance(value, Time) else value
        return True
    if not hasattr(condition, attribute):
        return False
    setattr(condition, attribute, value)
    return True


def _writable(holder: Holder) -> list[Any]:
    """Return the list to modify; created in a dict. Raises ObjectError for a typed object without one."""
    if isinstance(holder, list):
        return holder
    if isinstance(holder, Object):
        conditions = getattr(getattr(holder, "status", None), "conditions", None)
        if not isinstance(conditions, list):
            raise ObjectError(f"{describe(holder)}: status.conditions: not a list; set a status with conditions first")
        return conditions
    status = _made(holder, "status", {}, "status")
    conditions = _made(status, "conditions", [], "status.conditions")
    assert isinstance(conditions, list)
    return conditions


def _made(parent: dict[str, Any], field: str, empty: Any, path: str) -> Any:
    value = parent.get(field)
    if value is None:
        value = parent[field] = empty
    if type(value) is not type(empty):
        raise ObjectError(f"{path}: expected {type(empty).__name__}, got {type(value).__name__}")
    return value


def _as_item(holder: Holder, conditions: list[Any], condition: Condition) -> Any:
    """Return the condition in the form of the other items."""
    if isinstance(holder, Object):
        return from_dict(_item_class(holder), to_dict(condition))
    beside = next((each for each in conditions if isinstance(each, dict | msgspec.Struct)), None)
    if isinstance(holder, dict) or isinstance(beside, dict):
        return to_dict(condition)
    return condition if beside is None else from_dict(type(beside), to_dict(condition))


def _item_class(holder: Object) -> type[msgspec.Struct]:
    """Return the class of an object's conditions; built-in kinds have their own."""
    status: type[msgspec.Struct] = type(holder.status)  # type: ignore[attr-defined]  # checked by _writable
    info = next(field.type_info for field in fields_of(status) if field.attribute == "conditions")
    return info.inner.type if info.inner is not None and info.inner.form == "struct" else Condition
