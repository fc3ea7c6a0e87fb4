"""Backoff: how long to wait before the next try, each time longer and never quite the same.

backoff = Backoff(duration=0.8, factor=2.0, jitter=1.0, steps=10, cap=30.0)
steps = backoff.start(rng)
await clock.sleep(steps.next())
"""

from __future__ import annotations

import msgspec

from ostinato.world import Rng


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `duration`: seconds before the second try.
    - `factor`: each wait is so many times the one before, as long as there are steps.
    - `jitter`: up to so much of a wait is added to it, by chance.
    - `steps`: how many tries there are, the first included, where tries come to an end.
    - `cap`: seconds that a wait without its jitter never exceeds; 0 is no cap. What reaches it has no more steps.
    """

    duration: float
    factor: float = 1.0
    jitter: float = 0.0
    steps: int = 1
    cap: float = 0.0

    def start(self, rng: Rng) -> Steps:
        """A new row of waits."""
        return Steps(self, rng)


class Steps:
    """The waits of one backoff, one after another."""

    __slots__ = ("_backoff", "_duration", "_rng", "left")

    def __init__(self, backoff: Backoff, rng: Rng) -> None:
        self._backoff = backoff
        self._rng = rng
        self._duration = backoff.duration
        self.left = backoff.steps  # tries that remain; those who try for ever pay no heed

    def next(self) -> float:
        """Seconds to wait now. When no steps are left the wait stays as long as it is."""
        backoff, duration = self._backoff, self._duration
        if self.left > 0:
            self.left -= 1
            if backoff.factor:
                self._duration = duration * backoff.factor
                if backoff.cap and self._duration > backoff.cap:
                    self._duration = backoff.cap
                    self.left = 0
        return self._rng.jitter(duration, backoff.jitter) if backoff.jitter > 0 else duration

    def reset(self) -> None:
        """Begin anew: what was waited for has come."""
        self._duration = self._backoff.duration
        self.left = self._backoff.steps


CONFLICTS = Backoff(duration=0.01, factor=1.0, jitter=0.1, steps=5)
"""For conflicts on an object that others write, too: five tries, hardly apart."""

CONTENDED = Backoff(duration=0.01, factor=5.0, jitter=0.1, steps=4)
"""For an object that many write at once: four tries, soon far apart."""

WATCHES = Backoff(duration=0.8, factor=2.0, jitter=1.0, steps=38, cap=30.0)
"""For lists and watches that fail: from one second to one minute."""
