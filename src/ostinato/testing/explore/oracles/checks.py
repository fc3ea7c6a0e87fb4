"""The oracles that judge the record of a finished run.

| oracle | objects to |
|---|---|
| convergence | a settled state that differs from that of the run without faults (found by the run) |
| quiet | writes, or many requests, although nothing is left to do |
| duplicates | an object that was created or deleted more often than in the run without faults |
| orphans | objects that the operator created and that outlive everything they belong to |
| status | an observedGeneration that is not the current one once nothing is left to do |
| errors | errors other than those of requests; reconciles that still fail at the end |
| leadership | a write of a replica that is not the leader |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ostinato.testing.explore.world.outcome import Outcome, Problem
from ostinato.testing.explore.world.settings import Reference

_REQUESTS_SLACK = 20  # requests in the quiet period, beyond twice as many as without faults
_EXTRA_CREATES = {"child-deleted": 1, "server-restored": 1}  # faults after which an object is made once more


def judge(outcome: Outcome, reference: Reference) -> list[Problem]:
    """Return what the oracles object to."""
    if outcome.problems:  # the run did not reach its end: the rest of its record is incomplete
        return [*outcome.problems, *_errors(outcome), *_leadership(outcome)]
    return [
        *_errors(outcome),
        *_leadership(outcome),
        *_quiet(outcome, reference),
        *_duplicates(outcome, reference),
        *_status(outcome),
    ]


def judge_reference(outcome: Outcome) -> list[Problem]:
    """Return what is wrong without any fault."""
    found = [*outcome.problems, *_errors(outcome), *_status(outcome)]
    if outcome.orphans:
        text = "objects of the operator are left when everything that they belong to is deleted"
        found.append(Problem("orphans", text, tuple(outcome.orphans)))
    if outcome.quiet_writes:
        text = f"the operator writes although nothing is left to do: {outcome.quiet_writes} writes"
        found.append(Problem("quiet", text, tuple(_last_writes(outcome))))
    return found


def _quiet(outcome: Outcome, reference: Reference) -> Iterable[Problem]:
    if outcome.quiet_writes > reference.quiet_writes:
        text = f"the operator writes although nothing is left to do: {outcome.quiet_writes} writes"
        yield Problem("quiet", text, tuple(_last_writes(outcome)))
    elif outcome.quiet_requests > 2 * reference.quiet_requests + _REQUESTS_SLACK:
        usual = f"{reference.quiet_requests} without faults"
        yield Problem("quiet", f"hot loop: {outcome.quiet_requests} requests in the quiet period, {usual}")


def _last_writes(outcome: Outcome) -> list[str]:
    writes = [
        f"t+{each.time:.3f} {each.what} ({each.outcome})"
        for each in outcome.record.entries
        if each.action == "request" and not each.what.startswith(("get ", "list "))
    ]
    return writes[-3:]


def _duplicates(outcome: Outcome, reference: Reference) -> Iterable[Problem]:
    slack = sum(_EXTRA_CREATES.get(fault.kind, 0) for fault in outcome.dealt)
    removed = outcome.record.removals_by_others()
    creates = {  # what others have deleted more often may be created more often
        text: reference.creates.get(text, 0) + max(0, removed.get(text, 0) - reference.removals.get(text, 0))
        for text in outcome.record.creates
    }
    deletes = {  # what others have deleted less often, such as the collector, may be deleted more often
        text: reference.deletes.get(text, 0) + max(0, reference.removals.get(text, 0) - removed.get(text, 0))
        for text in outcome.record.deletes
    }
    for verb, made, expected in (
        ("created", outcome.record.creates, creates),
        ("deleted", outcome.record.deletes, deletes),
    ):
        for text in _excess(made, expected, slack):
            yield Problem("duplicates", f"{text}, {verb} {made[text]} times, {expected.get(text, 0)} without faults")


def _excess(made: Mapping[str, int], expected: Mapping[str, int], slack: int) -> list[str]:
    """Objects of generated names are not counted: a lost answer cannot be told from a lost request."""
    return [text for text, count in made.items() if not text.endswith("*") and count > expected.get(text, 0) + slack]


def _errors(outcome: Outcome) -> Iterable[Problem]:
    unexpected = [each for each in outcome.record.failures if not each.expected]
    if unexpected:
        first = unexpected[0]
        yield Problem("errors", f"reconcile of {first.key} failed at t+{first.time:.3f} s: {first.error}")
    still = [each for each in outcome.record.unresolved.values() if each.expected]
    if still and not outcome.problems:
        yield Problem("errors", f"reconcile of {still[0].key} still fails at the end: {still[0].error}")


def _status(outcome: Outcome) -> Iterable[Problem]:
    if outcome.stale_status:
        yield Problem("status", "the status is about an earlier generation", tuple(outcome.stale_status))


def _leadership(outcome: Outcome) -> Iterable[Problem]:
    for each in list(outcome.trespasses)[:1]:
        text = f"{each.replica} wrote while {each.leader} was the leader: {each.what}, at t+{each.time:.3f} s"
        yield Problem("leadership", text)
