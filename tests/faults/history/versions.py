"""S3, S5, R1: resourceVersions increase with time, and each is the base of at most one write."""

from __future__ import annotations

import heapq

from tests.faults.history.records import OK, History, Operation
from tests.faults.history.violation import Violation


def check_versions(history: History) -> None:
    """A write that was called after another returned has a larger resourceVersion, whatever its key."""
    written = [o for o in history.operations if o.outcome == OK and o.kind in ("create", "update")]
    newest: Operation | None = None  # of those that have returned
    returned: list[tuple[float, int, Operation]] = []
    for operation in sorted(written, key=lambda each: each.called):
        while returned and returned[0][0] < operation.called:
            done = heapq.heappop(returned)[2]
            if newest is None or done.version > newest.version:
                newest = done
        if newest is not None and operation.version <= newest.version:
            name = "R1" if any(newest.called < tick < operation.called for tick in history.restores) else "S3"
            raise Violation(name, operation.key, "a later write has no larger resourceVersion", [newest, operation])
        heapq.heappush(returned, (operation.returned, operation.number, operation))


def check_winners(history: History) -> None:
    """Of the writes that expect the same resourceVersion of a key, one succeeds."""
    winners: dict[tuple[str, int], Operation] = {}
    for operation in history.operations:
        if operation.outcome == OK and operation.expected:
            first = winners.setdefault((operation.key, operation.expected), operation)
            if first is not operation:
                what = f"two writes replaced resourceVersion {operation.expected}"
                raise Violation("S5", operation.key, what, [first, operation])
