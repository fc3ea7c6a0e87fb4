"""Trace: the callbacks of a simulation with their times. Two runs are equal if their traces have the same digest.

The digest covers all entries; only the last `keep` entries are kept.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import NamedTuple

_BATCH = 4096


class Entry(NamedTuple):
    time: float  # virtual seconds since the start
    what: str  # the name of a task or a callback, or a note

    def __str__(self) -> str:
        return f"{self.time:.6f} {self.what}"


class Trace:
    def __init__(self, keep: int = 10_000) -> None:
        self.count = 0
        self.entries: deque[Entry] = deque(maxlen=keep)  # the last ones, oldest first
        self._keeps = keep > 0
        self._hash = hashlib.sha256()
        self._time = -1.0  # of the last entry
        self._unhashed: list[str] = []  # hashed in batches, which is several times faster

    def add(self, time: float, what: str) -> None:
        self.count += 1
        if self._keeps:
            self.entries.append(Entry(time, what))
        if time != self._time:
            self._time = time
            self._unhashed.append(f"\0{time!r}")
        self._unhashed.append(what)
        if len(self._unhashed) >= _BATCH:
            self._flush()

    def digest(self) -> str:
        self._flush()
        return self._hash.hexdigest()

    def last_names(self, count: int = 5) -> list[str]:
        """Return the names that ran last, without duplicates, the latest first."""
        names: dict[str, None] = {}
        for entry in reversed(self.entries):
            names[entry.what] = None
            if len(names) == count:
                break
        return list(names)

    def first_difference(self, other: Trace) -> tuple[Entry | None, Entry | None] | None:
        """Return the first entries in which two runs differ; None instead of an entry for a run that ended.

        Raises ValueError if a run has more than `keep` entries: the first ones are then lost.
        """
        if self.count > len(self.entries) or other.count > len(other.entries):
            raise ValueError("a trace has dropped its first entries; run both simulations with a larger keep")
        for mine, theirs in zip(self.entries, other.entries, strict=False):
            if mine != theirs:
                return mine, theirs
        if self.count == other.count:
            return None
        shared = min(self.count, other.count)
        if self.count > shared:
            return self.entries[shared], None
        return None, other.entries[shared]

    def _flush(self) -> None:
        self._hash.update("\n".join([*self._unhashed, ""]).encode())
        self._unhashed.clear()
