"""Chain of causes: from a change of an object back to the edit that began it.

    write ← run that made it ← write that caused the run ← run that made that ← … ← write of a user

- `causes` selects the causes of a write. If several are equally relevant, the newest is followed; the others are part
  of the step, and the chain has the origins of all of them.
- A run without a cause continues with the run of its key before it: it was requeued, or an operation that it began has
  ended, such as the termination of a container.
- A run that explains itself (`ctx.explain`) begins the chain: it acted for a reason that no object has.
- A write that no run reported is a user's, unless its field manager is one of Kubernetes' components. So is the first
  of several writes that a server has merged, if the run that reported one of them was caused by it.
- A long chain, such as that of the last Pod of a rollout, is shown without its middle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ostinato.controllers.reasons import SCHEDULE, SHARD, STARTUP
from ostinato.page.facts import Reconcile, Step
from ostinato.page.history.authors import COMPONENTS
from ostinato.page.history.causes import causes_of
from ostinato.page.history.change import Change, ordinal_of
from ostinato.page.history.changes import Changes
from ostinato.page.history.runs import Runs

MAX_STEPS: Final = 60  # shown
MAX_ORIGINS: Final = 5
_MAX_WALKED: Final = 4_000  # steps
_BEGINS: Final = frozenset({STARTUP, SCHEDULE, SHARD})  # reasons that no earlier run led to

_Step = Callable[[], Step]
"""Builds a step. Most of a long chain is not shown, and needs no decoding."""


def chain(change: Change, changes: Changes, runs: Runs) -> tuple[list[Step], list[Step]]:
    """Return the chain of causes of a change, newest first; and the origins of all its causes, its own first."""
    walk = _Walk(changes, runs)
    steps = walk.follow(change)
    assert steps is not None, "the first path meets no other"
    origins = [steps[-1]()]
    while (other := walk.next_branch()) is not None and len(origins) < MAX_ORIGINS:
        branch = walk.follow(other)
        origin = None if branch is None else branch[-1]()
        if origin is not None and _identity(origin) not in map(_identity, origins):
            origins.append(origin)
    if len(steps) <= MAX_STEPS:
        return [each() for each in steps], origins
    half = MAX_STEPS // 2
    skipped = Step(type="skipped", n=len(steps) - 2 * half)
    return [*(each() for each in steps[:half]), skipped, *(each() for each in steps[-half:])], origins


class _Walk:
    """Follows causes, along one path after the other."""

    def __init__(self, changes: Changes, runs: Runs) -> None:
        self._changes = changes
        self._runs = runs
        self._walked: set[str] = set()  # ids of changes of earlier paths
        self._path: set[str] = set()  # ids of changes and runs of the current path
        self._others: list[Change] = []  # causes that have not been followed
        self._left = _MAX_WALKED

    def next_branch(self) -> Change | None:
        """Return a cause that was as relevant as the one that was followed; None if there are no more."""
        return self._others.pop(0) if self._others else None

    def follow(self, change: Change) -> list[_Step] | None:
        """Return the path from a change to its origin; None if it meets an earlier path, which has the same origin."""
        steps: list[_Step] = []
        self._path = set()
        current: Change | None = change
        while current is not None:
            if current.id in self._walked:
                return None
            self._left -= 1
            if self._left < 0:
                steps.append(_unknown("the chain of causes is too long"))
                break
            self._path.add(current.id)
            if not current.run:
                steps.append(partial(_last, current))
                break
            steps.append(partial(_write, current))
            run = self._runs.get(current.run)
            if run is None:
                steps.append(_unknown(_missing(current, self._changes)))
                break
            current = self._before(run, current, steps)
        self._walked |= self._path
        return steps

    def _before(self, run: Reconcile, write: Change, steps: list[_Step]) -> Change | None:
        """Add a run, and those that it repeats or continues; return the change that caused the first of them."""
        while True:
            if run.explanations:
                steps += [_reconcile(run), partial(_reason, run)]
                return None
            repeated, causes = causes_of(run, write, self._changes, self._runs, self._path)
            first = repeated[-1]
            steps += [*map(_reconcile, repeated[:-1]), _reconcile(first, causes[1:])]
            self._path.update(each.id for each in repeated)
            if causes:
                self._others += causes[1:]
                return causes[0]
            if _begins(write, first, self._changes):
                steps.append(partial(_first, write))
                return None
            before = None if first.causes or _BEGINS.intersection(first.reasons) else self._runs.before(first)
            if before is None or before.id in self._path:
                steps.append(_unknown(_why(first, self._changes)))
                return None
            run = before


def _write(change: Change) -> Step:
    return Step(type="write", write=change.with_diff())


def _reason(run: Reconcile) -> Step:
    return Step(type="reason", who=run.controller, why="; ".join(run.explanations))


def _reconcile(run: Reconcile, also: Sequence[Change] = ()) -> _Step:
    return lambda: Step(type="reconcile", reconcile=run, also=[each.shown() for each in also])


def _unknown(why: str) -> _Step:
    return lambda: Step(type="unknown", why=why)


def _identity(origin: Step) -> object:
    """Return what makes an origin another one."""
    return (origin.type, origin.who, origin.why, origin.write.id if origin.write else "")


def _last(change: Change) -> Step:
    write = change.with_diff()
    if write.manager in COMPONENTS:
        why = f"{write.manager} wrote {change.ref}, and does not report its reasons to this page"
        return Step(type="unknown", why=why, write=write)
    return Step(type="user", who=change.controller or write.manager or "unknown", write=write)


def _begins(change: Change, run: Reconcile, changes: Changes) -> bool:
    """Whether the run was caused by an earlier write that a server has merged to the change that the run made."""
    return any(
        change.merges(ordinal_of(each.resource_version))
        and changes.at_version(each.ref, each.resource_version) is change
        for each in run.causes
    )


def _first(change: Change) -> Step:
    """The first of merged writes, which no run reported."""
    return Step(type="user", who="unknown", write=change.with_diff())


def _missing(change: Change, changes: Changes) -> str:
    oldest = changes.oldest
    if oldest is not None and change.at - oldest < 1.0:
        return f"the reconcile of {change.controller} is older than the history of this page"
    return f"the reconcile of {change.controller} has not ended yet, or its report was lost"


def _why(run: Reconcile, changes: Changes) -> str:
    if run.causes:
        names = ", ".join(f"{each.ref} at resourceVersion {each.resource_version}" for each in run.causes[:3])
        if changes.oldest is None or all(changes.at_version(each.ref, each.resource_version) for each in run.causes):
            return f"{run.controller} ran because of its own write"
        return f"{run.controller} ran because of {names}, which is older than the history of this page"
    reasons = ", ".join(run.reasons) or "no reason reported"
    return f"{run.controller} ran without a change of an object: {reasons}"
