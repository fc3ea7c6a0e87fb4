"""Exponential backoff with jitter, as `wait.Backoff` of apimachinery.

backoff = Backoff(duration=0.8, factor=2.0, jitter=1.0, steps=10, cap=30.0)
steps = backoff.start(rng)
await clock.sleep(steps.next())
"""

from __future__ import annotations

import msgspec

from ostinato.world import Rng


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `duration`: seconds of the first delay.
    - `factor`: each delay is multiplied by it, as long as there are steps.
    - `jitter`: fraction of a delay up to which a random amount is added to it.
    - `steps`: number of attempts, the first included, for callers that stop.
    - `cap`: maximum of a delay without its jitter, in seconds; 0 is no cap. Reaching it uses up the steps.
    """

    duration: float
    factor: float = 1.0
    jitter: float = 0.0
    steps: int = 1
    cap: float = 0.0

    def start(self, rng: Rng) -> Steps:
        """Begin a new sequence of delays."""
        return Steps(self, rng)


class Steps:
    """The sequence of delays of one backoff."""

    __slots__ = ("_backoff", "_duration", "_rng", "left")

    def __init__(self, backoff: Backoff, rng: Rng) -> None:
        self._backoff = backoff
        self._rng = rng
        self._duration = backoff.duration
        self.left = backoff.steps  # attempts that remain, for callers that stop

    def next(self) -> float:
        """Return the next delay in seconds. Once no steps are left it stays the same."""
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
        """Begin again with the first delay, after a success."""
        self._duration = self._backoff.duration
        self.left = self._backoff.steps


CONFLICTS = Backoff(duration=0.01, factor=1.0, jitter=0.1, steps=5)
"""For conflicts with other writers of an object: five attempts, 10 ms apart (client-go's DefaultRetry)."""

CONTENDED = Backoff(duration=0.01, factor=5.0, jitter=0.1, steps=4)
"""For an object with many concurrent writers: four attempts, with growing delays (client-go's DefaultBackoff)."""

WATCHES = Backoff(duration=0.8, factor=2.0, jitter=1.0, steps=38, cap=30.0)
"""For failed lists and watches: 0.8 s to 30 s, with jitter of up to as much again."""
