"""The control plane survives faults: some worlds of one scenario. `python -m tests.explored.run` explores all."""

from __future__ import annotations

from tests.explored.run import explored
from tests.explored.scenarios import SCENARIOS


def test_the_control_plane_survives() -> None:
    found = explored(SCENARIOS["replicaset"], worlds=6)
    assert found.failed is None, found.failed.text()
