"""Histogram with fixed buckets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

from ostinato.metrics.exposition import number
from ostinato.metrics.families import Sample

# Seconds, as Go's ExponentialBuckets(10e-9, 10, 10) computes them: a bound is a label, and labels compare as text.
EXPONENTIAL_BUCKETS: Final = (
    1e-8,
    1e-7,
    1e-6,
    9.999999999999999e-06,
    9.999999999999999e-05,
    0.001,
    0.01,
    0.1,
    1.0,
    10.0,
)


class Histogram:
    """
    - `sum`: sum of all observations.
    - `counts`: observations per bucket, not cumulative; the last bucket has no upper bound.
    """

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = EXPONENTIAL_BUCKETS) -> None:
        """`bounds`: inclusive upper bounds of the buckets, ascending. Defaults to client-go's, from 10 ns to 10 s."""
        self.sum = 0.0
        self.counts = [0] * (len(bounds) + 1)
        self._bounds = bounds

    def observe(self, value: float) -> None:
        self.sum += value
        self.counts[bisect_left(self._bounds, value)] += 1

    @property
    def count(self) -> int:
        return sum(self.counts)

    def samples(self, name: str, labels: Mapping[str, str], zeros: int = 0) -> list[Sample]:
        """Return the cumulative buckets, the sum and the count.

        `zeros`: observations of the value 0 that the caller counted elsewhere. Defaults to 0.
        """
        found, total = [], zeros
        for bound, count in zip((*self._bounds, float("inf")), self.counts, strict=True):
            total += count
            found.append(Sample(f"{name}_bucket", {**labels, "le": number(bound)}, total))
        return [*found, Sample(f"{name}_sum", labels, self.sum), Sample(f"{name}_count", labels, total)]
