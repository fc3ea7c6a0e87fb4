"""Deliberately broken stores are caught, each within 50 runs."""

from __future__ import annotations

import pytest

from tests.faults.history.violation import Violation
from tests.faults.simulated.broken import DEFECTS
from tests.faults.simulated.run import Run

RUNS = 50


@pytest.mark.parametrize("name", DEFECTS)
def test_a_broken_store_is_caught_within_fifty_runs(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    defect, properties = DEFECTS[name]
    for seed in range(RUNS):
        run = Run(seed, store="memory")
        try:
            with defect(run):
                run.run()
        except Violation as violation:
            found = violation
            break
    else:
        pytest.fail(f"{name}: not caught in {RUNS} runs")
    with capsys.disabled():
        print(f"\n{name}: caught in run {seed + 1} ({run}) by {found.name}", end="")
    assert found.name in properties, str(found)
