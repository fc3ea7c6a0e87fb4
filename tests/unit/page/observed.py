"""A page without its HTTP, in virtual time: a server, controllers that report, and what the page knows of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from tests.stage.server import started_server

from ostinato.client.client import Client
from ostinato.client.transport.protocol import Request, Response
from ostinato.manager import ClientOptions, Manager
from ostinato.page.answers.cluster_facts import ClusterFacts
from ostinato.page.answers.node_facts import NodeFacts
from ostinato.page.answers.pod_facts import PodFacts
from ostinato.page.answers.query import Query
from ostinato.page.facts import Alarm
from ostinato.page.history.history import History
from ostinato.page.live.symptoms import Symptoms
from ostinato.page.reporting.reporter import Reporter
from ostinato.page.watching.cluster import Cluster, Scope
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.verbs.watch import INTERVAL_HEADER
from ostinato.world import Simulation


class _MergedPods(InProcessTransport):
    async def request(self, request: Request) -> Response:
        if request.path == "/api/v1/pods":
            request = request._replace(headers=[*request.headers, (INTERVAL_HEADER, "0.15; merge=0")])
        return await super().request(request)


class Observed:
    """`client`: of a user. `history`, `facts`, `nodes`, `pods`: of the page."""

    def __init__(self, world: Simulation, server: Server, *, merges_pods: bool = False) -> None:
        """`merges_pods`: the server merges the successive events of Pods, as under load. Defaults to False."""
        self.world = world
        self.server = server
        self.client = Client(InProcessTransport(server), world=world, namespace="default", field_manager="a-user")
        self.history = History(world.clock)
        self._own = Client((_MergedPods if merges_pods else InProcessTransport)(server), world=world)
        self.cluster = Cluster(self._own, world, self.history.changes, Scope())
        self.facts = ClusterFacts(world.clock, self.cluster)
        self.nodes = NodeFacts(self.cluster)
        self.pods = PodFacts(world.clock, self._own, self.cluster, self.history.placements)
        self._symptoms = Symptoms(world.clock, self.cluster, self.history.alarms, self.history.graph)
        self.reporter = Reporter("test", world.clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._manager: Manager | None = None

    async def start(self, add: Callable[[Manager], object] | None = None) -> None:
        """Begin to watch. `add`: adds controllers."""
        create = asyncio.get_running_loop().create_task
        self._tasks = [create(self.cluster.run()), create(self.reporter.run(self._receive))]
        if add is not None:
            self._manager = self.new_manager()
            add(self._manager)
            self._tasks.append(create(self._manager.serve()))
        await self.world.clock.sleep(2.0)
        await self.cluster.synced()

    def new_manager(self) -> Manager:
        """Return the manager of the controllers."""
        return Manager(
            connect=lambda _: InProcessTransport(self.server),
            client=ClientOptions(field_manager="operator"),
            world=self.world,
            observer=self.reporter,
        )

    async def stop(self) -> None:
        if self._manager is not None:
            self._manager.stop()
            await self._tasks.pop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.client.close()
        await self._own.close()

    async def passes(self, seconds: float) -> None:
        """Let time pass, in which the page looks for symptoms."""
        for _ in range(int(seconds)):
            await self.world.clock.sleep(1.0)
            self._symptoms.check()

    def alarms(self, type_: str) -> list[Alarm]:
        return [each for each in self.history.alarms.current() if each.type == type_]

    async def _receive(self, body: bytes) -> bool:
        self.history.receive(body)
        return False


def query(**values: str) -> Query:
    return Query({name: [value] for name, value in values.items()})


def observed(test: Callable[[Observed], Awaitable[Any]], add: Callable[[Manager], object] | None = None) -> None:
    """Run a test in virtual time. `add`: adds the controllers that report."""

    async def main(world: Simulation) -> None:
        async with started_server(world) as server:
            page = Observed(world, server)
            await page.start(add)
            try:
                await test(page)
            finally:
                await page.stop()

    world = Simulation(seed=1)
    world.run(partial(main, world)())
