"""Batches: worlds in copies of the process are those that a plain run has, step by step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing

import msgspec
import pytest
from tests.unit.testing.explore.operators import Pond, careful, pond

from ostinato import Context, controller
from ostinato.testing.explore import create, delete, edit
from ostinato.testing.explore.api import Options, run, subject_of
from ostinato.testing.explore.batch import Batches
from ostinato.testing.explore.explorer import Explorer
from ostinato.testing.explore.faults import catalogue
from ostinato.testing.explore.plan import Plan
from ostinato.testing.explore.world.outcome import Outcome

SCENARIO = (create(pond()), edit(pond(), size=2), delete(pond()))
PLANS = (
    "1: crash-after @ apply configmaps default/a #1",
    "1: lag @ event MODIFIED ponds.explored.dev default/a #1",
    "1: crash-after @ apply configmaps default/a #1; conflict @ apply configmaps default/a-two #1",
    "1: pause @ apply configmaps default/a #1",
    "1: restart @ settled 3 #1",
    "1: restart @ settled 99 #1",
    "7~: touched @ apply configmaps default/a #1",
    "7~: touched @ apply configmaps default/a #1; server-restart @ apply configmaps default/a-two #1",
)


def explorer_of(operator: object) -> Explorer:
    explorer = Explorer(subject_of(operator, SCENARIO, Options()))
    assert explorer.prepare().problems == []
    return explorer


def outcomes_of(explorer: Explorer, plans: Sequence[Plan], *, steps: int) -> list[Outcome]:
    reference = msgspec.structs.replace(explorer.reference, duration=steps)
    with closing(Batches(explorer.subject, catalogue.make, reference)) as batches:
        return list(batches.run(plans))


@pytest.mark.parametrize("steps", [1, 1_000_000], ids=["one by one", "branching"])
def test_a_world_of_a_batch_is_the_world_that_a_plain_run_has(steps: int) -> None:
    explorer = explorer_of(careful)
    plans = [Plan.parse(each) for each in PLANS]
    for plan, outcome in zip(plans, outcomes_of(explorer, plans, steps=steps), strict=True):
        alone = explorer.world(plan)
        assert outcome.plan == plan
        assert outcome.trace == alone.trace, str(plan)
        assert outcome.signature == alone.signature
        assert (outcome.dealt, outcome.visits) == (alone.dealt, alone.visits)


@controller(Pond, name="fatal")
async def fatal(parent: Pond, ctx: Context) -> None:
    if parent.metadata.annotations:
        os._exit(7)
    await ctx.status(size=parent.spec.size)


@pytest.mark.parametrize("steps", [1, 1_000_000], ids=["one by one", "branching"])
def test_an_operator_that_ends_its_process_fails_in_that_world_alone(steps: int) -> None:
    explorer = explorer_of(fatal)
    write = "patch ponds.explored.dev/status default/a #1"
    plans = [Plan.parse(f"1: {each} @ {write}") for each in ("conflict", "touched", "lost-answer")]
    problems = [[str(each) for each in found.problems] for found in outcomes_of(explorer, plans, steps=steps)]
    assert problems == [[], ["errors: the process of the world ended with exit code 7"], []]


_PROCESS = os.getpid()


@controller(Pond, name="elusive")
async def elusive(parent: Pond, ctx: Context) -> None:
    if os.getpid() != _PROCESS:
        raise LookupError("only in a copy")
    await ctx.status(size=parent.spec.size)


def test_a_failure_that_cannot_be_repeated_is_reported_as_such() -> None:
    found = run(elusive, SCENARIO, Options(worlds=1))
    assert found.failed is not None
    assert {each.oracle for each in found.failed.original.problems} >= {"errors", "determinism"}
