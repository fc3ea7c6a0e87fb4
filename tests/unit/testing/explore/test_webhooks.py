"""Webhooks of the operator are called in every world, and fail as its processes do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.testing.explore.operators import Pond, careful, pond

from ostinato.testing import load
from ostinato.testing.explore import create, delete, edit
from ostinato.testing.explore.api import Options, run, subject_of
from ostinato.testing.explore.explorer import Explorer
from ostinato.testing.explore.plan import Plan
from ostinato.webhook import Denied, ServiceEndpoint, Webhooks, defaulter, validator

SCENARIO = (create(pond()), edit(pond(), size=2), delete(pond()))
ENDPOINT = ServiceEndpoint("ponds", "ponds")
MUTATE = "webhook CREATE /mutate-explored-dev-v1-pond default/a #1"


@defaulter(Pond)
def enlarge(given: Pond) -> None:
    given.spec.size = max(given.spec.size, 5)


@validator(Pond)
async def limited(given: Pond) -> None:
    if given.spec.size > 9:
        raise Denied("too large")


WEBHOOKS = Webhooks(enlarge, limited, endpoint=ENDPOINT)


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    made = Explorer(subject_of([careful, WEBHOOKS], SCENARIO, Options()))
    assert made.prepare().problems == []
    return made


def test_a_write_of_users_is_mutated_and_validated_by_the_operator(explorer: Explorer) -> None:
    assert explorer.reference.steps[0].objects["Pond default/a"]["spec"] == {"size": 5}
    reached = {str(visit.point) for visit in explorer.world(Plan(1)).visits}
    assert {MUTATE, "webhook CREATE /validate-explored-dev-v1-pond default/a #1"} <= reached


def test_a_write_that_the_operator_denies_ends_the_scenario() -> None:
    found = run([careful, WEBHOOKS], [create(pond(size=10))], Options(worlds=1))
    assert found.failed is not None
    assert "too large" in found.failed.outcome.problems[0].text


@pytest.mark.parametrize("fault", ["webhook-fails", "webhook-slow", "crash-before", "crash-after"])
def test_users_try_again_while_a_webhook_does_not_answer(explorer: Explorer, fault: str) -> None:
    outcome = explorer.world(Plan.parse(f"1: {fault} @ {MUTATE}"))
    assert outcome.problems == []
    assert len(outcome.dealt) == 1
    calls = [each for each in outcome.record.entries if each.action == "webhook" and "CREATE /mutate" in each.what]
    assert len(calls) == (2 if fault == "crash-after" else 1)


def test_a_webhook_that_remembers_what_it_has_admitted_is_found() -> None:
    """Its answer was lost once, and the name is taken ever since."""

    def operator() -> list[object]:
        admitted: list[str] = []

        @validator(Pond, operations=["CREATE"])
        async def unique(given: Pond) -> None:
            if given.metadata.name in admitted:
                raise Denied("exists")
            admitted.append(given.metadata.name)

        return [careful, Webhooks(unique, endpoint=ENDPOINT)]

    found = run(operator, SCENARIO, Options(only=["lost-answer"], worlds=20))
    assert found.failed is not None
    assert "lost-answer @ webhook CREATE /validate-explored-dev-v1-pond" in str(found.failed.outcome.plan)


def test_conversions_are_the_operators() -> None:
    example = load(Path(__file__).parents[4] / "examples" / "versions.py")
    old = {
        "apiVersion": "example.dev/v1beta1",
        "kind": "Monitor",
        "metadata": {"name": "shop"},
        "spec": {"address": "shop.example.org:443"},
    }
    faults = ["webhook-fails", "crash-before"]
    found = run([example.monitors, example.webhooks], [create(old), delete(old)], Options(worlds=10, only=faults))
    assert found.failed is None, found.failed.text()
    assert "webhook-fails" in found.coverage[2]
