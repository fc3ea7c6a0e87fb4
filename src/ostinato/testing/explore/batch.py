"""Batches of worlds, run in copies of this process.

- Each world sends a report. The record of a failed one is not part of it: running its plan again gives it.
- Short worlds run one after the other in one copy (`worker`).
- Long worlds that begin alike share their beginning: one run is forked at each point at which a plan has a fault. The
  copy deals it, the original continues without it. So the server and the operator start once for many worlds, and a
  fault in the last step costs only the last step. Plans whose remaining points are not reached are one world.

Copying a process costs as much as 2,000 steps of a simulation, mostly for the pages that the copy modifies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ostinato.testing.explore.plan import Fault, Plan
from ostinato.testing.explore.points import Point
from ostinato.testing.explore.report import Report, Send, ended_report, report_of
from ostinato.testing.explore.worker import Numbered, Worker
from ostinato.testing.explore.world.outcome import Outcome
from ostinato.testing.explore.world.run import Run
from ostinato.testing.explore.world.settings import Reference, Subject
from ostinato.world.simulated import forks

if TYPE_CHECKING:
    from ostinato.testing.explore.faults.kind import FaultKind

MakeKind = Callable[[Fault], "FaultKind"]

_LONG: Final = 2_000  # steps of a run from which worlds share their beginnings


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
        self._send(report_of([number for number, _ in self._plans], outcome, self._reference))
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
                self._send(ended_report([number for number, _ in plans], code))
        if not self._plans or self._stop():
            forks.leave()
        return []

    def _add_faults(self, faults: Sequence[Fault]) -> None:
        for fault in faults:
            kind = self._make_kind(fault)
            self.kinds.append(kind)
            self._faults.setdefault(fault.at, []).append(kind)


class Batches:
    """Runs batches of worlds of one operator and scenario; `close` it.

    - `stop`: returns whether to begin no further world.
    """

    def __init__(
        self, subject: Subject, make_kind: MakeKind, reference: Reference, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._subject = subject
        self._make_kind = make_kind
        self._reference = reference
        self._stop = stop
        self._worker: Worker | None = None

    def run(self, plans: Sequence[Plan]) -> Iterator[Outcome]:
        """Yield the outcomes of the worlds in the order of the plans, without records; not of those not begun."""
        numbered = list(enumerate(plans))
        found = self._one_by_one(numbered) if self._reference.duration < _LONG else self._in_branches(numbered)
        for number, plan in numbered:
            if number in found:
                yield found[number].outcome(plan)

    def close(self) -> int:
        """End the copy that is kept for further batches; return its exit code."""
        worker, self._worker = self._worker, None
        return 0 if worker is None else worker.close()

    def _one_by_one(self, plans: Sequence[Numbered]) -> dict[int, Report]:
        found: dict[int, Report] = {}
        left = list(plans)
        while left and not self._stop():
            if self._worker is None:
                self._worker = Worker.start(self._work)
            for report in self._worker.run(left, self._reference.duration):
                found.update(dict.fromkeys(report.plans, report))
            left = [each for each in left if each[0] not in found]
            if (left or self._worker.is_full) and (code := self.close()):
                number, _ = left.pop(0)
                found[number] = ended_report([number], code)
        return found

    def _work(self, plans: Sequence[Numbered], send: Send) -> None:
        for number, plan in plans:
            if self._stop():
                return
            outcome = AbandonedRun(self._subject, plan, self._make_kind, self._reference).run()
            send(report_of([number], outcome, self._reference))

    def _in_branches(self, plans: Sequence[Numbered]) -> dict[int, Report]:
        found: dict[int, Report] = {}
        groups: dict[tuple[int, bool, bool], list[Numbered]] = {}
        for number, plan in plans:
            alike = (plan.seed, plan.interleaved, elects(plan, self._make_kind))
            groups.setdefault(alike, []).append((number, plan))
        for group in groups.values():
            worker = Worker.start(self._branch)
            for report in worker.run(group, self._reference.duration):
                for number in report.plans:
                    found.setdefault(number, report)
            if code := worker.close():
                left = [number for number, _ in group if number not in found]
                found.update(dict.fromkeys(left, ended_report(left, code)))
        return found

    def _branch(self, plans: Sequence[Numbered], send: Send) -> None:
        BranchingRun(self._subject, plans, self._make_kind, self._reference, self._stop, send).run()
        forks.leave()  # so do the copies of this process, which return here too


def elects(plan: Plan, make_kind: MakeKind) -> bool:
    """Whether two replicas elect a leader in the world of a plan."""
    return any(make_kind(fault).needs_election for fault in plan.faults)


def _divided(plans: Sequence[Numbered], point: Point) -> tuple[dict[tuple[Fault, ...], list[Numbered]], list[Numbered]]:
    """Return the plans with faults at a point, by these faults, and those without."""
    here: dict[tuple[Fault, ...], list[Numbered]] = {}
    for each in plans:
        here.setdefault(tuple(fault for fault in each[1].faults if fault.at == point), []).append(each)
    return here, here.pop((), [])
