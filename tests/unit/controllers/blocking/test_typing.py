from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
SAMPLE = Path(__file__).with_name("typing_sample.py")


def test_a_type_checker_understands_plain_functions() -> None:
    """With `--strict`, mistakes that are expected and not reported are errors too (unused ignores)."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), str(SAMPLE)]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
