"""What exploration has found in Ostinato itself stays mended."""

from __future__ import annotations

from tests.zoo.animals import LEO
from tests.zoo.crashes import marked_late

from ostinato.testing.explore import create, explore


def test_the_ready_condition_of_a_failure_is_removed_although_its_removal_failed_once() -> None:
    """A reconcile fails with 504 and marks the object; the read before the removal of the mark fails with 500."""
    world = (
        "1: timeout @ patch beasts.zoo.dev/status default/leo #1; internal-error @ get beasts.zoo.dev default/leo #2"
    )
    found = explore(marked_late, scenario=[create(LEO)], replay=world)
    assert "2 faults dealt" in found.coverage[1]
