"""Settings of an exploration, and what a world is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ostinato.testing.explore.operators import Process
from ostinato.testing.explore.scenario import Step
from ostinato.testing.explore.world.image import Image
from ostinato.testing.explore.world.state import Freedom, State

Invariant = Callable[[Any], object]  # Any: the view of all objects


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """Virtual seconds.

    - `restart`: after which a crashed process runs again. Defaults to 1.
    - `calm`: without a write, after which the world has settled. Defaults to 5; the reference run waits longer.
    - `within`: for the expected state, after the last fault. Defaults to 600.
    - `patience`: how much longer than `calm` the reference run waits. Defaults to 12 times.
    - `quiet`: that nothing may be written at the end. Defaults to 30.
    """

    restart: float = 1.0
    calm: float = 5.0
    within: float = 600.0
    quiet: float = 30.0
    patience: float = 12.0


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What is explored.

    - `image`: the store that each world starts from.
    - `processes`: of which the operator consists.
    - `scenario`: the steps of users.
    - `externals`: by name, what makes the fake of a system outside of the cluster.
    - `always`, `eventually`: invariants of the user.
    - `collects`: whether the world collects garbage.
    """

    image: Image
    processes: tuple[Process, ...]
    scenario: tuple[Step, ...]
    externals: Mapping[str, Callable[[], Any]] = {}
    freedom: Freedom = Freedom()
    timing: Timing = Timing()
    always: tuple[Invariant, ...] = ()
    eventually: tuple[Invariant, ...] = ()
    collects: bool = True


class Reference(msgspec.Struct, frozen=True):
    """What the run without faults has shown.

    - `steps`: the state after each step.
    - `creates`, `deletes`: by object.
    - `externals`: state of the external systems after each step.
    - `quiet_writes`, `quiet_requests`: of the operator in the quiet period at the end.
    - `duration`: steps of the simulation.
    - `removals`: by object, deletions by others than the operator.
    - `known`: states that worlds have reached, by their objects as they are stored. Not modified.
    """

    steps: tuple[State, ...]
    creates: Mapping[str, int]
    deletes: Mapping[str, int]
    externals: tuple[str, ...]
    quiet_writes: int
    quiet_requests: int
    duration: int = 0
    removals: Mapping[str, int] = {}
    known: dict[Any, State] = {}
