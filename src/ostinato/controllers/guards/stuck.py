"""Stuck deletions: detects objects whose deletion is blocked by finalizers.

A controller that adds a finalizer and never removes it blocks the deletion of the object and of its namespace without
any error. After a successful reconcile of an object that is being deleted the guard checks the object again after a
timeout; if it still exists with finalizers, that is reported once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Final

from ostinato.api.gvk import GroupVersionKind, NamespacedName
from ostinato.cache.informers import Informers
from ostinato.cache.store.entry import Entry
from ostinato.world import Clock, Timer

TIMEOUT: Final = 60.0  # seconds after which a deletion is stuck
_GARBAGE_COLLECTOR: Final = frozenset({"foregroundDeletion", "orphan"})  # its finalizers

Report = Callable[[Entry, tuple[str, ...]], object]


class StuckDeletions:
    def __init__(self, clock: Clock, informers: Informers, gvk: GroupVersionKind, report: Report) -> None:
        """`report(entry, finalizers)`: called once for each stuck object of the kind."""
        self._clock = clock
        self._informers = informers
        self._gvk = gvk
        self._report = report
        self._watched: dict[Hashable, tuple[str, Timer | None]] = {}  # uid, and the timer; None once reported

    def reconciled(self, key: Hashable) -> None:
        """Record a successful reconcile of a key."""
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
            self._watched[key] = (entry.uid, self._clock.timer(TIMEOUT, self._check, key, entry.uid))

    def stop(self) -> None:
        for key in list(self._watched):
            self._forget(key)

    def _check(self, key: Hashable, uid: str) -> None:
        self._watched[key] = (uid, None)
        entry = self._entry(key)
        if entry is None or entry.uid != uid:
            self._forget(key)
        elif finalizers := _own(entry):
            self._report(entry, finalizers)

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
    return tuple(each for each in entry.header.finalizers or () if each not in _GARBAGE_COLLECTOR)
