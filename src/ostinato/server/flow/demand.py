"""Demand of a priority level for seats: over one period, and smoothed over many."""

from __future__ import annotations

from math import sqrt

SMOOTHING = 0.977  # half-life of five minutes, with a period of ten seconds


class Integrator:
    """Time-weighted average, standard deviation and maximum of a value since the last reset."""

    __slots__ = ("_highest", "_last", "_seconds", "_squares", "_sum", "value")

    def __init__(self, now: float) -> None:
        self.value = 0.0
        self._last = now
        self._seconds = self._sum = self._squares = self._highest = 0.0

    def set(self, value: float, now: float) -> None:
        seconds = now - self._last
        if seconds > 0:
            self._last = now
            self._seconds += seconds
            self._sum += self.value * seconds
            self._squares += self.value * self.value * seconds
        self.value = value
        if value > self._highest:  # noqa: PLR1730 - twice as fast as max()
            self._highest = value

    def reset(self, now: float) -> tuple[float, float, float]:
        """Return average, standard deviation and maximum, and start a new period."""
        self.set(self.value, now)
        average = deviation = 0.0
        if self._seconds > 0:
            average = self._sum / self._seconds
            deviation = sqrt(max(self._squares / self._seconds - average * average, 0.0))
        highest = self._highest
        self._seconds = self._sum = self._squares = 0.0
        self._highest = self.value
        return average, deviation, highest


class Demand:
    """The demand for seats of a priority level."""

    __slots__ = ("average", "deviation", "highest", "seats", "smoothed")

    def __init__(self, now: float) -> None:
        self.seats = Integrator(now)
        self.average = self.deviation = self.smoothed = 0.0
        self.highest = 0  # seats, in the last period

    def end_period(self, now: float) -> None:
        self.average, self.deviation, highest = self.seats.reset(now)
        self.highest = int(highest + 0.5)
        envelope = self.average + self.deviation
        self.smoothed = max(envelope, SMOOTHING * self.smoothed + (1 - SMOOTHING) * envelope)
