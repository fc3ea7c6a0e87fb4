"""Outcome of one world."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ostinato.testing.explore.plan import Fault, Plan
from ostinato.testing.explore.points import Visit
from ostinato.testing.explore.world.record import Record
from ostinato.testing.explore.world.state import State


class Problem(msgspec.Struct, frozen=True):
    """What an oracle objects to."""

    oracle: str
    text: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.oracle}: {self.text}", *(f"  {each}" for each in self.details)])


class Trespass(msgspec.Struct, frozen=True):
    """A write of a replica that was not the leader."""

    time: float
    replica: str
    what: str
    leader: str


class Outcome(msgspec.Struct):
    """
    - `dealt`: the faults whose point was reached.
    - `steps`: the state after each step that settled.
    - `orphans`: objects that the operator has created and that belong to nothing, after all of its parents are deleted.
    - `stale_status`: settled objects whose status is about an earlier generation.
    - `quiet_writes`, `quiet_requests`: of the operator in the quiet period.
    - `signature`: digest of what happened, regardless of times: equal for worlds that differ in nothing that matters.
    - `duration`: steps of the simulation.
    - `trace`: digest of every step of the simulation: equal for equal runs.
    """

    plan: Plan
    record: Record
    visits: Sequence[Visit] = ()
    dealt: Sequence[Fault] = ()
    steps: Sequence[State] = ()
    externals: Sequence[str] = ()
    problems: list[Problem] = []
    trespasses: Sequence[Trespass] = ()
    orphans: Sequence[str] = ()
    stale_status: Sequence[str] = ()
    quiet_writes: int = 0
    quiet_requests: int = 0
    signature: str = ""
    duration: int = 0
    trace: str = ""
