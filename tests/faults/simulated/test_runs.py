"""Histories in virtual time, each with one fault: no property is violated, and a seed replays exactly."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.history.records import OK, UNKNOWN
from tests.faults.simulated.faults import FAULTS
from tests.faults.simulated.run import OPERATIONS, Run

RUNS = 200
PARTS = 8  # so that several workers can share them


@pytest.mark.parametrize("part", range(PARTS))
def test_runs_with_one_fault_each_violate_nothing(part: int) -> None:
    for seed in range(part, RUNS, PARTS):
        run = Run(seed).run()
        assert len(run.history.operations) >= OPERATIONS, run


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_each_fault_disturbs_and_violates_nothing(fault: str, store: str) -> None:
    run = Run(7, store=store, fault=fault).run()
    outcomes = Counter(operation.outcome for operation in run.history.operations)
    assert outcomes[OK] > 100
    if fault.startswith(("kills", "full", "read-only", "failing", "disconnects")):
        assert outcomes[UNKNOWN]
    if fault.startswith(("kill", "full-disk-then-kill", "stop")):
        assert run.machine.lives > 1
    if fault in ("compaction", "kills"):
        assert any(stream.refused == "Expired" for stream in run.history.streams)


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_seed_replays_exactly(store: str) -> None:
    first, second = (Run(3, store=store, fault="kills").run() for _ in range(2))
    assert first.world.trace.digest() == second.world.trace.digest()
    assert [str(each) for each in first.history.operations] == [str(each) for each in second.history.operations]
    assert Run(4, store=store, fault="kills").run().world.trace.digest() != first.world.trace.digest()
