"""All checks of a history."""

from __future__ import annotations

from tests.faults.history.linearizable import check_linearizable
from tests.faults.history.reads import check_reads
from tests.faults.history.records import UNKNOWN, History, Operation
from tests.faults.history.truth import Truth
from tests.faults.history.versions import check_versions, check_winners
from tests.faults.history.violation import Violation
from tests.faults.history.watches import check_watches


def check(history: History) -> Truth:
    """Raise the first Violation; return the writes of the run."""
    truth = Truth(history)
    _check_denied(history, truth)
    check_versions(history)
    check_winners(history)
    check_linearizable(_possible(history, truth), truth.versions)
    check_reads(history, truth)
    check_watches(history, truth)
    return truth


def _check_denied(history: History, truth: Truth) -> None:
    """S4: a write that failed for certain did not happen."""
    for operation in history.operations:
        if truth.is_exact and operation.denied and operation.value in truth.versions:
            what = f"refused, but written as resourceVersion {truth.versions[operation.value]}"
            raise Violation("S4", operation.key, what, [operation])


def _possible(history: History, truth: Truth) -> list[Operation]:
    """Without the writes that surely did not happen: they have no outcome, and are not in the log."""
    if not truth.is_exact:
        return history.operations
    return [
        each for each in history.operations if each.outcome != UNKNOWN or not each.value or each.value in truth.versions
    ]
