"""Sets of completion indexes in the format of Jobs: "1,3-5,7".

Stored as intervals, so that large contiguous sets take little memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self


class Indexes:
    """Immutable set of indexes."""

    __slots__ = ("_intervals",)

    def __init__(self, intervals: Iterable[tuple[int, int]] = ()) -> None:
        """`intervals`: (first, last) pairs in any order; they may overlap."""
        merged: list[tuple[int, int]] = []
        for first, last in sorted(intervals):
            if merged and first <= merged[-1][1] + 1:
                merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
            else:
                merged.append((first, last))
        self._intervals = tuple(merged)

    @classmethod
    def of(cls, indexes: Iterable[int]) -> Self:
        return cls((each, each) for each in indexes)

    @classmethod
    def parse(cls, text: str, completions: int) -> Self:
        """Parse the indexes below `completions`; invalid parts are ignored."""
        return cls(_parsed(text, completions))

    def __or__(self, other: Indexes) -> Indexes:
        return Indexes((*self._intervals, *other._intervals))

    def __and__(self, other: Indexes) -> Indexes:
        found = (
            (max(mine[0], theirs[0]), min(mine[1], theirs[1]))
            for mine in self._intervals
            for theirs in other._intervals
            if mine[0] <= theirs[1] and theirs[0] <= mine[1]
        )
        return Indexes(found)

    def __contains__(self, index: int) -> bool:
        return any(first <= index <= last for first, last in self._intervals)

    def __len__(self) -> int:
        return sum(last - first + 1 for first, last in self._intervals)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Indexes) and self._intervals == other._intervals

    def __hash__(self) -> int:
        return hash(self._intervals)

    def __str__(self) -> str:
        return ",".join(map(_written, self._intervals))

    def __repr__(self) -> str:
        return f"Indexes({self})"

    def missing(self, completions: int) -> Iterator[int]:
        """Yield the indexes below `completions` that are not in the set, in order."""
        candidate = 0
        for first, last in self._intervals:
            yield from range(candidate, min(first, completions))
            candidate = last + 1
        yield from range(candidate, completions)


def _parsed(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(",") if text else ():
        limits = part.split("-")
        try:
            first, last = int(limits[0]), int(limits[1] if len(limits) > 1 else limits[0])
        except ValueError:
            continue
        if first >= completions:
            return
        if first <= last:
            yield first, min(last, completions - 1)


def _written(interval: tuple[int, int]) -> str:
    first, last = interval
    if first == last:
        return str(first)
    return f"{first},{last}" if last == first + 1 else f"{first}-{last}"
