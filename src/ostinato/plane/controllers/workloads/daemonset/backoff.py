"""Backoff of failed daemon Pods, per node.

A node that rejects a Pod would reject its replacement as well. The first failure is replaced immediately, the next
after one second, doubled up to 15 minutes. The backoff is reset after 30 minutes without failures, and when the
DaemonSet changes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ostinato.world import Clock

_FIRST: Final = 1.0
_LONGEST: Final = 900.0
_SWEEP: Final = 60.0  # seconds between removals of expired entries


class FailureBackoff:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits: dict[Hashable, tuple[float, float]] = {}  # (delay, start)
        self._swept = clock.monotonic()

    def wait(self, key: Hashable) -> float:
        """Return the seconds until the failed Pod may be replaced; if 0, the failure is recorded."""
        now = self._clock.monotonic()
        if now - self._swept > _SWEEP:
            self._swept = now
            self._waits = {each: found for each, found in self._waits.items() if now - found[1] <= 2 * _LONGEST}
        found = self._waits.get(key)
        if found is None or now - found[1] > 2 * _LONGEST:
            self._waits[key] = _FIRST, now
            return 0.0
        length, since = found
        if now - since < length:
            return length - (now - since)
        self._waits[key] = min(2 * length, _LONGEST), now
        return 0.0
