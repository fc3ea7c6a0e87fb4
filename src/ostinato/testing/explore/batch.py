"""Batches of worlds, run in copies of this process.

- Each world sends a report. The record of a failed one is not part of it: running its plan again gives it.
- Short worlds run one after the other in one copy. Its garbage is never collected: it ends with the copy.
- Long worlds that begin alike share their beginning: one run is forked at each point at which a plan has a fault. The
  copy deals it, the original continues without it. So the server and the operator start once for many worlds, and a
  fault in the last step costs only the last step. Plans whose remaining points are not reached are one world.

Copying a process costs as much as 2,000 steps of a simulation, mostly for the pages that the copy modifies.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from ostinato.testing.explore.oracles.checks import judge
from ostinato.testing.explore.plan import Fault, Plan
from ostinato.testing.explore.points import Point, Visit
from ostinato.testing.explore.world.outcome import Outcome, Problem
from ostinato.testing.explore.world.record import Record
from ostinato.testing.explore.world.run import Run
from ostinato.testing.explore.world.settings import Reference, Subject
from ostinato.world.simulated import forks

if TYPE_CHECKING:
    from ostinato.testing.explore.faults.kind import FaultKind

MakeKind = Callable[[Fault], "FaultKind"]
Numbered = tuple[int, Plan]


class Report(msgspec.Struct, frozen=True):
    """What a copy sends. `plans`: the numbers of the plans that it was the world of."""

    plans: list[int]
    problems: list[Problem]
    visits: list[Visit] = []
    dealt: list[Fault] = []
    signature: str = ""
    trace: str = ""


Send = Callable[[Report], None]

_LONG: Final = 2_000  # steps of a run from which worlds share their beginnings
_decoder = msgspec.json.Decoder(Report)


class AbandonedRun(Run):
    """A run in a copy of the process, which ends soon."""

    abandons = True


class BranchingRun(AbandonedRun):
    """The run of several plans that differ in nothing but their faults.

    - `stop`: returns whether to begin no further world.
    - `send`: is called with the reports of this process.
    """

    def __init__(
        self,
        subject: Subject,
        plans: Sequence[Numbered],
        make_kind: MakeKind,
        reference: Reference,
        stop: Callable[[], bool],
        send: Send,
    ) -> None:
        first = plans[0][1]
        super().__init__(subject, Plan(first.seed, (), first.interleaved), make_kind, reference)
        self._reference = reference
        self._elects = elects(first, make_kind)
        self._make_kind = make_kind
        self._plans = list(plans)  # those whose faults up to now are the ones that were dealt here
        self._points = {fault.at for _, plan in plans for fault in plan.faults}
        self._stop = stop
        self._send = send

    def run(self) -> Outcome:
        outcome = super().run()
        self._send(_report([number for number, _ in self._plans], outcome, self._reference))
        return outcome

    @property
    def elects(self) -> bool:
        return self._elects

    def due(self, point: Point) -> list[FaultKind]:
        if point not in self._points:
            return []
        here, self._plans = _divided(self._plans, point)
        for faults, plans in here.items():
            if self._stop():
                break
            process = forks.fork()
            if process == 0:
                self._plans = plans
                self._add_faults(faults)
                return super().due(point)
            if code := forks.wait_for(process):
                self._send(_ended([number for number, _ in plans], code))
        if not self._plans or self._stop():
            forks.leave()
        return []

    def _add_faults(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            kind = self._make_kind(fault)
            self.kinds.append(kind)
            self._faults.setdefault(fault.at, []).append(kind)


class Batch(msgspec.Struct, frozen=True):
    """Plans whose worlds are run together.

    - `stop`: returns whether to begin no further world.
    """

    subject: Subject
    plans: Sequence[Plan]
    make_kind: MakeKind
    reference: Reference
    stop: Callable[[], bool]

    def run(self) -> Iterator[Outcome]:
        """Yield the outcomes of the worlds in the order of the plans, without records; not of those not begun."""
        numbered = list(enumerate(self.plans))
        found = self._in_one_copy(numbered) if self.reference.duration < _LONG else self._in_branches(numbered)
        for number, plan in numbered:
            if number in found:
                yield _outcome(plan, found[number])

    def _in_one_copy(self, plans: Sequence[Numbered]) -> dict[int, Report]:
        found: dict[int, Report] = {}
        left = list(plans)
        while left:
            code = _run_copy(partial(self._one_by_one, left), found)
            left = [each for each in left if each[0] not in found]
            if code:
                number, _ = left.pop(0)
                found[number] = _ended([number], code)
            elif left:  # it was told to stop
                break
        return found

    def _in_branches(self, plans: Sequence[Numbered]) -> dict[int, Report]:
        found: dict[int, Report] = {}
        groups: dict[tuple[int, bool, bool], list[Numbered]] = {}
        for number, plan in plans:
            alike = (plan.seed, plan.interleaved, elects(plan, self.make_kind))
            groups.setdefault(alike, []).append((number, plan))
        for group in groups.values():
            if code := _run_copy(partial(self._branching, group), found):
                left = [number for number, _ in group if number not in found]
                found.update(dict.fromkeys(left, _ended(left, code)))
        return found

    def _one_by_one(self, plans: Sequence[Numbered], send: Send) -> None:
        for number, plan in plans:
            if self.stop():
                return
            outcome = AbandonedRun(self.subject, plan, self.make_kind, self.reference).run()
            send(_report([number], outcome, self.reference))

    def _branching(self, plans: Sequence[Numbered], send: Send) -> None:
        BranchingRun(self.subject, plans, self.make_kind, self.reference, self.stop, send).run()


def elects(plan: Plan, make_kind: MakeKind) -> bool:
    """Whether two replicas elect a leader in the world of a plan."""
    return any(make_kind(fault).needs_election for fault in plan.faults)


def _run_copy(run: Callable[[Send], None], found: dict[int, Report]) -> int:
    """Call a function in a copy of this process, and collect what it sends; return its exit code."""
    reader, writer = os.pipe()

    def send(report: Report) -> None:
        data = msgspec.json.encode(report) + b"\n"
        while data:
            data = data[os.write(writer, data) :]

    def work() -> None:
        try:
            run(send)
        except BaseException:
            traceback.print_exc()
            raise

    process = forks.fork_to(work)
    os.close(writer)
    with open(reader, "rb") as stream:
        for line in stream:
            report = _decoder.decode(line)
            for number in report.plans:
                found.setdefault(number, report)
    return forks.wait_for(process)


def _divided(plans: Sequence[Numbered], point: Point) -> tuple[dict[tuple[Fault, ...], list[Numbered]], list[Numbered]]:
    """Return the plans with faults at a point, by these faults, and those without."""
    here: dict[tuple[Fault, ...], list[Numbered]] = {}
    for each in plans:
        here.setdefault(tuple(fault for fault in each[1].faults if fault.at == point), []).append(each)
    return here, here.pop((), [])


def _report(plans: list[int], outcome: Outcome, reference: Reference) -> Report:
    return Report(
        plans,
        judge(outcome, reference),
        list(outcome.visits),
        list(outcome.dealt),
        outcome.signature,
        outcome.trace,
    )


def _outcome(plan: Plan, report: Report) -> Outcome:
    return Outcome(
        plan,
        Record(),
        visits=report.visits,
        dealt=report.dealt,
        problems=list(report.problems),
        signature=report.signature,
        trace=report.trace,
    )


def _ended(plans: list[int], code: int) -> Report:
    how = f"exit code {code}" if code > 0 else f"signal {-code}"
    return Report(plans, [Problem("errors", f"the process of the world ended with {how}")])
