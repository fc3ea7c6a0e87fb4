"""A contradiction between a history and a property that the store promises."""

from __future__ import annotations

from collections.abc import Sequence


class Violation(Exception):  # noqa: N818
    """The property, the key, and the few records that contradict each other."""

    def __init__(self, name: str, key: str, what: str, records: Sequence[object] = ()) -> None:
        self.name = name  # "S3"
        self.key = key
        self.what = what
        self.records = records
        lines = [f"{name} {PROPERTIES[name]}: {key}: {what}" if key else f"{name} {PROPERTIES[name]}: {what}"]
        super().__init__("\n".join([*lines, *(f"  {record}" for record in records)]))


PROPERTIES = {
    "S1": "acknowledged writes survive",
    "S2": "operations on a key are linearizable",
    "S3": "resourceVersions increase and are not reused",
    "S4": "a write happens once or never",
    "S5": "one writer per resourceVersion wins",
    "S6": "a list is the state at its resourceVersion",
    "S7": "a read is as fresh as it asks for",
    "W1": "events are ordered",
    "W2": "events are unique",
    "W3": "no event is missing",
    "W4": "a resumed watch misses and repeats nothing",
    "W5": "bookmarks do not go back",
    "W6": "selectors turn changes into additions and deletions",
    "W7": "initial events are the state at their bookmark",
    "W8": "a slow watch is closed, not skipped",
    "W9": "410 exactly for compacted resourceVersions",
    "W10": "a watch from the future has no old events",
    "W11": "a bookmark follows all its events",
    "C1": "the index equals the log",
    "C2": "a read of a future resourceVersion waits or times out",
    "A2": "an object is deleted once, with a last resourceVersion",
    "A4": "limits hold under races",
    "R1": "resourceVersions do not go back after a restore",
}
