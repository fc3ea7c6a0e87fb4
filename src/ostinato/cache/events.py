"""Events: what handlers are told of objects.

    def changed(event: Event) -> None:
        match event:
            case Added(object=pod, initial=True): ...
            case Updated(old=before, new=after): ...
            case Deleted(last_known=pod, final_state_known=False): ...

- Objects come as entries: what is known without decoding costs nothing, the rest is decoded by `read`.
- An object that was deleted and made anew while nobody watched is a `Deleted` and an `Added`, not an update from one to
  the other: they have nothing in common but the name.
- What was noticed later, because a list had it, is `relisted`: more may have happened to the object than was told.
- A deletion that was seen as it happened gives the last state of the object. One that was noticed later, because a
  list no longer had the object, gives what was last known of it: `final_state_known` is False, and it may be stale.
- After the server went back to an earlier state, every object is a `Deleted` of that sort and an `Added`, even one that
  is as it was: what was done about it may be lost. Look whether it is there before anything is undone for good.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import Entry


class Added(msgspec.Struct, frozen=True, gc=False):
    """There is an object. `initial`: it was there when the handler came, or when the cache was first filled."""

    object: Entry
    initial: bool = False
    relisted: bool = False

    @property
    def key(self) -> NamespacedName:
        return self.object.key


class Updated(msgspec.Struct, frozen=True, gc=False):
    """An object has changed; or it has not, and this is a resync: both entries are the same then."""

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
    """There is no such object any more."""

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
    """The event as it looks to who sees only the objects that are `predicate`.

    An object that becomes one of them is added, one that ceases to be is deleted, as it last was among them.
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
