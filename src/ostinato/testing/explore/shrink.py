"""Shrinking: the shortest world that fails in the same way.

Faults are removed one by one, then the random order of tasks, then steps of the scenario; a change is kept if the same
oracle still objects. Shortening the scenario needs another reference run.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ostinato.testing.explore.explorer import Explorer
from ostinato.testing.explore.plan import Plan
from ostinato.testing.explore.scenario import Step
from ostinato.testing.explore.world.outcome import Outcome

MOST_WORLDS = 200


class Shrunk(msgspec.Struct, frozen=True):
    """The shortest failing world, and the scenario that it needs."""

    explorer: Explorer
    outcome: Outcome
    worlds: int  # that were run to find it


def shrink(explorer: Explorer, failed: Outcome, rebuild: Callable[[tuple[Step, ...]], Explorer]) -> Shrunk:
    """Return the shortest world with the same problem. `rebuild`: returns an explorer of another scenario."""
    shrinker = _Shrinker(explorer, failed)
    shrinker.faults()
    shrinker.order()
    shrinker.steps(rebuild)
    return Shrunk(shrinker.explorer, shrinker.best, shrinker.worlds)


class _Shrinker:
    def __init__(self, explorer: Explorer, failed: Outcome) -> None:
        self.explorer = explorer
        self.best = failed
        self.worlds = 0
        self._oracles = {each.oracle for each in failed.problems}

    def faults(self) -> None:
        """Remove faults that were not dealt, then each that is not needed."""
        dealt = msgspec.structs.replace(self.best.plan, faults=tuple(self.best.dealt))
        if dealt != self.best.plan:
            self._try(dealt)
        removed = True
        while removed and len(self.best.plan.faults) > 1:
            removed = any(self._try(self.best.plan.without(fault)) for fault in reversed(self.best.plan.faults))

    def order(self) -> None:
        plan = self.best.plan
        if plan.interleaved:
            self._try(msgspec.structs.replace(plan, interleaved=False)) or self._try(
                msgspec.structs.replace(plan, interleaved=False, seed=1)
            )

    def steps(self, rebuild: Callable[[tuple[Step, ...]], Explorer]) -> None:
        """Remove steps from the end, then others."""
        removed = True
        while removed:
            removed = False
            steps = self.explorer.subject.scenario
            for number in reversed(range(len(steps))):
                if len(steps) > 1 and self._shorter(rebuild((*steps[:number], *steps[number + 1 :]))):
                    removed = True
                    break

    def _shorter(self, explorer: Explorer) -> bool:
        if self.worlds >= MOST_WORLDS:
            return False
        self.worlds += 2
        if explorer.prepare().problems:
            return False
        before, self.explorer = self.explorer, explorer
        if self._try(self.best.plan):
            return True
        self.explorer = before
        return False

    def _try(self, plan: Plan) -> bool:
        if self.worlds >= MOST_WORLDS:
            return False
        self.worlds += 1
        outcome = self.explorer.world(plan)
        if not self._oracles & {each.oracle for each in outcome.problems}:
            return False
        self.best = outcome
        return True
