"""Records of a history: what clients asked, when, and what they got.

- Ticks order calls and returns: an operation that returned before another was called has the smaller tick.
- Every write stores a value of its own, so that each observation names the write that it saw.
- An operation without a definite outcome (connection lost, 5xx) is `UNKNOWN`: it took effect once or never, at any
  tick until `until`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

OK, UNKNOWN = "ok", "unknown"
NEVER = math.inf  # the tick of a return that did not happen
WRITES = frozenset({"create", "update", "delete"})


@dataclass(slots=True)
class Operation:
    number: int
    client: str
    kind: str  # create, update, delete, get, list
    key: str  # "namespace/name"; of a list, the prefix of the keys in its scope
    called: int
    returned: float = NEVER
    outcome: str = UNKNOWN  # OK, UNKNOWN, or the reason of the Status
    value: int = 0  # written, or read; 0: none
    expected: int = 0  # resourceVersion of the precondition; 0: none
    version: int = 0  # resourceVersion of the response
    asked: str = ""  # resourceVersion of the request: "", "0" or a number
    exact: bool = False  # resourceVersionMatch=Exact, or a further page of a list
    group: int | None = None  # the label that a list selects
    items: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # of a list: resourceVersion and value by key
    until: float = NEVER  # the tick at which an unknown write can no longer take effect
    when: float = 0.0  # time of the call, for explanations
    denied: bool = False  # the error says that nothing was written
    compacted: int = 0  # of a refusal as too old: the oldest resourceVersion that the server had then

    def __str__(self) -> str:
        what = f"{self.kind} {self.key}"
        if self.kind in ("create", "update"):
            what += f" := {self.value}"
        if self.expected:
            what += f" if resourceVersion is {self.expected}"
        if self.asked:
            what += f" at resourceVersion={self.asked}{' (exact)' if self.exact else ''}"
        result = self.outcome
        if self.outcome == OK:
            result = "ok"
            if self.version:
                result += f", resourceVersion {self.version}"
            if self.kind == "get":
                result += f", value {self.value}"
            if self.kind == "list":
                result += f", {len(self.items)} items"
        end = "" if self.returned is NEVER else f"{self.returned:.0f}"
        return f"#{self.number} [{self.called}..{end}] {self.client}: {what} -> {result}"


@dataclass(slots=True)
class Frame:
    """One event of a watch."""

    type: str  # ADDED, MODIFIED, DELETED, BOOKMARK, ERROR
    version: int
    key: str = ""
    value: int = 0
    tick: int = 0
    ends_initial: bool = False  # a bookmark with k8s.io/initial-events-end
    uid: str = ""
    message: str = ""  # of an ERROR

    def __str__(self) -> str:
        text = f"{self.type} {self.key} resourceVersion {self.version}".replace("  ", " ")
        return (
            text + (f" value {self.value}" if self.key else "") + (" (initial events end)" if self.ends_initial else "")
        )


@dataclass(slots=True)
class Stream:
    """One watch request, and everything that it delivered."""

    number: int
    watcher: str
    prefix: str  # of the keys in its scope
    asked: str  # resourceVersion of the request
    opened: int
    group: int | None = None  # the label that it selects
    initial: bool | None = None  # sendInitialEvents
    bookmarks: bool = False
    frames: list[Frame] = field(default_factory=list)
    refused: str = ""  # reason of an error instead of, or within the stream
    server: tuple[int, int] | None = None  # compacted and newest resourceVersion before the request, where known
    answered: tuple[int, int] | None = None  # the same when it was answered

    @property
    def starts_with_state(self) -> bool:
        """Whether it begins with the existing objects."""
        return bool(self.initial) or (self.initial is None and self.asked in ("", "0"))

    def __str__(self) -> str:
        how = f"resourceVersion={self.asked!r}" + ("" if self.initial is None else f" sendInitialEvents={self.initial}")
        select = "" if self.group is None else f" group={self.group}"
        return (
            f"watch #{self.number} of {self.watcher} on {self.prefix or 'everything'!r}{select} {how} [{self.opened}..]"
        )


def group_of(value: int) -> int:
    """The label of an object with this value."""
    return value % 3


class History:
    """Operations and watches of one run. Appended by its clients, in one thread."""

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.streams: list[Stream] = []
        self.commits: dict[int, tuple[str, int]] = {}  # of the log, where it can be observed: key, value or 0
        self.is_exact = False  # `commits` has every write
        self.restores: list[int] = []  # ticks at which a snapshot was restored
        self._tick = 0
        self._number = 0

    @property
    def acknowledged(self) -> int:
        """How many writes succeeded."""
        return sum(each.outcome == OK and each.kind in WRITES for each in self.operations)

    def tick(self) -> int:
        self._tick += 1
        return self._tick

    def number(self) -> int:
        self._number += 1
        return self._number

    def end_unknown(self) -> None:
        """The server is dead: writes without an outcome take effect until now, or never."""
        now = self.tick()
        for operation in reversed(self.operations):
            if operation.until is not NEVER:
                break
            if operation.outcome == UNKNOWN and operation.returned is not NEVER:
                operation.until = now
