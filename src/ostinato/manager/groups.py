"""Groups: the start and stop order of a manager.

| start | group | stop |
|---|---|---|
| 1 | endpoints: health and metrics; probes are answered while the caches sync | 6 |
| 2 | webhooks: the initial lists may need their conversion | 5 |
| 3 | caches, until they have synced | 4 |
| 4 | others: runnables that need no leadership | 1 |
| 5 | warm-up of runnables that need leadership | 1 |
| 6 | leaders: runnables that need leadership, once it is acquired | 3 |

Endpoints and caches belong to the manager; the other four are groups of runnables. A runnable belongs to

- webhooks if it has a method `check` and needs no leadership;
- others if its `needs_leader_election` is False or it is a sharded controller, else leaders;
- warm-up too if it has a method `warm_up`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from inspect import isroutine
from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

from ostinato.controllers.builder import Builder
from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.runnable import Dependencies, Runnable, TeardownRunnable, WarmupRunnable
from ostinato.manager.group import Group, Job
from ostinato.world import Clock
from ostinato.world.cancellation import cancel_repeatedly

_logger = logging.getLogger("ostinato.manager")

_CHECK_PERIOD: Final = 0.1  # seconds
_NO_OPTIONS: Final = ControllerOptions()
_TEARDOWN_STEPS: Final = 5  # of the event loop, before a teardown is cancelled
_WARNING_PERIOD: Final = 10.0  # seconds


@runtime_checkable
class Serves(Protocol):
    """A runnable that serves requests."""

    @property
    def name(self) -> str: ...

    async def check(self) -> None:
        """Raise unless it serves requests."""


class Groups:
    def __init__(self, clock: Clock, failed: Callable[[str, Exception], object]) -> None:
        self._clock = clock
        self.webhooks = Group("webhooks", clock, failed)
        self.others = Group("others", clock, failed)
        self.warm_up = Group("warm-up", clock, failed)
        self.leaders = Group("leaders", clock, failed)
        self._names: set[str] = set()
        self._warm: list[tuple[TeardownRunnable, Dependencies]] = []  # to tear down at the end

    def add(self, runnable: Runnable, dependencies: Dependencies) -> None:
        """Add a runnable to its groups. ValueError if the name is taken; `Stopped` once the manager stops."""
        name = runnable.name
        if name in self._names:
            raise ValueError(f"add() runnable {name!r} exists; names must be unique in a manager")
        work = self._work(runnable, dependencies)
        if is_webhook(runnable):
            self.webhooks.add(Job(name, work, lambda: self._serves(runnable)))
        elif dependencies.shards is None and needs_leader_election(runnable, dependencies.controllers):
            self.leaders.add(Job(name, work))
        else:
            self.others.add(Job(name, work))
        self._names.add(name)

    async def stop(self) -> None:
        """Stop all runnables in order, and wait for them."""
        self.leaders.close()  # leadership may be acquired during the shutdown
        await asyncio.gather(self.warm_up.stop(), self.others.stop())
        await self.leaders.stop()
        await self._tear_down()

    async def drop(self) -> None:
        """Cancel all runnables without a grace period. Leaders first: another process may lead by now."""
        groups = (self.leaders, self.warm_up, self.others, self.webhooks)
        for group in groups:
            group.close()
        for group in groups:
            await group.drop()
        teardown = asyncio.get_running_loop().create_task(self._tear_down(), name="manager: teardown")
        for _ in range(_TEARDOWN_STEPS):
            await self._clock.sleep(0)
        await cancel_repeatedly([teardown], self._clock)
        if teardown.done() and not teardown.cancelled() and (error := teardown.exception()) is not None:
            _logger.error("warm-up teardown failed error=%s", error, exc_info=error)

    async def _tear_down(self) -> None:
        """Stop what was warmed up and never ran."""
        warm, self._warm = self._warm, []
        await asyncio.gather(*(runnable.tear_down(dependencies) for runnable, dependencies in warm))

    def _work(self, runnable: Runnable, dependencies: Dependencies) -> Callable[[], Coroutine[Any, Any, None]]:
        if not isinstance(runnable, WarmupRunnable):
            return lambda: runnable.run(dependencies)
        if isinstance(runnable, TeardownRunnable):
            self._warm.append((runnable, dependencies))
        warm_up = _Once(lambda: runnable.warm_up(dependencies))
        self.warm_up.add(Job(f"{runnable.name}: warm-up", warm_up.run))

        async def work() -> None:
            await warm_up.run()
            await runnable.run(dependencies)

        return work

    async def _serves(self, runnable: Serves) -> None:
        """Wait until a webhook server serves requests. Logs a warning periodically."""
        reported = self._clock.monotonic()
        while True:
            try:
                await runnable.check()
            except Exception as error:  # noqa: BLE001 - retried
                if self._clock.monotonic() - reported >= _WARNING_PERIOD:
                    reported = self._clock.monotonic()
                    _logger.warning("waiting for the webhook server runnable=%s error=%s", runnable.name, error)
                await self._clock.sleep(_CHECK_PERIOD)
            else:
                return


class _Once:
    """Runs a warm-up once, though two groups await it."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._make = make
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._make())
        await self._task


def is_webhook(runnable: Runnable) -> TypeGuard[Serves]:
    """Return whether a runnable must serve requests before the caches sync."""
    # `check` first: an isinstance() of a protocol is slow.
    return hasattr(runnable, "check") and isinstance(runnable, Serves) and not needs_leader_election(runnable)


def needs_leader_election(runnable: Runnable, controllers: ControllerOptions = _NO_OPTIONS) -> bool:
    """Return whether a runnable needs leadership. Defaults to True; None takes the manager's option for controllers."""
    needed: bool | None = getattr(runnable, "needs_leader_election", True)
    return controllers.needs_leader_election is not False if needed is None else bool(needed)


def problem_of(runnable: object) -> str:
    """Return why an object cannot be added, and what to do."""
    if isinstance(runnable, Builder):
        return "a Builder is not a controller; call its complete(reconciler)"
    if isinstance(runnable, type):
        return f"{runnable.__name__} is a class; pass an instance"
    if isroutine(runnable):
        return f"{runnable.__name__} is a function, not a controller; write @controller(Kind) above it"
    return f"{runnable!r} is not a runnable; it needs a name and `async def run(dependencies)`"
