"""Retry-After: the delay for rejected clients, longer while many requests are rejected."""

from __future__ import annotations

MOST_SECONDS = 32


class RejectionHistory:
    """Rejected requests of one priority level."""

    __slots__ = ("_count", "_history", "_second", "_updated", "seconds")

    def __init__(self) -> None:
        self.seconds = 1  # value of Retry-After
        self._history: list[tuple[int, int]] = []  # second and its number of rejected requests
        self._second = 0  # the current one
        self._count = 0
        self._updated = 0

    def add(self, now: int) -> None:
        if now == self._second:
            self._count += 1
            return
        self._history.append((self._second, self._count))
        longest = min(2 * self.seconds, MOST_SECONDS)
        self._history = [each for each in self._history if self._second - each[0] <= longest]
        self._second, self._count = now, 1
        self._update(now)

    def _update(self, now: int) -> None:
        recent = sum(count for second, count in self._history if now - self.seconds <= second < now)
        if now - self._updated >= self.seconds and recent >= 3 * self.seconds:
            self.seconds = min(self.seconds * 2, MOST_SECONDS)
            self._updated = now
        elif recent < self.seconds and self.seconds > 1:
            self.seconds -= 1
