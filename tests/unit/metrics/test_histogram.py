from __future__ import annotations

from ostinato.metrics import Histogram


def values(histogram: Histogram, zeros: int = 0) -> dict[str, float]:
    return {each.labels.get("le", each.name): each.value for each in histogram.samples("h", {}, zeros)}


def test_buckets_are_cumulative_and_their_bounds_inclusive() -> None:
    histogram = Histogram((0.5, 1.0))
    for value in (0.5, 0.7, 1.0, 3.0):
        histogram.observe(value)
    assert values(histogram) == {"0.5": 1, "1": 3, "+Inf": 4, "h_sum": 5.2, "h_count": 4}
    assert histogram.count == 4


def test_zeros_are_added_to_every_bucket() -> None:
    histogram = Histogram((0.0, 1.0))
    histogram.observe(0.5)
    assert values(histogram, zeros=2) == {"0": 2, "1": 3, "+Inf": 3, "h_sum": 0.5, "h_count": 3}
