"""Allocation: the seats of each priority level, from its demand and its bounds.

All levels get the same proportion of their targets, clamped to their bounds, such that the sum is the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

_LEAST_TARGET = 0.001
_EPSILON = 1e-7


class Item(NamedTuple):
    """Demand of a level and the bounds of its allocation: low <= target, low <= high."""

    low: float
    high: float
    target: float


def allocate(total: float, items: Sequence[Item]) -> tuple[list[float], float]:
    """Return the allocations and the proportion; ValueError if no proportion gives the total."""
    low, high = sum(item.low for item in items), sum(item.high for item in items)
    if low - total > _EPSILON:
        raise ValueError(f"the lower bounds sum to {low:g}, more than {total:g}")
    if total - high > _EPSILON:
        raise ValueError(f"the upper bounds sum to {high:g}, less than {total:g}")
    targets = [max(item.target, _LEAST_TARGET) for item in items]
    bounds = sorted(
        {item.low / target for item, target in zip(items, targets, strict=True)}
        | {item.high / target for item, target in zip(items, targets, strict=True)}
    )

    def allocated(proportion: float) -> list[float]:
        return [max(item.low, min(item.high, proportion * target)) for item, target in zip(items, targets, strict=True)]

    below = 0.0
    for bound in bounds:  # the sum grows with the proportion, along a line between two bounds
        if sum(allocated(bound)) >= total - _EPSILON:
            before, after = sum(allocated(below)), sum(allocated(bound))
            share = 0.0 if after == before else (total - before) / (after - before)
            proportion = below + (bound - below) * min(max(share, 0.0), 1.0)
            return allocated(proportion), proportion
        below = bound
    return allocated(below), below
