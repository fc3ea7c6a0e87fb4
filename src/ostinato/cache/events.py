"""Events: what handlers receive.

    def changed(event: Event) -> None:
        match event:
            case Added(object=pod, initial=True): ...
            case Updated(old=before, new=after): ...
            case Deleted(last_known=pod, final_state_known=False): ...

- Events hold entries: metadata costs nothing, the object is decoded by `read`.
- An object that was deleted and recreated between two watches is a `Deleted` and an `Added`, not an `Updated`: the uid
  differs.
- `relisted`: the change was detected by a relist, so intermediate changes may have been missed.
- `final_state_known` is False for a deletion that was detected by a relist: `last_known` may be stale.
- After the server was restored to an earlier state, every object is such a `Deleted` and an `Added`, even if it is
  unchanged: what controllers did for it may be lost. Check for its existence before undoing anything irreversibly.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import Entry


class Added(msgspec.Struct, frozen=True, gc=False):
    """An object was added. `initial`: it existed when the handler was added, or when the cache synced."""

    object: Entry
    initial: bool = False
    relisted: bool = False

    @property
    def key(self) -> NamespacedName:
        return self.object.key


class Updated(msgspec.Struct, frozen=True, gc=False):
    """An object has changed; or a resync replays it, and both entries are the same."""

    old: Entry
    new: Entry
    relisted: bool = False

    @property
    def object(self) -> Entry:
        return self.new

    @property
    def key(self) -> NamespacedName:
        return self.new.key

    @property
    def is_resync(self) -> bool:
        return self.old is self.new


class Deleted(msgspec.Struct, frozen=True, gc=False):
    """An object was deleted."""

    last_known: Entry
    final_state_known: bool = True

    @property
    def object(self) -> Entry:
        return self.last_known

    @property
    def key(self) -> NamespacedName:
        return self.last_known.key


Event = Added | Updated | Deleted
Predicate = Callable[[Entry], object]


def filtered(event: Event, predicate: Predicate) -> Event | None:
    """Return the event as a handler with this predicate receives it, or None.

    An object that begins to match is `Added`; one that ceases to match is `Deleted`, with its last matching state.
    """
    match event:
        case Added(object=entry) | Deleted(last_known=entry):
            return event if predicate(entry) else None
        case Updated(old=old, new=new):
            before = predicate(old)
            after = before if old is new else predicate(new)
            if before:
                return event if after else Deleted(old)
            return Added(new, relisted=event.relisted) if after else None
