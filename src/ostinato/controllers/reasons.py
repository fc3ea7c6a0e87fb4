"""Reasons: why a key was enqueued. For logs, traces and metrics; a reconcile must not depend on them.

- A key that is enqueued several times before it runs has all its reasons, each once, up to a bound.
- The number of distinct reasons depends on the watched kinds and event types, not on the number of objects.
- The reason of a delayed requeue applies only to a run at or after its time.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

import msgspec

from ostinato.api.gvk import GroupVersionKind, NamespacedName

MAX_REASONS: Final = 8  # per key

RETRY: Final = "retry"
ERROR: Final = "error"
CONFLICT: Final = "conflict"
REQUEUE_AFTER: Final = "requeue after"
SCHEDULE: Final = "schedule"
STARTUP: Final = "startup"
CHANNEL: Final = "channel"
SHARD: Final = "shard acquired"
DAEMON: Final = "daemon ended or stable"

_REQUEUES: Final = frozenset({RETRY, ERROR, CONFLICT, REQUEUE_AFTER})
_RESYNCED: Final = " resynced"


def resynced(kind: str) -> str:
    """Return the reason of a resync."""
    return f"{kind}{_RESYNCED}"


class Cause(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The state of an object whose event enqueued a key."""

    gvk: GroupVersionKind
    key: NamespacedName
    resource_version: str


class Why(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The reasons of one run.

    - `causes`: the events. None if there were reasons other than events, or too many events.
    - `some_causes`: if `causes` is None, the events that are known, up to a bound.
    """

    reasons: tuple[str, ...]
    causes: tuple[Cause, ...] | None
    some_causes: tuple[Cause, ...] = ()

    def __str__(self) -> str:
        return ", ".join(self.reasons)

    @property
    def known_causes(self) -> tuple[Cause, ...]:
        """The events that are known, whether or not there were other reasons."""
        return self.some_causes if self.causes is None else self.causes

    @property
    def is_requeued(self) -> bool:
        """Whether the key runs because it was requeued, perhaps among other reasons."""
        return not _REQUEUES.isdisjoint(self.reasons)

    @property
    def is_repetition(self) -> bool:
        """Whether nothing has changed: the key runs only because it was requeued, or for a resync."""
        return all(each in _REQUEUES or each.endswith(_RESYNCED) for each in self.reasons)


_NO_REASON: Final = Why((), None)
_NO_CAUSE_YET: Final = Why((), ())


class _Later(NamedTuple):
    reason: str
    at: float  # on the clock's monotonic()


class Reasons:
    def __init__(self) -> None:
        self._known: dict[Hashable, Why] = {}  # of enqueued keys
        self._later: dict[Hashable, _Later] = {}  # of keys with a delayed requeue

    def add(self, key: Hashable, reason: str, cause: Cause | None = None) -> None:
        known = self._known.get(key, _NO_CAUSE_YET)
        reasons, causes = known.reasons, known.causes
        if reason not in reasons and len(reasons) < MAX_REASONS:
            reasons = (*reasons, reason)
        if cause is not None and causes is not None and len(causes) < MAX_REASONS:
            self._known[key] = Why(reasons, (*causes, cause))
            return
        some = known.known_causes
        if cause is not None:
            some = (*some[-MAX_REASONS + 1 :], cause)
        self._known[key] = Why(reasons, None, some)

    def add_later(self, key: Hashable, reason: str, now: float, delay: float) -> None:
        """Add the reason of a delayed requeue. Of several, the earliest counts."""
        known, at = self._later.get(key), now + delay
        if known is not None and known.at <= now:  # became due during the current run: another run follows
            self.add(key, known.reason)
            known = None
        if known is None or at < known.at:
            self._later[key] = _Later(reason, at)

    def hold(self, key: Hashable, until: float) -> None:
        """Drop the reason of a requeue that is due before `until`: the key is delayed until then for another reason."""
        later = self._later.get(key)
        if later is not None and later.at <= until and key in self._known:
            del self._later[key]

    def take(self, key: Hashable, now: float) -> Why:
        """Remove and return the reasons of a key that runs now."""
        later = self._later.get(key)
        if later is not None and (later.at <= now or key not in self._known):
            del self._later[key]
            self.add(key, later.reason)
        return self._known.pop(key, _NO_REASON)
