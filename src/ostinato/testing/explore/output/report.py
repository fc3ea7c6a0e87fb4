"""Report: what is printed of an exploration, and of the world that failed."""

from __future__ import annotations

import msgspec

from ostinato.testing.explore.output.test_code import code_of
from ostinato.testing.explore.output.timeline import render
from ostinato.testing.explore.scenario import Step
from ostinato.testing.explore.world.outcome import Outcome


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """The shortest failing world.

    - `original`: the world that failed first.
    - `picture`: file of the timeline as SVG, if it was written.
    """

    name: str
    outcome: Outcome
    original: Outcome
    scenario: tuple[Step, ...]
    world: int  # its number
    coverage: tuple[str, ...] = ()
    picture: str = ""

    def text(self) -> str:
        plan, found = self.outcome.plan, len(self.original.plan.faults)
        lines = [f"{self.name}: world {self.world} failed" if plan.faults else f"{self.name}: failed without any fault"]
        for problem in self.outcome.problems:
            lines += [f"  {line}" for line in str(problem).splitlines()]
        lines += ["", f"shortest schedule: {_count(len(plan.faults), 'fault')} (of {found})"]
        lines += [f"  {fault}" for fault in plan.faults]
        lines += ["scenario:", *(f"  {number}. {step}" for number, step in enumerate(self.scenario, 1))]
        lines += ["timeline:", *(f"  {line}" for line in render(self.outcome.record.entries))]
        if self.picture:
            lines.append(f"picture: {self.picture}")
        lines += [f"replay: {str(plan)!r}", "test:", *_indented(code_of(self.name, self.scenario, plan))]
        if self.coverage:
            lines += ["coverage:", *(f"  {line}" for line in self.coverage)]
        return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"    {line}" if line else "" for line in text.splitlines()]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
