"""Reasons: why a reconcile runs. For logs, traces and metrics only; what is to be done never depends on it.

A key that is told many times before it runs has all the reasons that it was told with, each once, up to a bound: there
are as many as there are kinds that are watched and things that happen to them, whatever the number of objects.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from ostinato.api.gvk import GroupVersionKind, NamespacedName

MOST: Final = 8  # that are kept for a key

RETRY: Final = "retry"
ERROR: Final = "error"
CONFLICT: Final = "conflict"
REQUEUE_AFTER: Final = "requeue after"
SCHEDULE: Final = "schedule"
STARTUP: Final = "startup"
CHANNEL: Final = "channel"


class Cause(NamedTuple):
    """The state of an object that somebody was told of."""

    gvk: GroupVersionKind
    key: NamespacedName
    resource_version: str


class Why(NamedTuple):
    """The reasons of one run; `causes` is None if it was not only for changes of objects, or for too many of them."""

    reasons: tuple[str, ...]
    causes: tuple[Cause, ...] | None

    def __str__(self) -> str:
        return ", ".join(self.reasons)


_NO_REASON = Why((), None)


class Reasons:
    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[dict[str, None], list[Cause] | None]] = {}  # of keys that are to run

    def add(self, key: Hashable, reason: str, cause: Cause | None = None) -> None:
        reasons, causes = self._known.get(key, ({}, []))
        if len(reasons) < MOST:
            reasons[reason] = None
        if cause is None or causes is None or len(causes) >= MOST:
            causes = None
        else:
            causes.append(cause)
        self._known[key] = (reasons, causes)

    def take(self, key: Hashable) -> Why:
        """Why the key runs now; the next time will have other reasons."""
        known = self._known.pop(key, None)
        if known is None:
            return _NO_REASON
        reasons, causes = known
        return Why(tuple(reasons), None if causes is None else tuple(causes))
