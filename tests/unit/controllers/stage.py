"""A server, caches and controllers in one process and in virtual time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Annotated, Any

import msgspec
from tests.unit.on_a_server import Recording, on_a_server

from ostinato.api.accessors import AnyObject
from ostinato.api.markers import ListMap
from ostinato.api.meta import Condition, ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.cache import CachedClient, Informers
from ostinato.client import Client
from ostinato.controllers import Channel, ChannelSource, Controller, ControllerOptions, Dependencies
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.metrics import Family
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.world import Simulation

Json = dict[str, Any]


class WidgetSpec(Struct):
    size: int = 1
    text: str = ""


class WidgetStatus(Struct):
    ready: int = 0
    note: str = ""
    observed_generation: int | None = None
    conditions: Annotated[list[Condition], ListMap("type")] = []


class Widget(CustomResource, group="example.dev", version="v1"):
    spec: WidgetSpec = msgspec.field(default_factory=WidgetSpec)
    status: WidgetStatus | None = None


def definition(kind: str = "Widget", plural: str = "widgets", scope: str = "Namespaced") -> Json:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": anything},
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.dev"},
        "spec": {
            "group": "example.dev",
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [version],
        },
    }


def widget(name: str = "a", **spec: Any) -> Widget:
    return Widget(metadata=ObjectMeta(name=name, namespace="default"), spec=WidgetSpec(**spec))


def config_map(name: str = "a", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


class Gathered:
    """Metrics, gathered."""

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
        """Of the one sample that has these labels."""
        family = name.removesuffix("_count").removesuffix("_sum")
        samples = self.families()[family].samples
        (found,) = [each for each in samples if each.name == name and labels.items() <= each.labels.items()]
        return found.value


class Recorded:
    """Events, recorded."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str]] = []

    def event(self, regarding: AnyObject, reason: str, note: str, *, kind: str = "Normal", **_: Any) -> None:
        self.events.append((kind, reason, note))


class Heard(logging.Handler):
    """What was logged, at warning level or above."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def texts(self, level: int = logging.WARNING) -> list[str]:
        return [record.getMessage() for record in self.records if record.levelno >= level]


class Stage:
    def __init__(self, world: Simulation, server: Server) -> None:
        self.world = world
        self.server = server
        self.people = Client(InProcessTransport(server), world=world, namespace="default", field_manager="people")
        self.transport = Recording(InProcessTransport(server))
        live = Client(self.transport, world=world, namespace="default", field_manager="test", warn=lambda _: None)
        self.informers = Informers(live)
        self.client = CachedClient(live, self.informers)
        self.metrics = Gathered()
        self.recorder = Recorded()
        self.log = Heard()
        self.logger = logging.Logger("test", logging.DEBUG)
        self.logger.addHandler(self.log)
        self.dependencies = Dependencies(
            client=self.client,
            informers=self.informers,
            world=world,
            metrics=self.metrics,
            recorder=self.recorder,
            logger=self.logger,
        )

    @asynccontextmanager
    async def running(self, runnable: Any) -> AsyncIterator[asyncio.Task[None]]:
        """Run a controller during the block; if it ends by itself, its error is raised at the end."""
        task = asyncio.get_running_loop().create_task(runnable.run(self.dependencies))
        try:
            yield task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def settle(self, seconds: float = 0.5) -> None:
        """Let some time pass: what goes on by itself goes on."""
        await self.world.clock.sleep(seconds)


Play = Callable[[Stage], Coroutine[Any, Any, None]]


def staged(play: Play) -> Callable[[], None]:
    """Run a test against a fresh server that knows Widgets, in virtual time."""
    return staged_with(definition())(play)


def staged_with(kind: Any) -> Callable[[Play], Callable[[], None]]:
    """The same, on a server that knows another kind, by its definition."""

    def decorate(play: Play) -> Callable[[], None]:
        async def whole(world: Simulation, server: Server) -> None:
            stage = Stage(world, server)
            await stage.people.create(kind)
            await stage.settle()
            try:
                await play(stage)
            finally:
                await stage.informers.stop()
            leftover = [each for each in asyncio.all_tasks() if "controller" in each.get_name()]
            assert not leftover, "a controller leaves nothing behind"

        return on_a_server(play.__name__, whole)

    return decorate


class Light:
    """Dependencies without a server, for what needs none: keys come from a channel."""

    def __init__(self, world: Simulation, **given: Any) -> None:
        self.world = world
        self.metrics = Gathered()
        self.recorder = Recorded()
        self.log = Heard()
        self.logger = logging.Logger("test", logging.DEBUG)
        self.logger.addHandler(self.log)
        self.channel = Channel()
        nothing: Any = _Nothing()
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

    running = Stage.running

    async def settle(self, seconds: float = 0.5) -> None:
        await self.world.clock.sleep(seconds)

    def count(self, name: str, **labels: str) -> float:
        return self.metrics.value(name, controller="test", **labels)


class _Nothing:
    """No client, no informers."""

    def all(self, *_: Any) -> list[Any]:
        return []


def lightly(play: Callable[[Light], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test without a server, in virtual time."""

    def run() -> None:
        world = Simulation(seed=1)

        async def main() -> None:
            before = asyncio.all_tasks()
            await play(Light(world))
            assert asyncio.all_tasks() == before, "a controller leaves nothing behind"

        world.run(main())

    run.__name__ = play.__name__
    return run
