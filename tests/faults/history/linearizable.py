"""S2: the operations on each key can be put in one order that agrees with their times and results.

The checker keeps the set of configurations that explain the history so far: the state of the key, and which of the open
writes have taken effect. A call adds an open operation; a return keeps the configurations in which the operation has
taken effect, after letting other open ones do so before it where that is needed. Its memory is bounded by the open
operations, so it can follow a run of any length.

A write with an unknown outcome stays open until `until`, and need not take effect at all.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from tests.faults.history.records import NEVER, OK, UNKNOWN, WRITES, Operation
from tests.faults.history.violation import Violation

ABSENT = 0  # the state of a key without an object; other states are the values written
_IMPOSSIBLE = -1
_Configuration = tuple[int, int]  # state, bit set of open operations that have taken effect


class KeyChecker:
    """Follows the operations on one key. `versions`: the resourceVersion of each value, where it is known."""

    def __init__(self, key: str, versions: Mapping[int, int], states: Iterable[int] = (ABSENT,)) -> None:
        self.key = key
        self._versions = versions
        self._configurations: set[_Configuration] = {(state, 0) for state in states}
        self._open: dict[int, Operation] = {}  # by bit
        self._free: list[int] = []  # bits that can be used again
        self._bits = 0
        self._bit_of: dict[int, int] = {}  # by number of the operation

    @property
    def states(self) -> set[int]:
        return {state for state, _ in self._configurations}

    def call(self, operation: Operation) -> None:
        if self._free:
            bit = self._free.pop()
        else:
            bit, self._bits = 1 << self._bits, self._bits + 1
        self._open[bit] = operation
        self._bit_of[operation.number] = bit

    def ended(self, operation: Operation) -> bool:
        """The operation has returned; False if no configuration explains its result."""
        bit = self._bit_of.pop(operation.number)
        found = self._with(bit)
        self._close(bit, found)
        return bool(found)

    def expired(self, operation: Operation) -> None:
        """An unknown write can no longer take effect, and may have done so."""
        bit = self._bit_of.pop(operation.number)
        self._close(bit, self._configurations | self._with(bit))

    def _close(self, bit: int, found: set[_Configuration]) -> None:
        del self._open[bit]
        self._free.append(bit)
        self._configurations = self._simplest({(state, done & ~bit) for state, done in found})

    def _simplest(self, found: set[_Configuration]) -> set[_Configuration]:
        """Without those that have used more unknown writes than another, and are equal otherwise."""
        if len(found) < 3:
            return found
        unknown = sum(bit for bit, operation in self._open.items() if operation.outcome == UNKNOWN)
        kept: dict[tuple[int, int], list[int]] = {}
        for state, done in sorted(found, key=lambda each: each[1].bit_count()):
            used = kept.setdefault((state, done & ~unknown), [])
            if not any(less & done == less for less in used):
                used.append(done)
        return {(state, done) for (state, _), used in kept.items() for done in used}

    def _with(self, wanted: int) -> set[_Configuration]:
        """The configurations in which an open operation has taken effect."""
        found: set[_Configuration] = set()
        todo = [self._with_reads(state, done) for state, done in self._configurations]
        seen = set(todo)
        while todo:
            state, done = todo.pop()
            if done & wanted:
                found.add((state, done))
                continue
            tried = set()
            for bit, operation in self._open.items():
                if done & bit:
                    continue
                if operation.outcome == UNKNOWN and operation.value not in self._versions:
                    alike = operation.kind, operation.expected
                    if alike in tried:
                        continue  # those that no one saw are alike: the one called first stands for all
                    tried.add(alike)
                after = self._after(state, operation)
                if after not in (_IMPOSSIBLE, state):
                    following = self._with_reads(after, done | bit)
                    if following not in seen:
                        seen.add(following)
                        todo.append(following)
        return found

    def _with_reads(self, state: int, done: int) -> _Configuration:
        """Let open operations that change nothing take effect as soon as they can: that is never too early."""
        for bit, operation in self._open.items():
            if not done & bit and operation.outcome != UNKNOWN and self._after(state, operation) == state:
                done |= bit
        return state, done

    def _after(self, state: int, operation: Operation) -> int:
        """The state after an operation with its result; `_IMPOSSIBLE` if it cannot have that result."""
        kind, outcome, expected = operation.kind, operation.outcome, operation.expected
        is_absent = state == ABSENT
        if kind in ("get", "list"):
            return state if (ABSENT if outcome == "NotFound" else operation.value) == state else _IMPOSSIBLE
        if outcome == "NotFound":
            return state if is_absent else _IMPOSSIBLE
        if outcome == "AlreadyExists":
            return _IMPOSSIBLE if is_absent else state
        matches = not expected or self._versions.get(state) == expected
        if outcome == "Conflict":
            return _IMPOSSIBLE if matches and not is_absent else state
        if kind == "create":
            return operation.value if is_absent else _IMPOSSIBLE
        if is_absent or not matches:
            return _IMPOSSIBLE
        return operation.value if kind == "update" else ABSENT


def check_linearizable(operations: Iterable[Operation], versions: Mapping[int, int]) -> None:
    """Raise a Violation with the smallest contradiction that was found. The keys of lists are checked like gets."""
    for key, of_key in by_key(operations).items():
        if _first_unexplained(key, of_key, versions) is not None:
            few = _reduced(key, of_key, versions)
            last = _first_unexplained(key, few, versions)
            what = f"no order of these operations explains {last}"
            raise Violation("S2", key, what, sorted(few, key=lambda operation: operation.called))


def by_key(operations: Iterable[Operation]) -> dict[str, list[Operation]]:
    """Operations with a real-time promise, by key; a list of the newest state is a read of each key of its scope."""
    operations = list(operations)
    found: dict[str, list[Operation]] = {}
    lists = []
    for operation in operations:
        if operation.kind in WRITES:
            found.setdefault(operation.key, []).append(operation)
        elif operation.asked == "" and operation.outcome in (OK, "NotFound") and not operation.exact:
            if operation.kind == "get":
                found.setdefault(operation.key, []).append(operation)
            elif operation.group is None:
                lists.append(operation)
    for listed in lists:
        for key, of_key in found.items():
            if key.startswith(listed.key):
                version, value = listed.items.get(key, (0, ABSENT))
                read = Operation(
                    listed.number,
                    listed.client,
                    "list",
                    key,
                    listed.called,
                    listed.returned,
                    OK,
                    value,
                    version=version,
                )
                of_key.append(read)
    return found


def _first_unexplained(key: str, operations: list[Operation], versions: Mapping[int, int]) -> Operation | None:
    checker = KeyChecker(key, versions)
    last = {id(operation): n for n, operation in enumerate(operations)}
    events: list[tuple[float, int, int, Operation]] = []
    for operation in operations:
        order = last[id(operation)]
        events.append((operation.called, 0, order, operation))
        if operation.outcome != UNKNOWN:
            events.append((operation.returned, 1, order, operation))
        elif operation.until is not NEVER and operation.kind in WRITES:
            events.append((operation.until, 2, order, operation))
    heapq.heapify(events)
    numbered = [_numbered(operation, n) for n, operation in enumerate(operations)]
    while events:
        _, what, order, operation = heapq.heappop(events)
        if what == 0:
            if operation.outcome != UNKNOWN or operation.kind in WRITES:
                checker.call(numbered[order])
        elif what == 1:
            if not checker.ended(numbered[order]):
                return operation
        else:
            checker.expired(numbered[order])
    return None


def _numbered(operation: Operation, number: int) -> Operation:
    copy = Operation(number, operation.client, operation.kind, operation.key, operation.called)
    copy.outcome, copy.value, copy.expected = operation.outcome, operation.value, operation.expected
    return copy


def _reduced(key: str, operations: list[Operation], versions: Mapping[int, int]) -> list[Operation]:
    """Leave out operations as long as the rest is still contradictory.

    A write goes together with everything that refers to it: without it, those would be contradictions of their own.
    """
    few = operations
    for operation in sorted(operations, key=lambda each: -each.called):
        if operation not in few:
            continue
        out = {id(operation)}
        if operation.kind in ("create", "update") and operation.outcome in (OK, UNKNOWN):
            version = versions.get(operation.value, -1)
            out |= {id(o) for o in few if o.value == operation.value or (o.expected and o.expected == version)}
        fewer = [each for each in few if id(each) not in out]
        if _is_closed(fewer, versions) and _first_unexplained(key, fewer, versions) is not None:
            few = fewer
    return few


def _is_closed(operations: list[Operation], versions: Mapping[int, int]) -> bool:
    """Whether every value and resourceVersion that is referred to is written by one of them."""
    writes = [each for each in operations if each.kind in ("create", "update") and each.outcome in (OK, UNKNOWN)]
    written = {each.value for each in writes}
    made = {versions.get(each.value) for each in writes}
    return all(
        (each.kind not in ("get", "list") or not each.value or each.value in written)
        and (not each.expected or each.expected in made or each.outcome != OK)
        for each in operations
    )
