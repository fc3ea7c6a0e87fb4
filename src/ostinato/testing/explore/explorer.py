"""Explorer: runs the worlds of one operator and scenario, in an order that finds problems early.

1. Two runs without faults, with different seeds and times: the reference. Fields in which they differ are free.
2. Every fault at every point of the reference run, one a world.
3. Pairs: a second fault at points that only a world with a first fault has reached, new states first.
4. Random: several faults, and tasks in random order.

A process that dies leaves only the objects behind: two crashes with the same objects, as a hash of them shows, are one
world. Worlds are run in batches, in copies of this process (`batch`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice, repeat

import msgspec

from ostinato.testing.explore.batch import Batches
from ostinato.testing.explore.coverage import Coverage
from ostinato.testing.explore.faults import catalogue
from ostinato.testing.explore.faults.kind import FaultKind
from ostinato.testing.explore.oracles.checks import judge, judge_reference
from ostinato.testing.explore.plan import Fault, Plan
from ostinato.testing.explore.points import Visit
from ostinato.testing.explore.quiet_logs import quiet_logs
from ostinato.testing.explore.world.outcome import Outcome, Problem
from ostinato.testing.explore.world.run import LaterRun, Run
from ostinato.testing.explore.world.settings import Reference, Subject
from ostinato.testing.explore.world.state import State
from ostinato.world import Rng
from ostinato.world.simulated import forks

_SEED = 1
MakeRun = Callable[[Subject, Plan, Callable[[Fault], FaultKind], Reference | None], Run]
_RANDOM_FAULTS = (2, 5)  # of a random world, at least and at most
_RANDOM_WORLDS = 8  # with the same order of tasks
_BATCHES = (8, 16, 32, 64)  # sizes of the first batches of worlds that are run together; the last is that of all others
_ORDERED_VISITS = 20_000  # of worlds whose pairs are ordered together, with several second faults each
_NOT_REPEATED = "a second run of this world differs; the operator depends on real time, randomness or other state"


class Explorer:
    """`stop`: returns whether to end, e.g. because a budget is spent; called before each world."""

    def __init__(
        self,
        subject: Subject,
        *,
        seed: int = _SEED,
        only: Collection[str] = (),
        without: Collection[str] = (),
        part: tuple[int, int] = (0, 1),
        make_run: MakeRun = Run,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.subject = subject
        self.coverage = Coverage()
        self._seed = seed
        self._kinds = catalogue.selected(only, without)
        self._part = part  # number and count of the processes that share the worlds
        self._make_run = make_run
        self._stop = stop
        self._reference: Reference | None = None
        self._first: Outcome | None = None  # the run of the reference
        self._singles: list[Outcome] = []
        self._visits: dict[Visit, Visit] = {}  # of these, which begin alike; each is kept once
        self._seen: set[tuple[str, str, int]] = set()  # situations of crashes

    @property
    def reference(self) -> Reference:
        assert self._reference is not None, "call prepare() first"
        return self._reference

    def prepare(self) -> Outcome:
        """Run without faults; the problems of the outcome are those of the operator itself, or of the scenario."""
        with quiet_logs():
            first = self._make_run(self.subject, Plan(self._seed), catalogue.make, None).run()
            make_second = LaterRun if self._make_run is Run else self._make_run
            second = make_second(self.subject, Plan(self._seed + 1, (), interleaved=True), catalogue.make, None).run()
        first.problems = judge_reference(first)
        if not first.problems:
            first.problems = self._agree(first, second)
        self._first = first
        self._reference = Reference(
            tuple(first.steps),
            first.record.creates,
            first.record.deletes,
            tuple(first.externals),
            first.quiet_writes,
            first.quiet_requests,
            first.duration,
            first.record.removals_by_others(),
        )
        self.coverage.reference(first)
        return first

    def world(self, plan: Plan) -> Outcome:
        """Run one world and judge it."""
        with quiet_logs():
            outcome = self._make_run(self.subject, plan, catalogue.make, self.reference).run()
        outcome.problems = judge(outcome, self.reference)
        self.coverage.ran(outcome)
        return outcome

    def worlds(self, limit: int) -> Iterator[Outcome]:
        """Run up to `limit` worlds."""
        left = limit
        with closing(Batches(self.subject, catalogue.make, self.reference, self._stop)) as batches:
            for phase, plans in (("single", self._single()), ("pairs", self._pairs()), ("random", self._random())):
                self.coverage.phase = phase
                for batch in _batches(plans):
                    for outcome in self._outcomes(batches, batch[:left]):
                        left -= 1
                        if len(outcome.plan.faults) == 1 and not outcome.problems:
                            outcome.visits = [self._visits.setdefault(each, each) for each in outcome.visits]
                            self._singles.append(outcome)
                        yield outcome
                    if left <= 0 or self._stop():
                        return

    def _outcomes(self, batches: Batches, plans: Sequence[Plan]) -> Iterator[Outcome]:
        """Run a batch of worlds."""
        if self._make_run is Run and forks.is_available():
            with quiet_logs():
                outcomes = list(batches.run(plans))
            for outcome in outcomes:
                self.coverage.ran(outcome)
                yield self._recorded(outcome) if outcome.problems else outcome
            return
        for plan in plans:
            if self._stop():
                return
            yield self.world(plan)

    def _recorded(self, failed: Outcome) -> Outcome:
        """Run a failed world again, to have its record; not if it has ended its process."""
        if not failed.trace:
            return failed
        with quiet_logs():
            outcome = self._make_run(self.subject, failed.plan, catalogue.make, self.reference).run()
        outcome.problems = judge(outcome, self.reference)
        if outcome.trace != failed.trace:
            outcome.problems = [*failed.problems, Problem("determinism", _NOT_REPEATED)]
        return outcome

    def _single(self) -> Iterator[Plan]:
        assert self._first is not None, "call prepare() first"
        index, count = self._part
        for number, fault in enumerate(self._faults(self._first.visits)):
            if number % count == index:
                yield Plan(self._seed, (fault,))

    def _faults(self, visits: Collection[Visit]) -> Iterator[Fault]:
        for kind in self._kinds:
            for visit in visits:
                if kind.applies(visit.point) and not self._is_known(kind, visit):
                    yield Fault(kind.name, visit.point)

    def _is_known(self, kind: type[FaultKind], visit: Visit) -> bool:
        """Whether an equal world was run: the process forgets, and the objects are the same."""
        if not kind.forgets:
            return False
        same = _situation(kind, visit)
        known = same in self._seen
        self._seen.add(same)
        return known

    def _pairs(self) -> Iterator[Plan]:
        """Second faults at points after the first one, those of new points and states first.

        Long scenarios have too many pairs to order them all: they are ordered among some of the first faults, drawn at
        random, then among the next.
        """
        rng = Rng(self._seed).fork("pairs")
        firsts = self._singles
        if sum(len(each.visits) for each in firsts) > _ORDERED_VISITS:
            firsts = list(firsts)
            rng.fork("first faults").shuffle(firsts)
        seen: set[frozenset[Fault]] = set()
        for some in _parts(firsts):
            candidates = [each for outcome in some for each in self._second_faults(outcome)]
            rng.shuffle(candidates)
            candidates.sort(key=lambda each: each[0])
            for _, plan in candidates:
                faults = frozenset(plan.faults)
                if faults not in seen:
                    seen.add(faults)
                    yield plan

    def _second_faults(self, outcome: Outcome) -> Iterator[tuple[int, Plan]]:
        """Return the plans with one more fault after that of a world; the smaller the number, the newer it is."""
        (first,) = outcome.plan.faults
        at = next((number for number, visit in enumerate(outcome.visits) if visit.point == first.at), None)
        if at is None:
            return
        known: set[tuple[str, str, int]] = set()
        for visit in outcome.visits[at + 1 :]:
            for kind in self._kinds:
                if kind.applies(visit.point) and kind.rank <= 4:
                    same = _situation(kind, visit)
                    if same in known and kind.forgets:
                        continue
                    news = -1 if same in known else self.coverage.novelty(kind.name, visit, first)
                    known.add(same)
                    yield -news, outcome.plan.with_fault(Fault(kind.name, visit.point))

    def _random(self) -> Iterator[Plan]:
        assert self._first is not None
        number = self._seed + self._part[0]
        pool = [*self._first.visits, *(visit for each in self._singles for visit in each.visits)]
        points = list({visit.point: None for visit in pool})
        while points:
            number += self._part[1]
            rng = Rng(number).fork("random worlds")
            for _ in range(_RANDOM_WORLDS):
                faults: dict[Fault, None] = {}
                for _ in range(rng.randrange(_RANDOM_FAULTS[0], _RANDOM_FAULTS[1] + 1)):
                    point = rng.choice(points)
                    fitting = [kind for kind in self._kinds if kind.applies(point)]
                    if fitting:
                        faults[Fault(rng.choice(fitting).name, point)] = None
                yield Plan(number, tuple(faults), interleaved=True)

    def _agree(self, first: Outcome, second: Outcome) -> list[Problem]:
        """Make the fields free in which the two runs without faults differ; objects must be the same.

        A status that the operator never writes is free, too: a failed reconcile leaves a condition there for a while.
        """
        written = {kind for state in first.steps for kind in _kinds(state) - state.without_status()}
        unwritten = {kind for state in first.steps for kind in state.without_status()} - written
        freedom = self.subject.freedom.joined((kind, ("status",)) for kind in unwritten)
        for mine, theirs in zip(first.steps, second.steps, strict=False):
            freedom = freedom.joined(mine.free_paths(theirs))
        if freedom != self.subject.freedom:
            self.subject = msgspec.structs.replace(self.subject, freedom=freedom)
            first.steps = [
                type(state)({key: freedom.apply(key.partition(" ")[0], value) for key, value in state.objects.items()})
                for state in first.steps
            ]
        for number, (mine, theirs) in enumerate(zip(first.steps, second.steps, strict=False)):
            if mine.objects.keys() != theirs.objects.keys():
                text = f"two runs without faults have different objects after step {number + 1}"
                return [Problem("determinism", text, tuple(theirs.differences(mine)))]
        return []


def _batches(plans: Iterator[Plan]) -> Iterator[list[Plan]]:
    for size in chain(_BATCHES, repeat(_BATCHES[-1])):
        batch = list(islice(plans, size))
        if not batch:
            return
        yield batch


def _parts(outcomes: Sequence[Outcome]) -> Iterator[list[Outcome]]:
    """Divide worlds into parts of a limited number of visits."""
    part: list[Outcome] = []
    visits = 0
    for outcome in outcomes:
        part.append(outcome)
        visits += len(outcome.visits)
        if visits >= _ORDERED_VISITS:
            yield part
            part, visits = [], 0
    if part:
        yield part


def _situation(kind: type[FaultKind], visit: Visit) -> tuple[str, str, int]:
    """Return what is the same for equal worlds, if the process forgets; for alike ones, if it does not.

    A process that dies leaves only the objects behind, and its successor finds them, whatever it has died of.
    """
    if not kind.forgets or kind.late or kind.needs_election:
        return (kind.name, visit.point.text, visit.state)
    return ("restart", "", visit.state)


def _kinds(state: State) -> set[str]:
    return {identity.partition(" ")[0] for identity in state.objects}
