"""Backoff of a Job after failures: 10 seconds, doubled with each failure, at most 10 minutes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from ostinato.plane.controllers.workloads.job.pods import JobPod, failure_count, finished_at, ignored_failure_count

FIRST: Final = 10.0
LONGEST: Final = 600.0


class Failures(msgspec.Struct, frozen=True):
    """Number of consecutive failures and the time of the last one."""

    count: int = 0
    last: datetime | None = None

    def after(self, succeeded: Iterable[JobPod], failed: Iterable[JobPod]) -> Failures:
        """Return the failures after these Pods have finished."""
        ends = sorted(map(finished_at, failed))
        successes = [finished_at(pod) for pod in succeeded]
        if successes:
            last_success = max(successes)
            ends = [each for each in ends if each > last_success]
            return Failures(len(ends), ends[-1] if ends else None)
        return Failures(self.count + len(ends), ends[-1]) if ends else self

    def wait(self, now: datetime) -> float:
        """Return the remaining backoff in seconds."""
        if not self.count or self.last is None:
            return 0.0
        pause = min(FIRST * 2.0 ** min(self.count - 1, 16), LONGEST)
        return max(0.0, pause - (now - self.last).total_seconds())


def of_index(last_failed: JobPod | None) -> Failures:
    """Return the failures of an index, from its last failed Pod."""
    if last_failed is None:
        return Failures()
    return Failures(failure_count(last_failed) + ignored_failure_count(last_failed) + 1, finished_at(last_failed))
