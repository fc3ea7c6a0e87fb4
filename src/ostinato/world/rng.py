"""Random numbers: a stream that its seed decides, and that forks by name.

- The same seed gives the same numbers, on every machine and every version of Python.
- `fork(name)` is a stream that depends on the seed and the name alone, not on what has been drawn: a component that
  draws one number more does not change the numbers of the others. The same name twice is the same stream twice.
- These numbers are for jitter, samples and simulation. Secrets come from `Ids.token`.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")


class Rng:
    __slots__ = ("_key", "_source")

    def __init__(self, seed: int | str | bytes) -> None:
        kind = type(seed).__name__
        data = seed if isinstance(seed, bytes) else str(seed).encode()
        self._key = hashlib.sha256(f"{kind}:".encode() + data).digest()
        self._source = random.Random(self._key_as_integer())  # noqa: S311 - not for secrets

    @classmethod
    def from_entropy(cls) -> Rng:
        """A stream that nobody can foresee or repeat."""
        return cls(os.urandom(32))

    def fork(self, name: str) -> Rng:
        """The stream called `name`: independent of this one and of every other fork."""
        return Rng(self._key + name.encode())

    def random(self) -> float:
        """From 0 up to, not including, 1."""
        return self._source.random()

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._source.random()

    def randrange(self, start: int, stop: int | None = None) -> int:
        """An integer from 0 up to `start`, or from `start` up to `stop`; the end is not included."""
        low, high = (0, start) if stop is None else (start, stop)
        if high <= low:
            raise ValueError(f"no integer lies in [{low}, {high})")
        return low + self._below(high - low)

    def choice(self, items: Sequence[T]) -> T:
        if not items:
            raise IndexError("cannot choose from an empty sequence")
        return items[self._below(len(items))]

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Permute in place."""
        for last in range(len(items) - 1, 0, -1):
            other = self._below(last + 1)
            items[last], items[other] = items[other], items[last]

    def jitter(self, duration: float, factor: float) -> float:
        """Between `duration` and `duration * (1 + factor)`; a factor that is not positive counts as 1."""
        return duration + self._source.random() * (factor if factor > 0 else 1.0) * duration

    def bytes(self, count: int) -> bytes:
        return self._source.getrandbits(8 * count).to_bytes(count, "little") if count else b""

    def _below(self, bound: int) -> int:
        # The standard library promises stable answers of random() alone; this rests on getrandbits, whose bits are
        # the generator's own, and rejects rather than scales, so that no integer is likelier than another.
        width = bound.bit_length()
        draw = self._source.getrandbits
        number = draw(width)
        while number >= bound:
            number = draw(width)
        return number

    def _key_as_integer(self) -> int:
        return int.from_bytes(self._key, "big")
