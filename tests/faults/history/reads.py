"""S6, S7, C2: lists are snapshots, and reads are as fresh as they ask for."""

from __future__ import annotations

import heapq

from tests.faults.history.records import OK, WRITES, History, Operation
from tests.faults.history.truth import Truth
from tests.faults.history.violation import Violation


def check_reads(history: History, truth: Truth) -> None:
    """Each list is the state at its resourceVersion."""
    for operation in history.operations:
        if operation.kind == "list" and operation.outcome == OK:
            _check_snapshot(operation, truth)
        if operation.kind in ("get", "list") and operation.asked.isdigit() and operation.asked != "0":
            _check_requested(operation)
            _check_object(operation, truth)
    _check_freshness(history)


def _check_snapshot(operation: Operation, truth: Truth) -> None:
    then = truth.state(operation.version, operation.key, operation.group)
    for key, (version, _) in operation.items.items():
        if version > operation.version:
            what = f"a list at {operation.version} has an object of resourceVersion {version}"
            raise Violation("S6", key, what, [operation])
        commit = then.pop(key, None)
        if commit is None or commit.version != version:
            last = truth.at(key, operation.version)
            what = f"a list at {operation.version} has its state of resourceVersion {version}"
            raise Violation("S6", key, what, [operation, "" if last is None else last.seen])
    for key, commit in then.items():
        if not truth.may_be_absent(key):
            raise Violation("S6", key, f"missing in a list at {operation.version}", [operation, commit.seen])


def _check_requested(operation: Operation) -> None:
    """S7 and C2, for reads that name a resourceVersion."""
    wanted = int(operation.asked)
    if operation.outcome == "Timeout":
        if operation.version >= wanted:
            what = f"timed out, although the server was at {operation.version}"
            raise Violation("C2", operation.key, what, [operation])
    elif operation.outcome == OK and operation.kind == "list" and operation.version != wanted:
        if operation.version > wanted and not operation.exact:
            return
        raise Violation("S7", operation.key, f"asked for {wanted}, got {operation.version}", [operation])


def _check_object(operation: Operation, truth: Truth) -> None:
    """S7: an object that is read at a resourceVersion was not replaced before it."""
    if operation.kind != "get" or operation.outcome != OK:
        return
    wanted = int(operation.asked)
    then = truth.at(operation.key, wanted)
    if then is not None and operation.version < then.version:
        what = f"asked for {wanted}, got the object of {operation.version}, which {then.version} had replaced"
        raise Violation("S7", operation.key, what, [operation, then.seen])


def _check_freshness(history: History) -> None:
    """S7: a list without a resourceVersion is not older than any write acknowledged before it, of any key."""
    writes = (each for each in history.operations if each.outcome == OK and each.kind in WRITES and each.version)
    done = [(write.returned, write.number, write) for write in writes]
    heapq.heapify(done)
    newest: Operation | None = None
    lists = [o for o in history.operations if o.kind == "list" and o.outcome == OK and o.asked == "" and not o.exact]
    for listed in sorted(lists, key=lambda each: each.called):
        while done and done[0][0] < listed.called:
            write = heapq.heappop(done)[2]
            if newest is None or write.version > newest.version:
                newest = write
        if newest is not None and listed.version < newest.version:
            raise Violation("S7", newest.key, "a list is older than an acknowledged write", [newest, listed])
