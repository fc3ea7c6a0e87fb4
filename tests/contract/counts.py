"""The counts: how many recorded answers the server gives, by group. They may only grow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parent / "counts.json"


def hold(request: pytest.FixtureRequest, group: str, results: list[tuple[int, str]], total: int) -> None:
    """Fail if fewer answers are equal than the file says; raise the count there if asked to."""
    equal = sum(good for good, _ in results)
    differences = "\n".join(text for _, text in results if text)
    print(f"{group}: {equal}/{total}\n{differences}")
    counts = json.loads(FILE.read_text()) if FILE.exists() else {}
    before = counts.get(group, [0, total])[0]
    if equal > before and request.config.getoption("--update-counts"):
        counts[group] = [equal, total]
        FILE.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")
    assert equal >= before, f"{group}: {equal} of {total} answers are as recorded, and {before} were"
