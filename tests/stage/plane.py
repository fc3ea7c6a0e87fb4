"""A stage for the plane's controllers: an API server in one process, some of them on it, virtual time.

    async def play(stage: Stage) -> None:
        await stage.client.create(deployment("web", replicas=3))
        await stage.settle()
        assert len(await stage.client.list(Pod)) == 3

    on_stage(play, "deployment-controller", "replicaset-controller")

Two tests may share a process and nothing else. `settle` waits, in virtual time, until nothing has been written for a
while; `until` waits for a condition. A play that takes more than a day of virtual time has failed.

The same plays are given in another theatre with `--over-http`, where everybody speaks to the server over HTTPS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MergePatch
from ostinato.kinds.core_v1 import ServiceAccount
from ostinato.manager import ClientOptions, Manager, ReportingOptions
from ostinato.manager.connecting import Connect, Purpose
from ostinato.plane.access import identities, roles
from ostinato.plane.controllers import CONTROLLERS, FIELD_MANAGER, Options, add_controllers
from ostinato.server.core import Server
from ostinato.server.in_process.transport import ADMINISTRATOR, InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import Simulation, World

T = TypeVar("T")
_DAY = 86_400.0


class Stage:
    def __init__(self, world: World, server: Server, connect: Connect) -> None:
        self.world = world
        self.connect = connect
        self.client = Client(connect(Purpose()), world=world, namespace="default", field_manager="test")
        self._server = server
        self._managers: list[tuple[Manager, asyncio.Task[None]]] = []

    @property
    def version(self) -> int:
        """Of the store: it grows with every write."""
        return self._server.index.version

    def run(self, add: Callable[[Manager], object], field_manager: str = FIELD_MANAGER, identity: str = "") -> Manager:
        """Start a manager with what is added to it. `identity`: its own; parts of the plane have theirs."""
        manager = Manager(
            connect=lambda purpose: self.connect(purpose._replace(identity=purpose.identity or identity)),
            client=ClientOptions(field_manager=field_manager, identities=_identity),
            reporting=ReportingOptions(core_events=True),
            world=self.world,
        )
        add(manager)
        self._managers.append((manager, asyncio.get_running_loop().create_task(manager.serve())))
        return manager

    async def settle(self, quiet: float = 2.0, limit: float = 600.0) -> None:
        """Until nothing has been written for so many seconds."""
        until = self.world.clock.monotonic() + limit
        before = -1
        while before != self.version:
            assert self.world.clock.monotonic() < until, "it does not settle"
            before = self.version
            await self.world.clock.sleep(quiet)

    async def until(self, condition: Callable[[], Awaitable[T]], limit: float = 600.0) -> T:
        """Until the condition holds; what it answers."""
        end = self.world.clock.monotonic() + limit
        while not (found := await condition()):
            assert self.world.clock.monotonic() < end, "it never held"
            await self.world.clock.sleep(0.1)
        return found

    async def events(self, name: str = "") -> list[tuple[str, str]]:
        """Reason and note of the events about an object, or about all, in the order in which they came."""
        from ostinato.kinds.events_v1 import Event

        found = sorted(await self.client.list(Event), key=lambda each: int(each.metadata.resource_version))
        return [
            (each.reason or "", each.note or "")
            for each in found
            if not name or (each.regarding is not None and each.regarding.name == name)
        ]

    async def set_pod_status(self, pod: Any, **status: Any) -> None:
        """Play the node: say how a Pod fares."""
        await self.client.patch(type(pod), pod.metadata, MergePatch({"status": status}), subresource="status")

    async def stop_managers(self) -> None:
        """End what was started; the server goes on."""
        for manager, task in self._managers:
            manager.stop()
            await task
        self._managers.clear()

    async def stop(self) -> None:
        await self.stop_managers()
        await self.client.close()


Act = Callable[[World, Server, Connect], Coroutine[Any, Any, None]]
"""What is done with a server that runs, in its world, and with the way to it."""


def in_simulation(seed: int, act: Act) -> None:
    """A theatre: it starts a server for an act, has it done, and stops the server. What nothing handles is raised."""
    world = Simulation(seed=seed)

    async def whole() -> None:
        server = Server(world, MemoryLog())
        await server.start()
        try:
            await act(world, server, lambda purpose: _transport(server, purpose))
        finally:
            await server.close()

    world.run(whole())


def _identity(name: str) -> str:
    """Of a part of the plane; what tests play themselves is the manager's."""
    try:
        return identities.user_of_runnable(name)
    except KeyError:
        return ""


def _transport(server: Server, purpose: Purpose) -> InProcessTransport:
    user = identities.user_and_groups(purpose.identity) if purpose.identity else ADMINISTRATOR
    return InProcessTransport(server, user=user, deadline=purpose.deadline)


theatre: Callable[[int, Act], None] = in_simulation  # where plays are given; tests may choose another


def on_stage(play: Callable[[Stage], Awaitable[None]], *controllers: str, seed: int = 1) -> None:
    """Run a play with some controllers of the plane, all in virtual time; what they raise is raised."""

    async def act(world: World, server: Server, connect: Connect) -> None:
        stage = Stage(world, server, connect)
        await roles.ensure(stage.client)
        if "serviceaccount-controller" not in controllers:  # without one, no Pod is let in
            await stage.client.create(ServiceAccount(metadata=ObjectMeta(name="default")))
        if controllers:
            without = set(CONTROLLERS) - set(controllers)
            stage.run(lambda manager: add_controllers(manager, Options(), without=without), identity=identities.MANAGER)
        try:
            async with world.clock.timeout(_DAY):
                await play(stage)
        finally:
            await stage.stop()

    theatre(seed, act)
