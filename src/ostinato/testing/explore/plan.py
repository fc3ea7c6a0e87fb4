"""Plan: everything that distinguishes one world from another, as one line of text.

    7                                                     seed 7, without faults
    7: crash-after @ create deployments.apps default/a #1
    7~: conflict @ update widgets.example.dev/status default/a #1; early-step @ create services default/a #1

`~` draws the order of tasks from the seed. The same plan, operator and scenario give the same run, step by step.
"""

from __future__ import annotations

from typing import Self

import msgspec

from ostinato.testing.explore.points import Point


class Fault(msgspec.Struct, frozen=True):
    """One fault at one point. `kind` is a name of the catalogue."""

    kind: str
    at: Point

    def __str__(self) -> str:
        return f"{self.kind} @ {self.at}"

    @classmethod
    def parse(cls, text: str) -> Self:
        kind, mark, point = text.partition(" @ ")
        if not mark:
            raise ValueError(f"fault {text!r}: want KIND @ POINT, as in `crash-after @ create pods default/a #1`")
        return cls(kind.strip(), Point.parse(point.strip()))


class Plan(msgspec.Struct, frozen=True):
    seed: int = 1
    faults: tuple[Fault, ...] = ()
    interleaved: bool = False

    def __str__(self) -> str:
        head = f"{self.seed}~" if self.interleaved else f"{self.seed}"
        return f"{head}: {'; '.join(map(str, self.faults))}" if self.faults else head

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the form that `str` writes."""
        head, _, faults = text.partition(":")
        number = head.strip().removesuffix("~")
        if not number.isdecimal():
            raise ValueError(f"world {text!r}: want SEED, or SEED: FAULT @ POINT; FAULT @ POINT")
        parsed = tuple(Fault.parse(each.strip()) for each in faults.split(";") if each.strip())
        return cls(int(number), parsed, head.strip().endswith("~"))

    def without(self, fault: Fault) -> Plan:
        return msgspec.structs.replace(self, faults=tuple(each for each in self.faults if each != fault))

    def with_fault(self, fault: Fault) -> Plan:
        return msgspec.structs.replace(self, faults=(*self.faults, fault))
