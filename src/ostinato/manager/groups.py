"""Groups: in which order the parts of a manager start, and in which they stop.

| starts | is | stops |
|---|---|---|
| 1 | endpoints: health and metrics. Probes are answered before the first list, which may take long | last |
| 2 | webhooks. A first list may need them, to convert versions | fifth |
| 3 | caches, until they are filled | fourth |
| 4 | others: what needs no leadership | first |
| 5 | warm-up: what leaders-to-be can do beforehand | first |
| 6 | leaders: what needs leadership, once it is won | third |

Endpoints and caches are the manager's own; the other four are groups of runnables. A runnable is put

- among the webhooks if it can be asked whether it serves (`check`) and needs no leadership;
- among the others if it says that it needs no leadership; among the leaders if not, or if it does not say;
- into warm-up besides, if it has one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

from ostinato.controllers.options import ControllerOptions
from ostinato.controllers.runnable import CoolsDown, Runnable, Surroundings, WarmsUp
from ostinato.manager.group import Group, Job
from ostinato.world import Clock
from ostinato.world.cancellation import cancel_repeatedly

_logger = logging.getLogger("ostinato.manager")

_BETWEEN_CHECKS: Final = 0.1  # seconds
_NO_OPTIONS: Final = ControllerOptions()
_STEPS: Final = 5  # of the loop, for what was warm to cool down in
_PATIENCE: Final = 10.0  # seconds after which one says what one waits for, again and again


@runtime_checkable
class Serves(Protocol):
    """A runnable that others connect to."""

    @property
    def name(self) -> str: ...

    async def check(self) -> None:
        """Raise unless it serves."""


class Groups:
    def __init__(self, clock: Clock, failed: Callable[[str, Exception], object]) -> None:
        self._clock = clock
        self.webhooks = Group("webhooks", clock, failed)
        self.others = Group("others", clock, failed)
        self.warm_up = Group("warm-up", clock, failed)
        self.leaders = Group("leaders", clock, failed)
        self._names: set[str] = set()
        self._warm: list[tuple[CoolsDown, Surroundings]] = []  # what is to be told when all is over

    def add(self, runnable: Runnable, surroundings: Surroundings) -> None:
        """A ValueError if there is one of this name; `Stopped` once the manager stops."""
        name = runnable.name
        if name in self._names:
            raise ValueError(f"there is a runnable {name!r} already: names are unique in a manager")
        work = self._work(runnable, surroundings)
        if is_webhook(runnable):
            self.webhooks.add(Job(name, work, lambda: self._serves(runnable)))
        elif needs_leader_election(runnable, surroundings.controllers):
            self.leaders.add(Job(name, work))
        else:
            self.others.add(Job(name, work))
        self._names.add(name)

    async def stop(self) -> None:
        """Ask all to stop, in order, and wait for them."""
        self.leaders.close()  # who does not lead yet must not begin on the way down
        await asyncio.gather(self.warm_up.stop(), self.others.stop())
        await self.leaders.stop()
        await self._cool_down()

    async def drop(self) -> None:
        """Insist that all stop. For leaders first: what they do may be another's work by now."""
        groups = (self.leaders, self.warm_up, self.others, self.webhooks)
        for group in groups:
            group.close()
        for group in groups:
            await group.drop()
        cooling = asyncio.get_running_loop().create_task(self._cool_down(), name="manager: cool-down")
        for _ in range(_STEPS):
            await self._clock.sleep(0)
        await cancel_repeatedly([cooling], self._clock)
        if cooling.done() and not cooling.cancelled() and (error := cooling.exception()) is not None:
            _logger.error("what was warm did not cool down: %s", error, exc_info=error)

    async def _cool_down(self) -> None:
        """End what was warmed up and never ran."""
        warm, self._warm = self._warm, []
        await asyncio.gather(*(runnable.cool_down(surroundings) for runnable, surroundings in warm))

    def _work(self, runnable: Runnable, surroundings: Surroundings) -> Callable[[], Coroutine[Any, Any, None]]:
        if not isinstance(runnable, WarmsUp):
            return lambda: runnable.run(surroundings)
        if isinstance(runnable, CoolsDown):
            self._warm.append((runnable, surroundings))
        warm_up = _Once(lambda: runnable.warm_up(surroundings))
        self.warm_up.add(Job(f"{runnable.name}: warm-up", warm_up.run))

        async def work() -> None:
            await warm_up.run()
            await runnable.run(surroundings)

        return work

    async def _serves(self, runnable: Serves) -> None:
        """Return when it does. If it never does, its own error ends the wait, or the log says what is waited for."""
        told = self._clock.monotonic()
        while True:
            try:
                await runnable.check()
            except Exception as error:  # noqa: BLE001 - not yet
                if self._clock.monotonic() - told >= _PATIENCE:
                    told = self._clock.monotonic()
                    _logger.warning("everything else waits for %s, which does not serve: %s", runnable.name, error)
                await self._clock.sleep(_BETWEEN_CHECKS)
            else:
                return


class _Once:
    """A warm-up, which is part of two groups and happens once."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._make = make
        self._task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._make())
        await self._task


def is_webhook(runnable: Runnable) -> TypeGuard[Serves]:
    """Whether it is to serve before others start, and before the process is ready."""
    return isinstance(runnable, Serves) and not needs_leader_election(runnable)


def needs_leader_election(runnable: Runnable, controllers: ControllerOptions = _NO_OPTIONS) -> bool:
    """What does not say needs it, to be safe. A controller that leaves it open is told by the options of all."""
    said: bool | None = getattr(runnable, "needs_leader_election", True)
    return controllers.needs_leader_election is not False if said is None else bool(said)
