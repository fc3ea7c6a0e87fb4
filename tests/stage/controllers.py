"""A stage with informers, a cached client and a controller's dependencies; and one without a server."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from ostinato.api.accessors import AnyObject
from ostinato.cache import CachedClient, Informers
from ostinato.controllers import Channel, ChannelSource, Controller, ControllerOptions, Dependencies
from ostinato.metrics import Family
from ostinato.server.core import Server
from ostinato.world import Simulation
from tests.stage.client import Stage
from tests.stage.kinds import WIDGETS
from tests.stage.server import on_a_server


class FakeRegistry:
    """A metrics registry whose samples a test reads."""

    def __init__(self) -> None:
        self.sources: list[Callable[[], Any]] = []

    def add(self, families: Callable[[], Any]) -> None:
        self.sources.append(families)

    def remove(self, families: Callable[[], Any]) -> None:
        with suppress(ValueError):
            self.sources.remove(families)

    def families(self) -> dict[str, Family]:
        return {family.name: family for source in self.sources for family in source()}

    def value(self, name: str, **labels: str) -> float:
        """Return the value of the only sample with these labels."""
        family = name.removesuffix("_count").removesuffix("_sum")
        samples = self.families()[family].samples
        (found,) = [each for each in samples if each.name == name and labels.items() <= each.labels.items()]
        return found.value


class FakeRecorder:
    """An event recorder that keeps the events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(self, regarding: AnyObject, reason: str, note: str, *, kind: str = "Normal", **_: Any) -> None:
        self.events.append((kind, reason, note))


class LogRecords(logging.Handler):
    """A handler that keeps log records of all levels."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def texts(self, level: int = logging.WARNING) -> list[str]:
        """Return the messages at a level or above."""
        return [record.getMessage() for record in self.records if record.levelno >= level]


class _Instruments:
    """The fakes that a controller depends on, and a way to run it."""

    dependencies: Dependencies

    def __init__(self) -> None:
        self.metrics = FakeRegistry()
        self.recorder = FakeRecorder()
        self.log = LogRecords()
        self.logger = logging.Logger("test", logging.DEBUG)
        self.logger.addHandler(self.log)

    @asynccontextmanager
    async def running(self, runnable: Any) -> AsyncIterator[asyncio.Task[None]]:
        """Run a controller during the block; if it ends before, its error is raised at the end of the block."""
        task = asyncio.get_running_loop().create_task(runnable.run(self.dependencies))
        try:
            yield task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


class ControllerStage(Stage, _Instruments):
    """A server with the definition of a kind, a cached client, and a second client `user` for other writers."""

    def __init__(self, world: Simulation, server: Server) -> None:
        Stage.__init__(self, world, server)
        _Instruments.__init__(self)
        self.user = self.unrecorded_client(field_manager="user")
        live = self.new_client()
        self.informers = Informers(live)
        self.client = CachedClient(live, self.informers)
        self.dependencies = Dependencies(
            client=self.client,
            informers=self.informers,
            world=world,
            metrics=self.metrics,
            recorder=self.recorder,
            logger=self.logger,
        )


ControllerTest = Callable[[ControllerStage], Coroutine[Any, Any, None]]


def staged(test: ControllerTest) -> Callable[[], None]:
    """Run a test on a stage whose server has the definition of Widgets."""
    return staged_with(WIDGETS)(test)


def staged_with(definition: Any) -> Callable[[ControllerTest], Callable[[], None]]:
    """Run a test on a stage whose server has another definition."""

    def decorate(test: ControllerTest) -> Callable[[], None]:
        async def run(world: Simulation, server: Server) -> None:
            stage = ControllerStage(world, server)
            await stage.user.create(definition)
            await stage.settle()
            try:
                await test(stage)
            finally:
                await stage.informers.stop()
            leftover = [each for each in asyncio.all_tasks() if "controller" in each.get_name()]
            assert not leftover, "tasks of a controller are still running"

        return on_a_server(run, test.__name__)

    return decorate


class ServerlessStage(_Instruments):
    """The dependencies of a controller without client and informers; keys come from a channel."""

    def __init__(self, world: Simulation, **given: Any) -> None:
        super().__init__()
        self.world = world
        self.clock = world.clock
        self.channel = Channel()
        nothing: Any = _NoInformers()
        self.dependencies = Dependencies(
            client=nothing,
            informers=nothing,
            world=world,
            metrics=self.metrics,
            recorder=self.recorder,
            logger=self.logger,
            **given,
        )

    def controller(self, reconciler: Any, *sources: Any, name: str = "test", **options: Any) -> Controller:
        return Controller(
            name, reconciler, sources=[*sources, ChannelSource(self.channel)], options=ControllerOptions(**options)
        )

    async def settle(self, seconds: float = 0.5) -> None:
        await self.clock.sleep(seconds)

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.value(name, controller="test", **labels)


class _NoInformers:
    def all(self, *_: Any) -> list[Any]:
        return []

    def in_namespace(self, _: str) -> Any:
        return self


def without_server(test: Callable[[ServerlessStage], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test on a stage without a server, in virtual time."""

    def run() -> None:
        world = Simulation(seed=1)

        async def main() -> None:
            before = asyncio.all_tasks()
            await test(ServerlessStage(world))
            assert asyncio.all_tasks() == before, "tasks of a controller are still running"

        world.run(main())

    run.__name__ = test.__name__
    return run
