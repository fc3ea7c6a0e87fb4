"""Filters: for which objects and changes a handler is called.

| filter | the handler is called if |
|---|---|
| `labels={"tier": "web"}` | the label has this value; `PRESENT`, `ABSENT`, or a function of the value |
| `annotations={...}` | the same with annotations |
| `field="spec.size"` | the object has the field; of `on.update` and `on.field`, if it has changed |
| `value=5` | the field has, or had before the change, this value; `PRESENT`, `ABSENT`, or a function |
| `old=4`, `new=5` | it had this value before the change, has it after the change |
| `when=function` | the function returns true |

Functions receive the value first, if there is one, and then the arguments of the handler by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from inspect import iscoroutinefunction
from typing import Any, Final

import msgspec

from ostinato.frontends.handlers.objects.views import resolve

Arguments = Callable[[], Mapping[str, Any]]


class Presence(Enum):
    PRESENT = "present"
    ABSENT = "absent"


PRESENT: Final = Presence.PRESENT
ABSENT: Final = Presence.ABSENT
_MISSING: Final = object()


class Change(msgspec.Struct, frozen=True):
    """The state that filters look at. `old` and `new`: essences; None if there is no change to look at."""

    body: Mapping[str, Any]
    arguments: Arguments
    old: Mapping[str, Any] | None = None
    new: Mapping[str, Any] | None = None


class Filters(msgspec.Struct, frozen=True, kw_only=True):
    labels: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    field: tuple[str, ...] = ()
    value: Any = None
    old: Any = None
    new: Any = None
    when: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for name in ("labels", "annotations"):
            given = getattr(self, name)
            if given is not None and not isinstance(given, Mapping):
                raise TypeError(f'{name}: {given!r} is not a dict; write {name}={{"name": "value"}}')
            for key, value in (given or {}).items():
                if value is None:
                    raise ValueError(f"{name}: {key}: None is not a value; write PRESENT or ABSENT")
        if self.when is not None and (not callable(self.when) or iscoroutinefunction(self.when)):
            raise TypeError(f"when: {self.when!r} is not a plain function")
        if not self.field and any(each is not None for each in (self.value, self.old, self.new)):
            raise TypeError('value=, old= and new= need a field; add field="spec.size"')
        if self.value is not None and (self.old is not None or self.new is not None):
            raise TypeError("value= cannot be combined with old= and new=")

    def match_object(self, change: Change) -> bool:
        """Return whether the object is one that the handler may be called for, whatever has changed."""
        metadata = change.body.get("metadata") or {}
        return (
            _match_metadata(self.labels, metadata.get("labels") or {}, change)
            and _match_metadata(self.annotations, metadata.get("annotations") or {}, change)
            and self._match_value(change)
            and (self.when is None or bool(self.when(**change.arguments())))
        )

    def match_change(self, change: Change, *, needs_change: bool) -> bool:
        """Return whether the change of the field is one that the handler is called for."""
        if not self.field or change.new is None:
            return True
        old = resolve(change.old, self.field, _MISSING)
        new = resolve(change.new, self.field, _MISSING)
        if needs_change and old == new:
            return False
        return (self.old is None or _match(self.old, old, change)) and (
            self.new is None or _match(self.new, new, change)
        )

    def _match_value(self, change: Change) -> bool:
        if not self.field:
            return True
        sides = [change.body] if change.new is None else [change.new, change.old]
        values = [resolve(each, self.field, _MISSING) for each in sides]
        wanted = PRESENT if self.value is None else self.value
        return any(_match(wanted, each, change) for each in values)


def _match_metadata(wanted: Mapping[str, Any] | None, found: Mapping[str, Any], change: Change) -> bool:
    return all(_match(value, found.get(name, _MISSING), change) for name, value in (wanted or {}).items())


def _match(wanted: Any, value: Any, change: Change) -> bool:
    if wanted is PRESENT:
        return value is not _MISSING
    if wanted is ABSENT:
        return value is _MISSING
    if callable(wanted):
        return bool(wanted(None if value is _MISSING else value, **change.arguments()))
    return bool(wanted == value)


def not_(function: Callable[..., Any]) -> Callable[..., bool]:
    """Return a filter that is true where the function is not."""
    return lambda *args, **kwargs: not function(*args, **kwargs)


def all_(functions: list[Callable[..., Any]]) -> Callable[..., bool]:
    """Return a filter that is true where all functions are."""
    return lambda *args, **kwargs: all(each(*args, **kwargs) for each in functions)


def any_(functions: list[Callable[..., Any]]) -> Callable[..., bool]:
    """Return a filter that is true where one of the functions is."""
    return lambda *args, **kwargs: any(each(*args, **kwargs) for each in functions)


def none_(functions: list[Callable[..., Any]]) -> Callable[..., bool]:
    """Return a filter that is true where none of the functions is."""
    return lambda *args, **kwargs: not any(each(*args, **kwargs) for each in functions)
