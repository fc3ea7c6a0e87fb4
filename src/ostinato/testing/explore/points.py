"""Points: the moments of a run at which a fault can be dealt, with identities that are the same in every run.

    create deployments.apps default/a #1        a write of the operator
    event MODIFIED widgets.example.dev default/a #2    an event of a watch, before the operator receives it
    external s3.put #1                          a call of a system outside of the cluster
    webhook CREATE /validate-example-dev-v1-widget default/a #1    a call of the operator's own webhook
    settled 2                                   nothing is left to do after the second step of the scenario

The number counts occurrences of the same text within the run. A fault at a point is dealt when it is reached; in a run
that differs from the reference run it may never be.
"""

from __future__ import annotations

from enum import Enum
from typing import Self

import msgspec


class PointKind(Enum):
    WRITE = "write"
    READ = "read"  # a get or list that is not answered from a cache
    LIST = "list"  # the initial state of a cache
    EVENT = "event"
    EXTERNAL = "external"
    WEBHOOK = "webhook"  # a call of a webhook that the operator serves
    SETTLED = "settled"


class Point(msgspec.Struct, frozen=True, gc=False):
    """A moment of a run. `text` describes it, `number` counts its occurrences from 1."""

    kind: PointKind
    text: str
    number: int

    def __str__(self) -> str:
        return f"{self.text} #{self.number}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the form that `str` writes."""
        what, mark, number = text.rpartition(" #")
        if not mark or not number.isdecimal():
            raise ValueError(f"point {text!r}: a number is missing, as in `create pods default/a #1`")
        return cls(_kind_of(what), what, int(number))


def _kind_of(text: str) -> PointKind:
    first = text.partition(" ")[0]
    if first in ("event", "external", "webhook", "settled"):
        return PointKind(first)
    if first == "watch":
        return PointKind.LIST
    return PointKind.READ if first in ("get", "list") else PointKind.WRITE


class Visit(msgspec.Struct, frozen=True, gc=False):
    """A point as one run has reached it.

    `state`: hash of what a process that starts then would see: the objects, the external systems, the step.
    """

    point: Point
    time: float
    state: int = 0


class Counter:
    """Numbers the occurrences of points in one run."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def next(self, kind: PointKind, text: str) -> Point:
        number = self._seen[text] = self._seen.get(text, 0) + 1
        return Point(kind, text, number)
