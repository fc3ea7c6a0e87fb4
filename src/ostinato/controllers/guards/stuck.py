"""Stuck deletions: finds objects that a controller has seen deleted and that do not go, and says what they wait for.

An object with a finalizer stays until somebody removes it. A controller that puts a finalizer and never takes it away
keeps the object, and its namespace, for ever, without any error. So after a reconcile of an object that is being
deleted the guard looks again after a while; if the object is still there, with finalizers, that is told once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.informers import Informers
from ostinato.cache.store.entry import Entry
from ostinato.world import Clock, Timer

PATIENCE: Final = 60.0  # seconds after which a deletion is stuck
_OTHERS: Final = frozenset({"foregroundDeletion", "orphan"})  # finalizers that the garbage collector removes

Tell = Callable[[Entry, tuple[str, ...]], object]


class StuckDeletions:
    def __init__(self, clock: Clock, informers: Informers, gvk: GroupVersionKind, tell: Tell) -> None:
        """`tell(entry, finalizers)` is called once for each object of the kind that is stuck."""
        self._clock = clock
        self._informers = informers
        self._gvk = gvk
        self._tell = tell
        self._watched: dict[Hashable, tuple[str, Timer | None]] = {}  # the uid of each, and the timer until it is told

    def reconciled(self, key: Hashable) -> None:
        """A reconcile of the key was successful."""
        entry = self._entry(key)
        if entry is None or entry.deletion_timestamp is None:
            if key in self._watched:
                self._forget(key)
            return
        known = self._watched.get(key)
        if known is not None and known[0] == entry.uid:
            return
        self._forget(key)
        if _own(entry):
            self._watched[key] = (entry.uid, self._clock.timer(PATIENCE, self._look, key, entry.uid))

    def stop(self) -> None:
        for key in list(self._watched):
            self._forget(key)

    def _look(self, key: Hashable, uid: str) -> None:
        self._watched[key] = (uid, None)
        entry = self._entry(key)
        if entry is None or entry.uid != uid:
            self._forget(key)
        elif finalizers := _own(entry):
            self._tell(entry, finalizers)

    def _forget(self, key: Hashable) -> None:
        known = self._watched.pop(key, None)
        if known is not None and known[1] is not None:
            known[1].cancel()

    def _entry(self, key: Hashable) -> Entry | None:
        if not isinstance(key, NamespacedName):
            return None
        for informer in self._informers.all(self._gvk):
            entry = informer.store.get(key)
            if entry is not None:
                return entry
        return None


def _own(entry: Entry) -> tuple[str, ...]:
    return tuple(each for each in entry.header.finalizers or () if each not in _OTHERS)
