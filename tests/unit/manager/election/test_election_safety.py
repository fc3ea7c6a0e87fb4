"""Never two writers at once: hundreds of contests with pauses, slow and lost answers, wrong clocks, deletions."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.unit.manager.contest import Contest

SEEDS = 200


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """Hundreds of elections are lost here, each with an error in the log."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("block", range(0, SEEDS, 50))
def test_never_two_candidates_write_at_the_same_time(block: int) -> None:
    for seed in range(block, block + 50):
        contest = Contest(seed, candidates=2 + seed % 2).run()
        assert contest.overlaps() == [], f"seed {seed}"


def test_a_contest_has_winners_that_write_and_change() -> None:
    contests = [Contest(seed, candidates=3).run() for seed in range(3)]
    assert all(contest.log for contest in contests)
    assert sum(contest.terms for contest in contests) >= 6
