"""Ranges of costs and sizes: a minimum and a maximum, saturating at 64 bits."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

MOST: Final = (1 << 64) - 1


class Range(NamedTuple):
    least: int
    most: int

    def __add__(self, other: Range) -> Range:  # type: ignore[override]
        return Range(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def __mul__(self, other: Range) -> Range:  # type: ignore[override]
        return Range(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def times(self, factor: float) -> Range:
        return Range(_times(self.least, factor), _times(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def fixed(value: int) -> Range:
    return Range(value, value)


def _times(value: int, factor: float) -> int:
    product = math.ceil(float(value) * factor)
    return MOST if product >= 1 << 64 else product


NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)
ANY: Final = Range(0, MOST)
