"""Trace: what ran in a simulation, and when. Two runs are the same if their traces have the same digest.

The digest covers everything; the entries themselves are kept only as far back as `keep` says.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import NamedTuple

_BATCH = 4096


class Entry(NamedTuple):
    time: float  # virtual seconds since the beginning
    what: str  # the name of a task or a callback, or a note

    def __str__(self) -> str:
        return f"{self.time:.6f} {self.what}"


class Trace:
    def __init__(self, keep: int = 10_000) -> None:
        self.count = 0
        self.entries: deque[Entry] = deque(maxlen=keep)  # the latest, oldest first
        self._hash = hashlib.sha256()
        self._unhashed: list[tuple[float, str]] = []  # hashed in batches: it is several times cheaper

    def add(self, time: float, what: str) -> None:
        entry = Entry(time, what)
        self.count += 1
        self.entries.append(entry)
        self._unhashed.append(entry)
        if len(self._unhashed) >= _BATCH:
            self._flush()

    def digest(self) -> str:
        self._flush()
        return self._hash.hexdigest()

    def last_names(self, count: int = 5) -> list[str]:
        """What ran last, each once, the latest first."""
        names: dict[str, None] = {}
        for entry in reversed(self.entries):
            names[entry.what] = None
            if len(names) == count:
                break
        return list(names)

    def first_difference(self, other: Trace) -> tuple[Entry | None, Entry | None] | None:
        """The first kept entries in which two runs of one program differ; None beside an entry is a run that ended.

        Needs runs no longer than `keep`: with the beginnings gone, what is compared no longer corresponds.
        """
        if self.count > len(self.entries) or other.count > len(other.entries):
            raise ValueError("the beginning of a trace is not kept any more: trace both runs with a larger keep")
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
        self._hash.update("".join([f"{time!r} {what}\n" for time, what in self._unhashed]).encode())
        self._unhashed.clear()
