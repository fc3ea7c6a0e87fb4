"""Causes of a run: which of the changes that enqueued its key led to one of its writes.

Decided by what the changes are, not by when they were:

| relevance | the change |
|---|---|
| `LEADS` | is a reason for this write: see below |
| `COMPLETES` | is one too, but only removes an object whose deletion was seen before: most controllers acted then |
| `OTHER` | is another change of more than a status: of a Node, of a ConfigMap |
| `STATUS` | is of a status |
| `OWN` | is a write of the same controller |

A change is a reason for a write

- of the object that it changed, unless it changed only the status;
- of an object whose owner it changed: its specification, or that it is being deleted. A change of `spec.replicas` is a
  reason to create objects if it is an increase, and to delete objects if it is a decrease;
- that creates an object, if another one of the same kind and owner is deleted or has ended;
- that deletes an object, if another one of the same kind and owner was created or has become ready;
- of the status of an object that owns the one that it changed.

Causes that are equally relevant are all causes; the newest of them comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from ostinato.controllers.reasons import CONFLICT, ERROR, RETRY
from ostinato.page.facts import Reconcile
from ostinato.page.history.change import Change
from ostinato.page.history.changes import Changes
from ostinato.page.history.runs import Runs

_REPEATS: Final = frozenset({CONFLICT, ERROR, RETRY})  # reasons of a run that repeats the one before it
_MAX_REPEATED: Final = 20  # runs


class Relevance(IntEnum):
    OWN = 0
    STATUS = 1
    OTHER = 2
    COMPLETES = 3
    LEADS = 4


def causes_of(
    run: Reconcile, write: Change, changes: Changes, runs: Runs, seen: set[str]
) -> tuple[list[Reconcile], list[Change]]:
    """Return the causes of a write, as far as they are known.

    - The runs, from the one that wrote to the one that the first cause enqueued: a failed run is repeated, and its
      causes are those of the repetition.
    - The most relevant causes, the newest first. Without those in `seen`.
    """
    found: list[tuple[Change, int]] = []  # with the number of the run
    considered = [run]
    for number in range(_MAX_REPEATED):
        found += [(each, number) for each in _known(considered[number], changes) if each.id not in seen]
        before = runs.before(considered[number]) if _REPEATS.intersection(considered[number].reasons) else None
        if before is None:
            break
        considered.append(before)
    best = _best(found, write, run.controller)
    if not best:
        return considered, []
    return considered[: best[0][1] + 1], [each for each, _ in best]


def _known(run: Reconcile, changes: Changes) -> list[Change]:
    states = (changes.at_version(each.ref, each.resource_version) for each in run.causes)
    return [each for each in states if each is not None]


def _best(found: Sequence[tuple[Change, int]], write: Change, controller: str) -> list[tuple[Change, int]]:
    if len(found) > 1:
        ranked = [(relevance(each, write, controller), each, number) for each, number in found]
        most = max(rank for rank, _, _ in ranked)
        found = [(each, number) for rank, each, number in ranked if rank == most]
    return sorted(found, key=lambda each: each[0].number, reverse=True)


def relevance(cause: Change, write: Change, controller: str) -> Relevance:
    """Return how relevant a change is for a write of a controller."""
    if cause.controller == controller:
        return Relevance.OWN
    if _leads(cause, write):
        return Relevance.COMPLETES if cause.completes_deletion else Relevance.LEADS
    return Relevance.STATUS if cause.content.is_status else Relevance.OTHER


def _leads(cause: Change, write: Change) -> bool:
    if cause.uid == write.uid:
        return not cause.content.is_status
    if write.content.is_status:
        return write.uid in cause.owners
    if cause.uid in write.owners:
        return _changes_owner(cause, write)
    if cause.gvk != write.gvk or set(cause.owners).isdisjoint(write.owners):
        return False
    if write.type == "create":
        return cause.is_deletion or cause.content.has_ended
    return write.is_deletion and (cause.type == "create" or cause.content.got_ready)


def _changes_owner(cause: Change, write: Change) -> bool:
    """Whether a change of an owner is a reason for a write of what it owns."""
    if cause.is_deletion:
        return write.is_deletion
    if not cause.content.is_specification:
        return False
    scaled = cause.content.scaled
    if scaled and write.type == "create":
        return scaled > 0
    return not (scaled and write.is_deletion) or scaled < 0
