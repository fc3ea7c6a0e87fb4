"""Chain of causes: from a change of an object back to the edit that began it.

    write ← run that made it ← write that caused the run ← run that made that ← … ← write of a user

- A run without such a cause continues with the run of its key before it: it was requeued, or an operation that it began
  has ended, such as the termination of a container.
- Of several causes of a run, a write of another author counts, since a controller's own status is no reason: the newest
  that changed more than a status, or else the newest.
- A write that no run reported is a user's, unless its field manager is one of Kubernetes' components.
"""

from __future__ import annotations

from typing import Final

from ostinato.controllers.reasons import SCHEDULE, SHARD, STARTUP
from ostinato.page.facts import Reconcile, Step
from ostinato.page.history.authors import COMPONENTS
from ostinato.page.history.change import Change
from ostinato.page.history.changes import Changes
from ostinato.page.history.runs import Runs

MAX_STEPS: Final = 60
_BEGINS: Final = frozenset({STARTUP, SCHEDULE, SHARD})  # reasons that no earlier run led to


def chain(change: Change, changes: Changes, runs: Runs) -> list[Step]:
    """Return the chain of causes of a change, newest first."""
    steps: list[Step] = []
    seen: set[str] = set()
    current: Change | None = change
    while current is not None and len(steps) < MAX_STEPS:
        if current.id in seen:
            break
        seen.add(current.id)
        if not current.run:
            steps.append(_last(current))
            break
        steps.append(Step(type="write", write=current.with_diff()))
        run = runs.get(current.run)
        if run is None:
            steps.append(Step(type="unknown", why=_missing(current, changes)))
            break
        current = _follow(run, steps, seen, changes, runs)
    return steps


def _follow(run: Reconcile, steps: list[Step], seen: set[str], changes: Changes, runs: Runs) -> Change | None:
    """Add a run, and those that requeued it; return the change that caused the first of them."""
    while True:
        steps.append(Step(type="reconcile", reconcile=run))
        seen.add(run.id)
        cause = _cause(run, seen, changes)
        if cause is not None:
            return cause
        before = None if run.causes or _BEGINS.intersection(run.reasons) else runs.before(run)
        if before is None or before.id in seen or len(steps) >= MAX_STEPS:
            steps.append(Step(type="unknown", why=_why(run, changes)))
            return None
        run = before


def _cause(run: Reconcile, seen: set[str], changes: Changes) -> Change | None:
    """Return the change that caused a run, as far as it is known."""
    found = [changes.at_version(each.ref, each.resource_version) for each in run.causes]
    known = [each for each in found if each is not None and each.id not in seen]
    others = [each for each in known if each.controller != run.controller]
    return max(others or known, key=lambda each: (each.shown().verb != "status", each.number), default=None)


def _last(change: Change) -> Step:
    write = change.with_diff()
    if write.manager in COMPONENTS:
        why = f"{write.manager} wrote {change.ref}, and does not report its reasons to this page"
        return Step(type="unknown", why=why, write=write)
    return Step(type="user", who=write.manager or "unknown", write=write)


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
