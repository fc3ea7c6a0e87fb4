"""Seeded random numbers, in streams that fork by name.

- A seed gives the same numbers on every machine and Python version.
- `fork(name)` depends on the seed and the name only, not on the numbers drawn so far: a component that draws one more
  number does not change those of the others. The same name returns the same stream.
- For jitter, samples and simulation. For secrets use `Ids.token`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import MutableSequence, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Rng:
    __slots__ = ("_drawn", "_key")

    def __init__(self, seed: int | str | bytes) -> None:
        kind = type(seed).__name__
        data = seed if isinstance(seed, bytes) else str(seed).encode()
        self._key = hashlib.sha256(f"{kind}:".encode() + data).digest()
        self._drawn: Random | None = None  # created by the first draw: many streams are only forked

    @classmethod
    def from_entropy(cls) -> Rng:
        """Return a stream seeded by the operating system."""
        return cls(os.urandom(32))

    def fork(self, name: str) -> Rng:
        """Return the stream of a name, independent of this one and of other forks."""
        return Rng(self._key + name.encode())

    def random(self) -> float:
        """From 0 up to, not including, 1."""
        return self._source.random()

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._source.random()

    def randrange(self, start: int, stop: int | None = None) -> int:
        """Return an integer from 0 up to `start`, or from `start` up to `stop`, exclusive."""
        low, high = (0, start) if stop is None else (start, stop)
        if high <= low:
            raise ValueError(f"randrange() of the empty range [{low}, {high})")
        return low + self._below(high - low)

    def choice(self, items: Sequence[T]) -> T:
        if not items:
            raise IndexError("choice() of an empty sequence")
        return items[self._below(len(items))]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Shuffle in place."""
        for last in range(len(items) - 1, 0, -1):
            other = self._below(last + 1)
            items[last], items[other] = items[other], items[last]

    def jitter(self, duration: float, factor: float) -> float:
        """Return a number between `duration` and `duration * (1 + factor)`; a factor of 0 or less counts as 1."""
        return duration + self._source.random() * (factor if factor > 0 else 1.0) * duration

    def bytes(self, count: int) -> bytes:
        return self._source.getrandbits(8 * count).to_bytes(count, "little") if count else b""

    def _below(self, bound: int) -> int:
        # The standard library guarantees only random() to be stable; getrandbits returns the generator's own bits.
        # Rejection instead of scaling gives a uniform distribution.
        width = bound.bit_length()
        draw = self._source.getrandbits
        number = draw(width)
        while number >= bound:
            number = draw(width)
        return number

    @property
    def _source(self) -> Random:
        source = self._drawn
        if source is None:
            source = self._drawn = Random(int.from_bytes(self._key, "big"))  # noqa: S311 - not for secrets
        return source
