"""Every bug of the zoo is found; repaired twins survive. `python -m tests.zoo.run` runs 2,000 worlds of each twin."""

from __future__ import annotations

import pytest

from tests.zoo.collection import ANIMALS
from tests.zoo.run import explored


def test_the_zoo_has_at_least_thirty_animals_and_names_their_sources() -> None:
    assert len(ANIMALS) >= 30
    assert all(each.source and each.bug for each in ANIMALS.values())


@pytest.mark.parametrize("name", ANIMALS)
def test_the_bug_is_found(name: str) -> None:
    found = explored(ANIMALS[name], ANIMALS[name].buggy, 400)
    assert found.failed is not None


@pytest.mark.parametrize("name", list(ANIMALS)[::6])
def test_the_repaired_twin_survives(name: str) -> None:
    found = explored(ANIMALS[name], ANIMALS[name].repaired, 15)
    assert found.failed is None, found.failed.text()


@pytest.mark.parametrize(
    "world",
    [
        "1: early-step @ external cloud.drop leo #1; early-step @ patch beasts.zoo.dev default/leo #2",
        "1: server-restored @ settled 1 #1; unobserved @ event ADDED beasts.zoo.dev default/leo #2",
    ],
    ids=["the last step begun early twice", "lost finalizers"],
)
def test_worlds_that_no_operator_survives_are_not_made(world: str) -> None:
    animal = ANIMALS["finalizer-late"]
    found = explored(animal, animal.repaired, 1, world)
    assert found.failed is None, found.failed.text()
