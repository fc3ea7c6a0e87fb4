"""Record of one run: what every participant did, in order; the source of timelines and of most oracles."""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

USER: Final = "user"
COLLECTOR: Final = "garbage collector"
FAULT: Final = "fault"


class Entry(msgspec.Struct, frozen=True, gc=False):
    """
    - `actor`: a replica of the operator, the user, the garbage collector, or a fault.
    - `action`: request, event, external, reconcile, failed, start, end, step, settled, fault.
    - `what`: the operation, or a description.
    - `outcome`: status code of a request, or a short text.
    - `reconcile`: the controller and key that were reconciled, "" outside of a reconcile.
    - `version`: resourceVersion of the store afterwards.
    """

    time: float
    actor: str
    action: str
    what: str
    outcome: str = ""
    reconcile: str = ""
    version: int = 0


class Failure(msgspec.Struct, frozen=True):
    """A reconcile that ended with an error."""

    time: float
    key: str
    error: str
    expected: bool  # an API or connection error, which any request may have


class Record:
    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.failures: list[Failure] = []
        self.unresolved: dict[str, Failure] = {}  # keys whose last reconcile failed
        self.creates: dict[str, int] = {}  # by object: creates of the operator
        self.deletes: dict[str, int] = {}
        self.removals: dict[str, int] = {}  # by object: deletions by anyone

    def removals_by_others(self) -> dict[str, int]:
        return {text: count - self.deletes.get(text, 0) for text, count in self.removals.items()}

    def add(self, entry: Entry) -> None:
        self.entries.append(entry)

    def signature(self) -> str:
        """Return a digest of what happened, regardless of times."""
        lines = [f"{each.actor} {each.action} {each.what} {each.outcome}" for each in self.entries]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()
