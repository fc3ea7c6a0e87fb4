"""Reasons: why a reconcile runs. For logs, traces and metrics only; what is to be done never depends on it.

A key that is told many times before it runs has all the reasons that it was told with, each once, up to a bound: there
are as many as there are kinds that are watched and things that happen to them, whatever the number of objects. What a
key is to run for later is no reason for a run before its time, nor for one that had another and was held back.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName

MOST: Final = 8  # that are kept for a key

RETRY: Final = "retry"
ERROR: Final = "error"
CONFLICT: Final = "conflict"
REQUEUE_AFTER: Final = "requeue after"
SCHEDULE: Final = "schedule"
STARTUP: Final = "startup"
CHANNEL: Final = "channel"


class Cause(msgspec.Struct, frozen=True, gc=False):
    """The state of an object that somebody was told of."""

    gvk: GroupVersionKind
    key: NamespacedName
    resource_version: str


class Why(msgspec.Struct, frozen=True):
    """The reasons of one run; `causes` is None if it was not only for changes of objects, or for too many of them."""

    reasons: tuple[str, ...]
    causes: tuple[Cause, ...] | None

    def __str__(self) -> str:
        return ", ".join(self.reasons)


_NO_REASON: Final = Why((), None)
_NO_CAUSE_YET: Final = Why((), ())


class _Later(NamedTuple):
    reason: str
    at: float  # on the clock's monotonic()


class Reasons:
    def __init__(self) -> None:
        self._known: dict[Hashable, Why] = {}  # of keys that are to run
        self._later: dict[Hashable, _Later] = {}  # of keys that are to run when their time has come

    def add(self, key: Hashable, reason: str, cause: Cause | None = None) -> None:
        known = self._known.get(key, _NO_CAUSE_YET)
        reasons, causes = known.reasons, known.causes
        if reason not in reasons and len(reasons) < MOST:
            reasons = (*reasons, reason)
        causes = None if cause is None or causes is None or len(causes) >= MOST else (*causes, cause)
        self._known[key] = Why(reasons, causes)

    def add_later(self, key: Hashable, reason: str, now: float, delay: float) -> None:
        """A reason from a moment on; of several, that of the earliest."""
        known, at = self._later.get(key), now + delay
        if known is not None and known.at <= now:  # that time came during a run: there is another for it
            self.add(key, known.reason)
            known = None
        if known is None or at < known.at:
            self._later[key] = _Later(reason, at)

    def hold(self, key: Hashable, until: float) -> None:
        """The key has a reason to run, and runs at that time only: what comes by then changes nothing about why."""
        later = self._later.get(key)
        if later is not None and later.at <= until and key in self._known:
            del self._later[key]

    def take(self, key: Hashable, now: float) -> Why:
        """Why the key runs now; the next time will have other reasons."""
        later = self._later.get(key)
        if later is not None and (later.at <= now or key not in self._known):
            del self._later[key]
            self.add(key, later.reason)
        return self._known.pop(key, _NO_REASON)
