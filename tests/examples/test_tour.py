"""The tour runs and prints its steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOUR = Path(__file__).resolve().parents[2] / "examples" / "tour.py"


def test_the_tour_runs_and_repeats_itself() -> None:
    done = subprocess.run([sys.executable, str(TOUR)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "Apply failed with 1 conflict" in done.stdout
    assert "field is immutable" in done.stdout
    assert done.stdout.endswith("equal, event by event\n")
