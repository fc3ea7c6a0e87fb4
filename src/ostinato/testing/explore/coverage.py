"""Coverage: which points, states and faults an exploration has reached."""

from __future__ import annotations

from collections import Counter

from ostinato.testing.explore.plan import Fault
from ostinato.testing.explore.points import Point, Visit
from ostinato.testing.explore.world.outcome import Outcome


class Coverage:
    def __init__(self) -> None:
        self.phase = "reference"
        self.worlds: Counter[str] = Counter()  # by phase
        self.faults: Counter[str] = Counter()  # dealt, by kind
        self.missed = 0  # faults whose point was not reached
        self.points: set[Point] = set()
        self.signatures: set[str] = set()  # of worlds that differ
        self._seen: Counter[tuple[str, str]] = Counter()  # kind of fault and text of its point

    def reference(self, outcome: Outcome) -> None:
        self.points.update(visit.point for visit in outcome.visits)
        self.signatures.add(outcome.signature)

    def ran(self, outcome: Outcome) -> None:
        self.worlds[self.phase] += 1
        self.points.update(visit.point for visit in outcome.visits)
        self.signatures.add(outcome.signature)
        self.missed += len(outcome.plan.faults) - len(outcome.dealt)
        for fault in outcome.dealt:
            self.faults[fault.kind] += 1
            self._seen[fault.kind, fault.at.text] += 1

    def novelty(self, kind: str, visit: Visit, first: Fault) -> int:
        """Return how new a second fault would be: 2 for a point only reached after faults, 1 for an unseen pair."""
        seen = self._seen[kind, visit.point.text]
        return (0 if seen else 2) + (visit.point.text != first.at.text)

    def lines(self) -> list[str]:
        """Describe it for people."""
        total = sum(self.worlds.values())
        phases = ", ".join(f"{count} {phase}" for phase, count in self.worlds.items())
        dealt = ", ".join(f"{kind} {count}" for kind, count in sorted(self.faults.items()))
        return [
            f"{total} worlds ({phases}), {len(self.signatures)} of them different",
            f"{len(self.points)} points, {sum(self.faults.values())} faults dealt, {self.missed} not reached",
            f"faults: {dealt or 'none'}",
        ]
