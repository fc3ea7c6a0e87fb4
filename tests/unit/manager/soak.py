"""Contests for leadership by the thousand: `python -m tests.unit.manager.soak 5000`, or with a first seed behind it.

Prints each seed in which two candidates wrote at the same time, and how much was tried.
"""

from __future__ import annotations

import logging
import sys

from tests.unit.manager.contest import Contest


def main(count: int, first: int = 0) -> int:
    logging.disable(logging.CRITICAL)  # thousands of elections are lost here, each with an error
    terms = writes = failures = 0
    for seed in range(first, first + count):
        contest = Contest(seed, candidates=2 + seed % 2).run()
        terms += contest.terms
        writes += len(contest.log)
        if overlaps := contest.overlaps():
            failures += 1
            print(f"seed {seed}: {overlaps[0]}")
    print(f"{count} contests, {terms} terms, {writes} writes: {failures} with two writers at once")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["1000"])))
