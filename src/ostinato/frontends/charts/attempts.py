"""Attempts: failed installs and upgrades are repeated after growing delays, whatever events arrive meanwhile.

An upgrade that fails half-way and its rollback change objects of the release. Their events enqueue the custom resource
at once; without this, it would be upgraded and rolled back in a loop. A change of the custom resource is tried at once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final, NamedTuple

from ostinato.api.gvk import NamespacedName
from ostinato.world import Clock

_FIRST: Final = 1.0  # seconds
_LONGEST: Final = 600.0


class _Failure(NamedTuple):
    request: Hashable  # what was tried
    delay: float
    until: float  # on the monotonic clock


class Attempts:
    def __init__(self) -> None:
        self._failures: dict[NamespacedName, _Failure] = {}

    def delay(self, key: NamespacedName, request: Hashable, clock: Clock) -> float:
        """Return the seconds until the request may be tried again; 0 if it may be now."""
        failure = self._failures.get(key)
        if failure is None or failure.request != request:
            return 0.0
        return max(0.0, failure.until - clock.monotonic())

    def failed(self, key: NamespacedName, request: Hashable, clock: Clock) -> None:
        before = self._failures.get(key)
        is_same = before is not None and before.request == request
        delay = min(2 * before.delay, _LONGEST) if before is not None and is_same else _FIRST
        self._failures[key] = _Failure(request, delay, clock.monotonic() + delay)

    def forget(self, key: NamespacedName) -> None:
        self._failures.pop(key, None)
