"""Counts: the number of answers equal to the recorded ones, by group. They may only grow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import one_at_a_time

FILE = Path(__file__).resolve().parent / "counts.json"


Result = tuple[int, str]  # the number of equal answers of a case, and the differences


def best_of_two(group: str, results: list[Result], again: Callable[[int], Result]) -> list[Result]:
    """The results; if there are too few equal answers, retry the differing cases once: some depend on timing."""
    if sum(good for good, _ in results) >= _held().get(group, [0])[0]:
        return results
    return [max(result, again(i)) if result[1] else result for i, result in enumerate(results)]


def hold(request: pytest.FixtureRequest, group: str, results: list[Result], total: int) -> None:
    """Fail if fewer answers are equal than in the file; with --update-counts, raise the count there."""
    equal = sum(good for good, _ in results)
    differences = "\n".join(text for _, text in results if text)
    print(f"{group}: {equal}/{total}\n{differences}")
    before = _held().get(group, [0, total])[0]
    if equal > before and request.config.getoption("--update-counts"):
        with one_at_a_time(FILE):
            FILE.write_text(json.dumps(_held() | {group: [equal, total]}, indent=1, sort_keys=True) + "\n")
    assert equal >= before, f"{group}: {equal} of {total} answers are as recorded, and {before} were"


def _held() -> dict[str, list[int]]:
    counts: dict[str, list[int]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return counts
