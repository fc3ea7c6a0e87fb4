"""Runnable: the interface of what a manager runs, and the dependencies that it receives.

- `run(dependencies)` runs until its task is cancelled. The first cancellation requests a graceful stop: accept no new
  work, finish the current work, return. A second cancellation, after the grace period, requests an immediate stop. For
  most runnables both are the same: a cancelled `await` ends them.
- A runnable that returns is done; an error that it raises stops the manager.
- `needs_leader_election`: run only while this process is the leader. Defaults to True if the attribute is missing; None
  takes the manager's option for controllers.
- `warm_up(dependencies)`, optional (`WarmupRunnable`): called before leadership is acquired; prepares everything but
  the work, such as caches and queues. `run` continues from there.
- `tear_down(dependencies)`, optional (`TeardownRunnable`): called at the end; stops what a warm-up started if `run` was
  never called.

`Dependencies` holds everything that a runnable uses, so that there is no global state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from inspect import isawaitable
from logging import Logger, getLogger
from typing import TYPE_CHECKING, Protocol, TypedDict, Union, Unpack, runtime_checkable

from ostinato.api.accessors import AnyObject
from ostinato.cache.client import CachedClient
from ostinato.cache.informers import Informers
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.sharding import Shards
from ostinato.metrics import Families
from ostinato.world import World

if TYPE_CHECKING:
    from ostinato.controllers.reports.observing import Observer
    from ostinato.kinds.core_v1 import ObjectReference

Span = Callable[[str, Mapping[str, str]], AbstractContextManager[object]]
"""Creates a trace span: `with span("reconcile", {"controller": "widgets"}):`."""


class Metrics(Protocol):
    """The metrics registry of a manager."""

    def add(self, families: Families, /) -> None:
        """Register metrics. Families of the same name are merged."""

    def remove(self, families: Families, /) -> None:
        """Unregister metrics. No error if they are not registered."""


Subject = Union[AnyObject, "ObjectReference"]
"""Subject of an Event: an object, or a reference to an object or to a part of it."""


class EventOptions(TypedDict, total=False):
    """
    - `kind`: "Normal" or "Warning". Defaults to "Normal".
    - `action`: the action that was taken. Defaults to the reason.
    - `related`: a secondary object. Defaults to None.
    """

    kind: str
    action: str
    related: Subject | None


class Recorder(Protocol):
    """Records Events about objects."""

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None:
        """Record an Event. Never blocks and never raises; an Event may be lost."""


class NoMetrics:
    """A registry that discards all metrics."""

    def add(self, families: Families) -> None: ...

    def remove(self, families: Families) -> None: ...


class NoRecorder:
    """A recorder that discards all Events."""

    def event(self, regarding: Subject, reason: str, note: str, /, **options: Unpack[EventOptions]) -> None: ...


def no_span(name: str, attributes: Mapping[str, str]) -> AbstractContextManager[object]:  # noqa: ARG001
    """A `Span` without tracing."""
    return nullcontext()


@dataclass(frozen=True, kw_only=True, eq=False)
class Dependencies:
    """
    - `client`: reads watched kinds from the cache, including its own writes; writes go to the server.
    - `informers`: the shared informers of the manager.
    - `world`: clock, randomness, ids, threads.
    - `metrics`: metrics registry. Defaults to one that discards.
    - `recorder`: Event recorder. Defaults to one that discards.
    - `logger`: defaults to the logger "ostinato.controllers".
    - `span`: creates trace spans. Defaults to no tracing.
    - `controllers`: options for controllers that do not set their own.
    - `shards`: the shards of this replica, for controllers. Defaults to None: all keys belong to this process.
    - `observer`: receives what controllers do, for a live view. Defaults to None.
    """

    client: CachedClient
    informers: Informers
    world: World
    metrics: Metrics = field(default_factory=NoMetrics)
    recorder: Recorder = field(default_factory=NoRecorder)
    logger: Logger = field(default_factory=lambda: getLogger("ostinato.controllers"))
    span: Span = no_span
    controllers: ControllerOptions = field(default_factory=ControllerOptions)
    shards: Shards | None = None
    observer: Observer | None = None


class Runnable(Protocol):
    @property
    def name(self) -> str:
        """Name in logs, metrics and errors; unique within a manager."""

    @property
    def needs_leader_election(self) -> bool | None: ...

    async def run(self, dependencies: Dependencies, /) -> None:
        """Run until cancelled; see the module."""


@runtime_checkable
class WarmupRunnable(Protocol):
    async def warm_up(self, dependencies: Dependencies, /) -> None:
        """Prepare everything but the work. Called at most once, before `run`."""


@runtime_checkable
class TeardownRunnable(Protocol):
    async def tear_down(self, dependencies: Dependencies, /) -> None:
        """Stop what the warm-up started. No effect if nothing was started."""


class Task:
    """A function as a runnable: `Task("janitor", sweep)` with `async def sweep(dependencies)`."""

    def __init__(
        self, name: str, work: Callable[[Dependencies], Awaitable[None]], *, needs_leader_election: bool = True
    ) -> None:
        self.name = name
        self.needs_leader_election = needs_leader_election
        self._work = work

    async def run(self, dependencies: Dependencies) -> None:
        running: object = self._work(dependencies)
        if not isawaitable(running):
            raise TypeError(
                f"task {self.name} is not an async def and blocked the event loop; make it one, and run blocking calls "
                "in a thread with asyncio.to_thread(function)"
            )
        await running
