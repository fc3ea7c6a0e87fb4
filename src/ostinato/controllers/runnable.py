"""Runnable: what a manager runs, and the surroundings that it gives to it.

- `run(surroundings)` works until its task is cancelled. The first cancellation asks it to stop: it takes nothing new
  on, finishes what is under way, and ends. A second one, sent when the time for that is over, drops what is under way.
  For most runnables that comes by itself: a cancelled `await` ends them at once.
- Ending, returning or raising: a runnable that returns by itself is done; an error that it raises ends the manager.
- `needs_leader_election`: whether only the leader may run it. What has no such attribute needs it, to be safe; None is
  as the manager says of all controllers.
- `warm_up(surroundings)`, where there is one (`WarmsUp`), is called before the election is won, and returns when all is
  ready but the work itself: caches are filled, queues too. `run` then goes on from there.
- `cool_down(surroundings)`, where there is one (`CoolsDown`), is called at the end, and ends what a warm-up began if
  `run` was never called.

A surrounding holds all that a runnable may need, so that nothing is global and each test makes its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from inspect import isawaitable
from logging import Logger, getLogger
from typing import TYPE_CHECKING, Protocol, TypedDict, Union, Unpack, runtime_checkable

from ostinato.api.access import AnyObject
from ostinato.cache.client import CachedClient
from ostinato.cache.informers import Informers
from ostinato.controllers.options import ControllerOptions
from ostinato.metrics import Families
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.kinds.core_v1 import ObjectReference

Span = Callable[[str, Mapping[str, str]], AbstractContextManager[object]]
"""`with span("reconcile", {"controller": "widgets"}):` is a stretch of work that a trace shows."""


class Metrics(Protocol):
    """Where metrics are gathered to be shown: a registry that belongs to one manager."""

    def add(self, families: Families, /) -> None:
        """Show these metrics from now on. Families of the same name are merged."""

    def remove(self, families: Families, /) -> None:
        """Show them no longer. Harmless when they are not shown."""


Subject = Union[AnyObject, "ObjectReference"]
"""What an event is about: an object, or a reference to one or to a part of it. (Not loaded for its name alone.)"""


class EventOptions(TypedDict, total=False):
    """
    - `kind`: "Normal" or "Warning". Defaults to "Normal".
    - `action`: what was done. Defaults to the reason.
    - `related`: another object that has to do with it.
    """

    kind: str
    action: str
    related: Subject | None


class Recorder(Protocol):
    """Writes events (events.k8s.io/v1) about objects, for people to read."""

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None:
        """Say that something happened to an object. Never waits, never raises: an event may be lost, work may not."""


class NoMetrics:
    """Metrics that nobody looks at."""

    def add(self, families: Families) -> None: ...

    def remove(self, families: Families) -> None: ...


class NoRecorder:
    """Events that nobody is told of."""

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None: ...


def no_span(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:  # noqa: ARG001
    """A `Span` that no trace shows."""
    return nullcontext()


@dataclass(frozen=True, kw_only=True, eq=False)
class Surroundings:
    """
    - `client`: reads kinds that are watched from the cache, with its own writes in it; writes go to the server.
    - `informers`: the watches of the manager, one a kind.
    - `world`: time, randomness, ids, threads.
    - `metrics`, `recorder`, `logger`: where to say what happens. Default to nowhere, nowhere and Python's logging.
    - `span`: a context around each piece of work, for traces. Defaults to nothing.
    - `controllers`: options for controllers that do not give their own.
    """

    client: CachedClient
    informers: Informers
    world: World
    metrics: Metrics = field(default_factory=NoMetrics)
    recorder: Recorder = field(default_factory=NoRecorder)
    logger: Logger = field(default_factory=lambda: getLogger("ostinato.controllers"))
    span: Span = no_span
    controllers: ControllerOptions = field(default_factory=ControllerOptions)


class Runnable(Protocol):
    @property
    def name(self) -> str:
        """For logs, metrics and errors; unique in a manager."""

    @property
    def needs_leader_election(self) -> bool | None: ...

    async def run(self, surroundings: Surroundings, /) -> None:
        """Work until cancelled; see above."""


@runtime_checkable
class WarmsUp(Protocol):
    async def warm_up(self, surroundings: Surroundings, /) -> None:
        """Make all ready but the work itself. Called once, before `run`, or not at all."""


@runtime_checkable
class CoolsDown(Protocol):
    async def cool_down(self, surroundings: Surroundings, /) -> None:
        """End what the warm-up began. Harmless when there is nothing to end."""


class Task:
    """A function as a runnable: `Task("janitor", sweep)` with `async def sweep(surroundings)`."""

    def __init__(
        self, name: str, work: Callable[[Surroundings], Awaitable[None]], *, needs_leader_election: bool = True
    ) -> None:
        self.name = name
        self.needs_leader_election = needs_leader_election
        self._work = work

    async def run(self, surroundings: Surroundings) -> None:
        working: object = self._work(surroundings)
        if not isawaitable(working):
            raise TypeError(
                f"task {self.name} is no async def, and blocked everything until it returned: make it one, and let "
                "what blocks run in a thread, asyncio.to_thread(function)"
            )
        await working
