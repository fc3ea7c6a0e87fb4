"""Predicates: filter events before the event handler.

    watch_for(Widget, predicates=[generation_changed | label_changed])
    watches(ConfigMap, map_to=..., predicates=[having_labels("app=web") & ~deleted])

- A predicate is a function of an event; `Predicate` wraps one so that it can be combined by `&`, `|` and `~`.
- Of several predicates all must return true; they are evaluated in order.
- The `…_changed` predicates filter updates only. A resync is an update without a change.
- `generation_changed` filters out changes of the status, of labels and of annotations.
- A predicate that raises is logged and counts as true: an unnecessary reconcile does no harm, a missing one may.

A predicate saves reconciles, not memory: the object is still cached. `InformerSettings` save both.
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
from ostinato.controllers.sources.namespace_patterns import NamespacePatterns

T = TypeVar("T")

EventFunction = Callable[[Event], object]


class Predicate:
    """A function of an event that can be combined with others."""

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
    """Raise TypeError unless the function is a plain function of the `given` arguments."""
    if not callable(function):
        raise TypeError(f"{function!r} is not a predicate; pass a function of an event, or one of ostinato.controllers")
    if iscoroutinefunction(function):
        name = getattr(function, "__name__", function)
        raise TypeError(f"predicate {name} is an async def; make it a plain def")
    try:
        called = signature(function)
    except ValueError:  # a built-in without a signature
        return
    try:
        called.bind(*given)
    except TypeError:
        name = getattr(function, "__name__", function)
        raise TypeError(f"predicate {name}{called} must take {' and '.join(given)} only") from None


def all_of(*predicates: EventFunction) -> Predicate:
    """True if all predicates are true. Evaluated in order until one is false."""
    return Predicate(lambda event: all(each(event) for each in predicates), _joined(" & ", predicates))


def any_of(*predicates: EventFunction) -> Predicate:
    """True if any predicate is true. Evaluated in order until one is true."""
    return Predicate(lambda event: any(each(event) for each in predicates), _joined(" | ", predicates))


def none_of(*predicates: EventFunction) -> Predicate:
    """True if no predicate is true."""
    return ~any_of(*predicates)


def on_update(function: Callable[[Entry, Entry], object], name: str = "") -> Predicate:
    """Filter updates by a function of the old and the new state. Other events pass."""
    check_predicate(function, ("the old state", "the new state"))
    return Predicate(
        lambda event: function(event.old, event.new) if isinstance(event, Updated) else True,
        name or getattr(function, "__name__", ""),
    )


def where(kind: Kind[T], function: Callable[[T], object]) -> Predicate:
    """Filter by a function of the decoded object; of an update, the new state."""
    check_predicate(function, ("the object",))
    return Predicate(lambda event: function(event.object.read(kind)), getattr(function, "__name__", ""))


def having_labels(labels: LabelSelection) -> Predicate:
    """Filter by a label selector. An update passes if the old or the new state matches."""
    selector = selector_of(labels)

    def matches(event: Event) -> bool:
        if isinstance(event, Updated) and selector.matches(event.old.labels):
            return True
        return selector.matches(event.object.labels)

    return Predicate(matches, f"having labels {selector}")


def in_namespaces(*namespaces: str) -> Predicate:
    """Filter by namespace: names, or patterns such as "team-*" and "!team-test"."""
    patterns = NamespacePatterns(namespaces)
    return Predicate(
        lambda event: bool(event.key.namespace) and patterns.includes(event.key.namespace),
        f"in namespaces {', '.join(namespaces)}",
    )


def _annotations(entry: Entry) -> dict[str, str]:
    return entry.metadata().metadata.annotations


resource_version_changed = on_update(
    lambda old, new: old.resource_version != new.resource_version, "resourceVersion changed"
)
"""Filters out resyncs."""

generation_changed = on_update(lambda old, new: old.generation != new.generation, "generation changed")
"""Filters out updates that do not change metadata.generation. The start of a deletion changes it."""

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
