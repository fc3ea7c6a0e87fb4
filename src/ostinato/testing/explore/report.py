"""Reports of worlds that were run in copies of this process."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ostinato.testing.explore.oracles.checks import judge
from ostinato.testing.explore.plan import Fault, Plan
from ostinato.testing.explore.points import Visit
from ostinato.testing.explore.world.outcome import Outcome, Problem
from ostinato.testing.explore.world.record import Record
from ostinato.testing.explore.world.settings import Reference


class Report(msgspec.Struct, frozen=True):
    """What a copy sends. `plans`: the numbers of the plans that it was the world of."""

    plans: list[int]
    problems: list[Problem]
    visits: list[Visit] = []
    dealt: list[Fault] = []
    signature: str = ""
    trace: str = ""

    def outcome(self, plan: Plan) -> Outcome:
        """Return the outcome of one of its plans, without a record."""
        return Outcome(
            plan,
            Record(),
            visits=self.visits,
            dealt=self.dealt,
            problems=list(self.problems),
            signature=self.signature,
            trace=self.trace,
        )


Send = Callable[[Report], None]


def report_of(plans: list[int], outcome: Outcome, reference: Reference) -> Report:
    """Judge a world and report it."""
    return Report(
        plans,
        judge(outcome, reference),
        list(outcome.visits),
        list(outcome.dealt),
        outcome.signature,
        outcome.trace,
    )


def ended_report(plans: list[int], code: int) -> Report:
    """Report worlds whose process ended with an exit code, or the negative number of a signal."""
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return Report(plans, [Problem("errors", f"the process of the world ended with {how}")])
