"""A stage for the control plane's controllers, in virtual time.

    async def play(stage: Stage) -> None:
        await stage.client.create(deployment("web", replicas=3))
        await stage.settle()
        assert len(await stage.client.list(Pod)) == 3

    on_stage(play, "deployment-controller", "replicaset-controller")

- Tests share nothing but the process.
- `settle` waits in virtual time until the store has not been written for a while; `until` waits for a condition.
- A test that takes more than a day of virtual time has failed.
- With `--over-http`, the same tests use a server over HTTPS (`over_http`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch
from ostinato.controllers import ControllerOptions
from ostinato.kinds.core_v1 import ServiceAccount
from ostinato.manager import ClientOptions, Manager, ReportingOptions
from ostinato.manager.connecting import Connect, Purpose
from ostinato.plane.access import identities, roles
from ostinato.plane.controllers import CONTROLLERS, FIELD_MANAGER, Options, add_controllers
from ostinato.server.core import Server
from ostinato.server.in_process.transport import ADMINISTRATOR, InProcessTransport
from ostinato.world import Simulation, World
from tests.stage.client import Stage as ClientStage
from tests.stage.server import started_server

T = TypeVar("T")
_DAY = 86_400.0


class Stage(ClientStage):
    """A stage on which managers run. `connect`: opens transports to the server."""

    def __init__(self, world: World, server: Server, connect: Connect) -> None:
        super().__init__(world, server, connect(Purpose()))
        self.connect = connect
        self._managers: list[tuple[Manager, asyncio.Task[None]]] = []

    @property
    def version(self) -> int:
        """The store's resourceVersion, which grows with every write."""
        return self.server.index.version

    def run(self, add: Callable[[Manager], object], field_manager: str = FIELD_MANAGER, identity: str = "") -> Manager:
        """Start a manager.

        - `add`: adds its runnables.
        - `identity`: the manager's user. Components of the control plane have their own.
        """
        manager = Manager(
            connect=lambda purpose: self.connect(purpose._replace(identity=purpose.identity or identity)),
            client=ClientOptions(field_manager=field_manager, identities=_identity),
            controllers=ControllerOptions(error_events=False),  # as in a plane
            reporting=ReportingOptions(core_events=True),
            world=self.world,
        )
        add(manager)
        self._managers.append((manager, asyncio.get_running_loop().create_task(manager.serve())))
        return manager

    async def settle(self, quiet: float = 2.0, limit: float = 600.0) -> None:
        """Wait until the store has not been written for `quiet` seconds."""
        until = self.world.clock.monotonic() + limit
        before = -1
        while before != self.version:
            assert self.world.clock.monotonic() < until, f"still writing after {limit} s"
            before = self.version
            await self.world.clock.sleep(quiet)

    async def until(self, condition: Callable[[], Awaitable[T]], limit: float = 600.0) -> T:
        """Wait until the condition returns a true value, and return it."""
        end = self.world.clock.monotonic() + limit
        while not (found := await condition()):
            assert self.world.clock.monotonic() < end, f"the condition does not hold after {limit} s"
            await self.world.clock.sleep(0.1)
        return found

    async def events(self, name: str = "") -> list[tuple[str, str]]:
        """Return reason and note of the events of one or all objects, ordered by resourceVersion."""
        from ostinato.kinds.events_v1 import Event

        found = sorted(await self.client.list(Event), key=lambda each: int(each.metadata.resource_version))
        return [
            (each.reason or "", each.note or "")
            for each in found
            if not name or (each.regarding is not None and each.regarding.name == name)
        ]

    async def set_pod_status(self, pod: Any, **status: Any) -> None:
        """Write a Pod's status, as a kubelet does."""
        await self.client.patch(type(pod), pod.metadata, MergePatch({"status": status}), subresource="status")

    async def stop_managers(self) -> None:
        """Stop the managers; the server keeps running."""
        for manager, task in self._managers:
            manager.stop()
            await task
        self._managers.clear()

    async def stop(self) -> None:
        await self.stop_managers()
        await self.client.close()


Scenario = Callable[[World, Server, Connect], Coroutine[Any, Any, None]]
"""A coroutine function that gets a started server, its world, and how to connect to it."""


def in_simulation(seed: int, scenario: Scenario) -> None:
    """Run a scenario with a new server in a simulation; raise unhandled errors."""
    world = Simulation(seed=seed)

    async def main() -> None:
        async with started_server(world) as server:
            await scenario(world, server, lambda purpose: _transport(server, purpose))

    world.run(main())


def _identity(name: str) -> str:
    """Return the identity of a component; runnables of tests have the manager's."""
    try:
        return identities.user_of_runnable(name)
    except KeyError:
        return ""


def _transport(server: Server, purpose: Purpose) -> InProcessTransport:
    user = identities.user_and_groups(purpose.identity) if purpose.identity else ADMINISTRATOR
    return InProcessTransport(server, user=user, deadline=purpose.deadline)


run_scenario: Callable[[int, Scenario], None] = in_simulation  # replaced with --over-http


def on_stage(play: Callable[[Stage], Awaitable[None]], *controllers: str, seed: int = 1) -> None:
    """Run a test with some of the control plane's controllers, in virtual time; raise their errors."""

    async def scenario(world: World, server: Server, connect: Connect) -> None:
        stage = Stage(world, server, connect)
        await roles.ensure(stage.client)
        if "serviceaccount-controller" not in controllers:  # admission requires it for Pods
            await stage.client.create(ServiceAccount(metadata=ObjectMeta(name="default")))
        if controllers:
            without = set(CONTROLLERS) - set(controllers)
            stage.run(lambda manager: add_controllers(manager, Options(), without=without), identity=identities.MANAGER)
        try:
            async with world.clock.timeout(_DAY):
                await play(stage)
        finally:
            await stage.stop()

    run_scenario(seed, scenario)
