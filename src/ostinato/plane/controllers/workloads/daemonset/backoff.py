"""Failures: how long a node is left alone after a daemon failed there.

A node that refuses a Pod would refuse the next at once, and the next. So the first is replaced at once, the second
after a second, and so on, doubled up to a quarter of an hour; when a node has had none for half an hour, or the
DaemonSet has changed, it begins anew.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ostinato.world import Clock

_FIRST: Final = 1.0
_LONGEST: Final = 900.0
_SWEEP: Final = 60.0  # seconds between looks for what is over


class FailureBackoff:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waits: dict[Hashable, tuple[float, float]] = {}  # how long, since when
        self._swept = clock.monotonic()

    def wait(self, key: Hashable) -> float:
        """Seconds until something may be done about another failure; if none, this one is noted."""
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
