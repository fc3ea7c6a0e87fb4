"""Predicates: which events a controller wants to hear of.

    watch_for(Widget, predicates=[generation_changed | label_changed])
    watches(ConfigMap, map_to=..., predicates=[having_labels("app=web") & ~deleted])

- A predicate is a function of an event; `Predicate` makes of one what can be joined by `&`, `|` and `~`.
- Several are all asked, in order, until one says no.
- The `…_changed` ones look at updates; everything else passes. A resync is an update in which nothing has changed.
- `generation_changed` lets changes of the status pass by, and those of labels and annotations.
- One that raises is reported and taken for a yes: a reconcile too many does no harm, one too few may.

A predicate saves work, not memory: the cache has the object all the same. `InformerSettings` save both.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction, signature
from typing import Any, TypeVar

from ostinato.cache.events import Added, Deleted, Event, Updated
from ostinato.cache.lister import selector_of
from ostinato.cache.store.entry import Entry
from ostinato.client.options import LabelSelection
from ostinato.client.views import Kind

T = TypeVar("T")

EventFunction = Callable[[Event], object]


class Predicate:
    """A function of an event, and ways to join it with others."""

    def __init__(self, function: EventFunction, name: str = "") -> None:
        check_predicate(function)
        self._function = function
        self._name = name or getattr(function, "__name__", "") or type(function).__name__

    def __call__(self, event: Event) -> bool:
        return bool(self._function(event))

    def __and__(self, other: EventFunction) -> Predicate:
        return all_of(self, other)

    def __or__(self, other: EventFunction) -> Predicate:
        return any_of(self, other)

    def __invert__(self) -> Predicate:
        return Predicate(lambda event: not self(event), f"~{self}")

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"<predicate {self}>"


def check_predicate(function: object, given: tuple[str, ...] = ("an event",)) -> None:
    """A TypeError for what cannot say yes or no at once, or to what it is `given`."""
    if not callable(function):
        raise TypeError(f"{function!r} is no predicate: give a function of an event, or one of ostinato.controllers")
    if iscoroutinefunction(function):
        name = getattr(function, "__name__", function)
        raise TypeError(f"predicate {name} is an async def, which is never awaited: make it a plain def")
    try:
        called = signature(function)
    except ValueError:  # a built-in one, which does not say
        return
    try:
        called.bind(*given)
    except TypeError:
        name = getattr(function, "__name__", function)
        raise TypeError(f"predicate {name}{called}: it is given {' and '.join(given)}, and nothing else") from None


def all_of(*predicates: EventFunction) -> Predicate:
    """What all of them let pass; they are asked in order, until one says no."""
    return Predicate(lambda event: all(each(event) for each in predicates), _joined(" & ", predicates))


def any_of(*predicates: EventFunction) -> Predicate:
    """What one of them lets pass; they are asked in order, until one says yes."""
    return Predicate(lambda event: any(each(event) for each in predicates), _joined(" | ", predicates))


def none_of(*predicates: EventFunction) -> Predicate:
    """What none of them lets pass."""
    return ~any_of(*predicates)


def on_update(function: Callable[[Entry, Entry], object], name: str = "") -> Predicate:
    """What a function of the old and the new state says; whatever is no update passes."""
    check_predicate(function, ("the old state", "the new one"))
    return Predicate(
        lambda event: function(event.old, event.new) if isinstance(event, Updated) else True,
        name or getattr(function, "__name__", ""),
    )


def where(kind: Kind[T], function: Callable[[T], object]) -> Predicate:
    """What a function of the object says, which is decoded for it: of an update, the new state."""
    check_predicate(function, ("the object",))
    return Predicate(lambda event: function(event.object.read(kind)), getattr(function, "__name__", ""))


def having_labels(labels: LabelSelection) -> Predicate:
    """Objects with these labels; of an update, either before or after it, so that who leaves is noticed."""
    selector = selector_of(labels)

    def matches(event: Event) -> bool:
        if isinstance(event, Updated) and selector.matches(event.old.labels):
            return True
        return selector.matches(event.object.labels)

    return Predicate(matches, f"having labels {selector}")


def in_namespaces(*namespaces: str) -> Predicate:
    """Objects in these namespaces."""
    return Predicate(lambda event: event.key.namespace in namespaces, f"in namespaces {', '.join(namespaces)}")


def _annotations(entry: Entry) -> dict[str, str]:
    return entry.metadata().metadata.annotations


resource_version_changed = on_update(lambda old, new: old.resource_version != new.resource_version, "version changed")
"""Not resyncs."""

generation_changed = on_update(lambda old, new: old.generation != new.generation, "generation changed")
"""Changes of what is wanted, as the server counts them; also the beginning of a deletion."""

label_changed = on_update(lambda old, new: old.labels != new.labels, "labels changed")

annotation_changed = on_update(
    lambda old, new: old is not new and _annotations(old) != _annotations(new), "annotations changed"
)

added = Predicate(lambda event: isinstance(event, Added), "added")
updated = Predicate(lambda event: isinstance(event, Updated), "updated")
deleted = Predicate(lambda event: isinstance(event, Deleted), "deleted")


def _joined(sign: str, predicates: tuple[Any, ...]) -> str:
    names = [str(each) if isinstance(each, Predicate) else getattr(each, "__name__", "?") for each in predicates]
    return f"({sign.join(names)})"
