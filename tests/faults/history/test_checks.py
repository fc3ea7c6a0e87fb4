"""The checkers themselves: each property has a history that keeps it and one that violates it, found by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.faults.history.check import check
from tests.faults.history.records import OK, UNKNOWN, Frame, History, Operation, Stream
from tests.faults.history.violation import PROPERTIES, Violation

A, B = "default/a", "default/b"


class Story(History):
    """A history told line by line: an operation a tick, unless it says when it was called and returned."""

    def __init__(self) -> None:
        super().__init__()
        self._ticks = itertools.count(10, 10)

    def op(
        self, kind: str, key: str, outcome: str = OK, *, at: tuple[int, float] | None = None, **facts: object
    ) -> Story:
        now = next(self._ticks)
        called, returned = at or (now, now + 5)
        operation = Operation(self.number(), "c", kind, key, called, returned, outcome)
        for name, fact in facts.items():
            setattr(operation, name, fact)
        self.operations.append(operation)
        return self

    def watch(self, *frames: Frame, asked: str = "1", watcher: str = "w", **facts: object) -> Story:
        stream = Stream(self.number(), watcher, "", asked, next(self._ticks), frames=list(frames))
        for name, fact in facts.items():
            setattr(stream, name, fact)
        self.streams.append(stream)
        return self


def written() -> Story:
    """a := 1 (2), b := 2 (3), a := 3 (4), b deleted (5), a := 4 (6)."""
    story = Story()
    story.op("create", A, value=1, version=2).op("create", B, value=2, version=3)
    story.op("update", A, value=3, version=4, expected=2).op("delete", B)
    story.op("update", A, value=4, version=6)
    story.commits = {2: (A, 1), 3: (B, 2), 4: (A, 3), 5: (B, 0), 6: (A, 4)}
    story.is_exact = True
    return story


def added(version: int, key: str, value: int, type_: str = "ADDED") -> Frame:
    return Frame(type_, version, key, value, uid=f"{key} {value if type_ == 'ADDED' else ''}")


def modified(version: int, key: str, value: int) -> Frame:
    return Frame("MODIFIED", version, key, value)


def deleted(version: int, key: str, value: int) -> Frame:
    return Frame("DELETED", version, key, value)


def bookmark(version: int, *, initial: bool = False) -> Frame:
    return Frame("BOOKMARK", version, ends_initial=initial)


ALL = (added(2, A, 1), added(3, B, 2), modified(4, A, 3), deleted(5, B, 2), modified(6, A, 4))
GROUP_1 = (added(2, A, 1), deleted(4, A, 1), added(6, A, 4))  # values 1 and 4; the object leaves with 3 and comes back

GOOD: dict[str, Callable[[], Story]] = {
    "nothing": Story,
    "writes": written,
    "a get": lambda: written().op("get", A, value=4, version=6),
    "overlapping reads of an old and a new state": lambda: (
        Story()
        .op("create", A, value=1, version=2)
        .op("update", A, at=(100, 200), value=2, version=3)
        .op("get", A, at=(110, 120), value=1, version=2)
        .op("get", A, at=(130, 140), value=2, version=3)
    ),
    "a read that began before a write and saw nothing of it": lambda: (
        Story().op("get", A, "NotFound", at=(1, 300)).op("create", A, at=(50, 60), value=1, version=2)
    ),
    "an unknown write that happened later": lambda: (
        Story().op("create", A, UNKNOWN, value=1).op("get", A, "NotFound").op("get", A, value=1, version=2)
    ),
    "an unknown write that never happened": lambda: (
        Story().op("create", A, UNKNOWN, value=1).op("get", A, "NotFound").op("create", A, value=2, version=2)
    ),
    "an unknown deletion": lambda: (
        Story().op("create", A, value=1, version=2).op("delete", A, UNKNOWN).op("get", A, "NotFound")
    ),
    "refusals": lambda: (
        written()
        .op("create", A, "AlreadyExists")
        .op("update", A, "Conflict", expected=4)
        .op("update", B, "NotFound", expected=3)
        .op("delete", B, "NotFound")
    ),
    "lists": lambda: (
        written()
        .op("list", "", version=6, items={A: (6, 4)})
        .op("list", "", asked="3", exact=True, version=3, items={A: (2, 1), B: (3, 2)})
        .op("list", "", asked="0", version=2, items={A: (2, 1)})
        .op("list", "", asked="4", version=5, items={A: (4, 3)})
        .op("list", "", version=6, group=1, items={A: (6, 4)})
    ),
    "a timeout": lambda: written().op("get", A, "Timeout", asked="9", version=6),
    "a watch": lambda: written().watch(*ALL, bookmark(6)),
    "a watch from an event": lambda: written().watch(*ALL[2:], asked="3"),
    "a watch with a selector": lambda: written().watch(*GROUP_1, group=1),
    "initial events": lambda: written().watch(
        added(4, A, 3), bookmark(5, initial=True), modified(6, A, 4), asked="", initial=True
    ),
    "initial events without a bookmark": lambda: written().watch(
        added(2, A, 1), added(3, B, 2), *ALL[2:], asked="0", initial=None
    ),
    "initial events that a lost connection has ended": lambda: (
        Story()
        .op("create", A, value=1, version=2)
        .op("create", "other/z", value=2, version=3)
        .op("create", B, value=3, version=4)
        .watch(added(2, A, 1), added(4, B, 3), asked="0", initial=None)
    ),
    "a refusal": lambda: written().watch(asked="2", refused="Expired", server=(4, 6), answered=(4, 6)),
    "the future": lambda: written().watch(asked="20", server=(1, 6), answered=(1, 6)),
}

BAD: dict[str, tuple[str, Callable[[], Story]]] = {
    "an acknowledged write that is not in the log": ("S1", lambda: written().op("create", B, value=5, version=7)),
    "a lost write": ("S2", lambda: Story().op("create", A, value=1, version=2).op("get", A, "NotFound")),
    "a stale read": (
        "S2",
        lambda: (
            Story()
            .op("create", A, value=1, version=2)
            .op("update", A, value=2, version=3)
            .op("get", A, value=1, version=2)
        ),
    ),
    "a read that went back": (
        "S2",
        lambda: (
            Story()
            .op("create", A, value=1, version=2)
            .op("update", A, at=(100, 200), value=2, version=3)
            .op("get", A, at=(110, 120), value=2, version=3)
            .op("get", A, at=(130, 140), value=1, version=2)
        ),
    ),
    "a refusal without a reason": ("S2", lambda: Story().op("create", A, "AlreadyExists").op("get", A, "NotFound")),
    "a conflict without a reason": (
        "S2",
        lambda: (
            Story()
            .op("create", A, value=1, version=2)
            .op("update", A, "Conflict", expected=2, value=2)
            .op("get", A, value=1, version=2)
        ),
    ),
    "a deletion undone": (
        "S2",
        lambda: Story().op("create", A, value=1, version=2).op("delete", A).op("get", A, value=1, version=2),
    ),
    "an unknown write after the death of its server": (
        "S2",
        lambda: (
            Story()
            .op("create", A, UNKNOWN, value=1, until=20)
            .op("get", A, "NotFound", at=(30, 31))
            .op("get", A, value=1, version=2, at=(40, 41))
        ),
    ),
    "a list without an object": (
        "S2",
        lambda: Story().op("create", A, value=1, version=2).op("list", "", version=2, items={}),
    ),
    "a resourceVersion given twice": (
        "S3",
        lambda: Story().op("create", A, value=1, version=2).op("create", B, value=2, version=2),
    ),
    "a resourceVersion that went back": (
        "S3",
        lambda: Story().op("create", A, value=1, version=9).op("create", B, value=2, version=3),
    ),
    "a write that happened twice": (
        "S4",
        lambda: Story().op("create", A, value=1, version=2).op("get", A, value=1, version=5),
    ),
    "a refused write that happened": (
        "S4",
        lambda: written().op("create", A, UNKNOWN, value=4, denied=True),
    ),
    "two winners": (
        "S5",
        lambda: (
            Story()
            .op("create", A, value=1, version=2)
            .op("update", A, value=2, version=3, expected=2, at=(50, 90))
            .op("update", A, value=3, version=4, expected=2, at=(51, 91))
        ),
    ),
    "a list of two states": (
        "S6",
        lambda: written().op("list", "", asked="3", version=4, items={A: (2, 1), B: (3, 2)}),
    ),
    "a list that lacks an object": ("S6", lambda: written().op("list", "", asked="0", version=3, items={A: (2, 1)})),
    "a list that is newer than it says": (
        "S6",
        lambda: written().op("list", "", asked="0", version=2, items={A: (4, 3)}),
    ),
    "an old list": ("S7", lambda: written().op("list", "default/x", version=4, items={})),
    "a list older than requested": ("S7", lambda: written().op("list", "", asked="6", version=5, items={A: (4, 3)})),
    "an object older than requested": ("S7", lambda: written().op("get", A, asked="5", value=1, version=2)),
    "a timeout of a known resourceVersion": ("C2", lambda: written().op("get", A, "Timeout", asked="5", version=6)),
    "events out of order": ("W1", lambda: written().watch(ALL[1], ALL[0])),
    "an event twice": ("W2", lambda: written().watch(*ALL[:2], ALL[1])),
    "an event twice, later": ("W2", lambda: written().watch(*ALL[:3], ALL[1])),
    "a missing event": ("W3", lambda: written().watch(*ALL[:2], bookmark(3, initial=True), *ALL[3:], asked="")),
    "an event that was not written": ("S1", lambda: written().watch(*ALL, added(7, B, 9))),
    "a resumed watch that misses an event": ("W4", lambda: written().watch(*ALL[3:], asked="3")),
    "a resumed watch that repeats an event": ("W4", lambda: written().watch(*ALL[2:], asked="4")),
    "a bookmark that went back": ("W5", lambda: written().watch(*ALL, bookmark(6), bookmark(5))),
    "a change of selection as a change": (
        "W6",
        lambda: written().watch(GROUP_1[0], deleted(4, A, 1), modified(6, A, 4), group=1),
    ),
    "a change of selection unseen": (
        "W6",
        lambda: written().watch(GROUP_1[0], bookmark(3, initial=True), GROUP_1[2], group=1, asked=""),
    ),
    "a wrong last state": ("W6", lambda: written().watch(*ALL[:3], deleted(5, B, 9))),
    "initial events that lack an object": (
        "W7",
        lambda: written().watch(added(2, A, 1), bookmark(3, initial=True), asked="", initial=True),
    ),
    "initial events of two states": (
        "W7",
        lambda: written().watch(added(4, A, 3), added(3, B, 2), bookmark(6, initial=True), asked="", initial=True),
    ),
    "initial events that end twice": (
        "W7",
        lambda: written().watch(bookmark(1, initial=True), bookmark(1, initial=True), asked="", initial=True),
    ),
    "a slow watch that skips": ("W8", lambda: written().watch(ALL[0], *ALL[3:], watcher="slow")),
    "a refusal of what is there": (
        "W9",
        lambda: written().watch(asked="4", refused="Expired", server=(4, 6), answered=(4, 6)),
    ),
    "a watch from before the compaction": (
        "W9",
        lambda: written().watch(*ALL[2:], asked="3", server=(4, 6), answered=(4, 6)),
    ),
    "old events for a watch from the future": (
        "W10",
        lambda: written().watch(ALL[4], asked="9", server=(1, 5), answered=(1, 5)),
    ),
    "a bookmark before its events": ("W11", lambda: written().watch(*ALL[:3], bookmark(6), ALL[3])),
    "a bookmark for events that never came": ("W11", lambda: written().watch(*ALL[:3], bookmark(6))),
    "an object deleted twice": (
        "A2",
        lambda: written().watch(*ALL[:3], Frame("DELETED", 5, B, 2, uid="u"), Frame("MODIFIED", 6, A, 4, uid="u")),
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_passes(name: str) -> None:
    check(GOOD[name]())


@pytest.mark.parametrize("name", BAD)
def test_a_violation_is_found_by_name(name: str) -> None:
    wanted, story = BAD[name]
    with pytest.raises(Violation) as found:
        check(story())
    assert found.value.name == wanted, str(found.value)
    assert str(found.value).startswith(f"{wanted} {PROPERTIES[wanted]}: ")


def test_a_violation_shows_only_the_operations_that_contradict_each_other() -> None:
    story = Story()
    version = 1
    for number in range(1, 40):
        version += 1
        story.op("create", A, value=2 * number, version=version).op("get", A, value=2 * number, version=version)
        story.op("create", A, "AlreadyExists").op("delete", A)
        version += 1
    story.op("create", A, value=100, version=version + 1).op("get", A, "NotFound").op("get", A, "NotFound")
    with pytest.raises(Violation) as found:
        check(story)
    assert len(found.value.records) == 2
    assert "create default/a := 100" in str(found.value.records[0])


def test_many_writes_without_an_outcome_are_checked_quickly() -> None:
    """Each may have happened at any time, or never: their orders must not be tried one by one."""
    story = Story()
    for number in range(1, 300):
        story.op("create", A, UNKNOWN, value=number).op("delete", A, UNKNOWN)
    story.op("create", A, "AlreadyExists").op("get", A, "NotFound").op("create", A, "AlreadyExists")
    check(story)
    story.op("get", A, value=17, version=5).op("create", A, value=1000, version=6, at=(10_000, 10_001))
    check(story)
    with pytest.raises(Violation, match="S2"):
        check(story.op("get", A, value=1001, version=7))


def test_every_property_has_a_history_that_violates_it() -> None:
    elsewhere = {"C1": "simulated runs", "A4": "test_several_servers.py", "R1": "test_restores.py"}
    assert set(PROPERTIES) == {name for name, _ in BAD.values()} | set(elsewhere)
