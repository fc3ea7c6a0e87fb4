"""Settling: waiting until nothing is left to do, and comparing with the run without faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ostinato.testing.explore.points import PointKind
from ostinato.testing.explore.world.external import state_of_fake
from ostinato.testing.explore.world.outcome import Outcome, Problem
from ostinato.testing.explore.world.record import USER
from ostinato.testing.explore.world.settings import Invariant, Reference
from ostinato.testing.explore.world.state import State, state_of
from ostinato.testing.explore.world.users import scenario_objects, stale_statuses
from ostinato.testing.explore.world.view import StateView

if TYPE_CHECKING:
    from ostinato.testing.explore.world.run import Run

_SHOWN: Final = 20  # differences
_KNOWN: Final = 1_000  # states


class NotSettled(Exception):  # noqa: N818
    """The state of the reference run was not reached; the problem is recorded."""


class Settling:
    """
    - `states`, `externals`: after each step that has settled.
    """

    def __init__(self, run: Run, reference: Reference | None) -> None:
        self.states: list[State] = []
        self.externals: list[str] = []
        self._run = run
        self._reference = reference
        self._versions: dict[int, int] = {}  # by number of steps: resourceVersion when they had settled
        subject = run.subject
        self._view = StateView(run) if subject.always or subject.eventually else None

    def version_before(self, step: int) -> int:
        """Return the resourceVersion when the steps before `step` had settled."""
        return self._versions.get(step - 1, self._run.subject.image.version)

    async def start(self) -> None:
        """Wait until the operator has started."""
        run = self._run
        await self._calm(run.now)
        self._versions[0] = run.disk.version
        run.made.clear()  # what it creates without any request of users belongs to nothing

    async def settle(self) -> None:
        """Wait until the state is that of the reference run after the same step."""
        run = self._run
        while True:
            state, outside = await self._reach()
            run.is_restored = False
            self.states.append(state)
            self.externals.append(outside)
            self._versions[run.step] = run.disk.version
            self._check_eventually()
            point = run.arrive(PointKind.SETTLED, f"settled {run.step}")
            run.note(USER, "settled", f"settled after step {run.step}")
            faults = run.due(point)
            if not faults:
                return
            for fault in faults:
                await fault.settled(run)
            self.states.pop()
            self.externals.pop()

    async def _reach(self) -> tuple[State, str]:
        run, timing = self._run, self._run.subject.timing
        began, step = run.now, run.step
        while True:
            calm = await self._calm(began)
            if run.step != step:  # a step that happened early
                began, step = run.now, run.step
            state, outside = self._state(), self.external_state()
            wrong = self._differences(state, outside)
            if calm and not wrong:
                return state, outside
            if self._is_late(began):
                self._fail(wrong, calm=calm)
            await run.clock.sleep(timing.calm)

    def _fail(self, wrong: list[str], *, calm: bool) -> None:
        run = self._run
        kind = "convergence" if calm else "quiet"
        text = "the state differs from that of the run without faults" if calm else "it does not come to rest"
        where = f"after step {run.step} ({run.subject.scenario[run.step - 1]})"
        run.problems.append(Problem(kind, f"{text}, {where}", tuple(wrong[:_SHOWN])))
        raise NotSettled

    def _is_late(self, began: float) -> bool:
        """Whether the time is over in which the state has to be reached, since `began` and the last step of users."""
        run = self._run
        return run.now >= max(began, run.performed) + run.subject.timing.within

    async def _calm(self, began: float) -> bool:
        """Wait until nothing was written for a while; False if that does not happen in time."""
        run = self._run
        seconds = run.subject.timing.calm * (1.0 if self._reference is not None else run.subject.timing.patience)
        while True:
            activity = run.activity
            await run.clock.sleep(seconds)
            if activity == run.activity and not run.pending and not run.writing:
                return True
            if self._is_late(began):
                return False

    def _differences(self, state: State, outside: str) -> list[str]:
        run, reference = self._run, self._reference
        if reference is None:
            return []
        wrong = [line for kind in run.kinds for line in kind.wrong(run)]
        index = run.step - 1
        if state.objects != reference.steps[index].objects:
            wrong += state.differences(reference.steps[index])
        if outside != reference.externals[index]:
            wrong.append(f"external systems: {outside}, expected {reference.externals[index]}")
        return wrong

    def _unowned(self) -> set[str]:
        """Return the objects that do not belong to an existing one."""
        objects = self._run.objects
        return {
            f"{place[0]} {place[1]}"
            for place, each in objects.metadata.items()
            if not each.owner_references or objects.is_garbage(place)
        }

    def _state(self) -> State:
        """Return the current state. Worlds that begin alike share theirs."""
        run, image = self._run, self._run.subject.image
        objects = (tuple(run.disk.recent.items()), tuple(run.gone))
        known = {} if self._reference is None else self._reference.known
        found = known.get(objects)
        if found is None:
            if len(known) >= _KNOWN:
                known.clear()
            found = known[objects] = state_of(run.disk.recent, image.kinds, run.subject.freedom, run.gone)
        return found

    def external_state(self) -> str:
        """Describe the state of all external systems."""
        return "; ".join(f"{name}: {state_of_fake(fake)}" for name, fake in self._run.fakes.items())

    async def quiet(self, outcome: Outcome) -> None:
        """Count what the operator does although nothing is left to do."""
        run = self._run
        outcome.orphans = [] if scenario_objects(run) else sorted(run.made & self._unowned())
        outcome.stale_status = stale_statuses(run)
        if self._reference is None:  # everything is reconciled once more by a new process
            for replica in run.living():
                run.crash(replica)
            await self._calm(run.now)
        writes, requests = run.writes, run.requests
        await run.clock.sleep(run.subject.timing.quiet)
        outcome.quiet_writes, outcome.quiet_requests = run.writes - writes, run.requests - requests

    # Invariants

    def written(self) -> None:
        """Check the invariants that must hold after every write."""
        if self._view is not None:
            self._check("always", self._run.subject.always, f"at t+{self._run.now:.3f} s")

    def _check_eventually(self) -> None:
        run = self._run
        where = f"after step {run.step} ({run.subject.scenario[run.step - 1]})"
        self._check("eventually", run.subject.eventually, where)

    def _check(self, kind: str, invariants: tuple[Invariant, ...], where: str) -> None:
        known = {each.oracle for each in self._run.problems}
        for invariant in invariants:
            oracle = f"{kind} {getattr(invariant, '__name__', invariant)}"
            if oracle not in known and not invariant(self._view):
                self._run.problems.append(Problem(oracle, f"does not hold {where}"))
