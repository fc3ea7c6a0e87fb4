"""All checks of a history."""

from __future__ import annotations

from tests.faults.history.linearizable import check_linearizable
from tests.faults.history.reads import check_reads
from tests.faults.history.records import UNKNOWN, History, Operation
from tests.faults.history.truth import Truth
from tests.faults.history.versions import check_versions, check_winners
from tests.faults.history.watches import check_watches


def check(history: History) -> Truth:
    """Raise the first Violation; return the writes of the run."""
    truth = Truth(history)
    check_versions(history)
    check_winners(history)
    check_linearizable(_possible(history, truth), truth.versions)
    check_reads(history, truth)
    check_watches(history, truth)
    return truth


def _possible(history: History, truth: Truth) -> list[Operation]:
    """Without the writes that surely did not happen: they have no outcome, and are not in the log."""
    if not truth.is_exact:
        return history.operations
    return [
        each for each in history.operations if each.outcome != UNKNOWN or not each.value or each.value in truth.versions
    ]
