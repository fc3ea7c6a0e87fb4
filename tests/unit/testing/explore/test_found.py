"""What exploration has found in Ostinato itself stays mended."""

from __future__ import annotations

from tests.zoo.animals import LEO
from tests.zoo.crashes import marked_late

from ostinato.testing.explore import create, delete, explore, wait


def test_the_ready_condition_of_a_failure_is_removed_although_its_removal_failed_once() -> None:
    """A reconcile fails with 504 and marks the object; the read before the removal of the mark fails with 500."""
    world = (
        "1: timeout @ patch beasts.zoo.dev/status default/leo #1; internal-error @ get beasts.zoo.dev default/leo #2"
    )
    found = explore(marked_late, scenario=[create(LEO)], replay=world)
    assert "2 faults dealt" in found.coverage[1]


def test_a_long_wait_that_users_begin_early_is_not_a_world_that_does_not_come_to_rest() -> None:
    """The limit for the expected state, 600 seconds, was shorter than the step."""
    steps = [create(LEO), wait(2000.0), delete(LEO)]
    found = explore(marked_late, scenario=steps, replay="1: early-step @ event ADDED beasts.zoo.dev default/leo #1")
    assert "1 faults dealt" in found.coverage[1]
