"""A control plane in virtual time, with what a page knows of it: controllers, scheduler, simulated nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

from tests.stage.server import started_server
from tests.unit.page.observed import Observed

from ostinato.api.meta import ObjectMeta
from ostinato.client import MergePatch, StrategicMergePatch
from ostinato.client.transport.protocol import ConnectionLost, Request
from ostinato.controllers import ControllerOptions
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet
from ostinato.kinds.core_v1 import Pod, ServiceAccount
from ostinato.manager import ClientOptions, Manager, Purpose, ReportingOptions
from ostinato.page.facts import Ref, Step
from ostinato.page.history.chain import chain
from ostinato.page.history.change import Change
from ostinato.plane import scheduler
from ostinato.plane.access import identities, roles
from ostinato.plane.controllers import CONTROLLERS, FIELD_MANAGER, Options, add_controllers, ignore_warning
from ostinato.plane.node import fleet
from ostinato.server.in_process.transport import ADMINISTRATOR, InProcessTransport
from ostinato.world import Simulation

NODES = 3
RUNNING = (
    "deployment-controller",
    "garbage-collector-controller",
    "node-lifecycle-controller",
    "replicaset-controller",
    "taint-eviction-controller",
)


class _Line(InProcessTransport):
    """The connection of a component, which can be cut."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.is_cut = False
        self.released = asyncio.Event()
        self.released.set()

    async def request(self, request: Request) -> Any:
        if self.is_cut:
            raise ConnectionLost("the network is down")
        await self.released.wait()
        return await super().request(request)


class Explained(NamedTuple):
    """A chain of causes, and its origins."""

    steps: list[Step]
    origins: list[Step]

    def __str__(self) -> str:
        return "\n".join(map(_text, self.steps))


class ObservedPlane(Observed):
    """`client`: of the user `alice`."""

    async def begin(self) -> None:
        self._lines: dict[str, list[_Line]] = {}
        administrator = self.client
        await roles.ensure(administrator)
        await administrator.create(ServiceAccount(metadata=ObjectMeta(name="default")))
        await self.start(self._add)
        await self.world.clock.sleep(5.0)

    def new_manager(self) -> Manager:
        return Manager(
            connect=self._connect,
            client=ClientOptions(
                field_manager=FIELD_MANAGER, identities=identities.user_of_runnable, warn=ignore_warning
            ),
            reporting=ReportingOptions(core_events=True),
            controllers=ControllerOptions(error_events=False),
            world=self.world,
            observer=self.reporter,
        )

    def _connect(self, purpose: Purpose) -> _Line:
        user = identities.user_and_groups(purpose.identity) if purpose.identity else ADMINISTRATOR
        line = _Line(self.server, user=user, deadline=purpose.deadline)
        self._lines.setdefault(purpose.identity, []).append(line)
        return line

    @staticmethod
    def _add(manager: Manager) -> None:
        add_controllers(manager, Options(), without=frozenset(CONTROLLERS) - {*RUNNING})
        scheduler.add_to(manager)
        fleet.add_to(manager, NODES, "simulated")

    def cut_off(self, node: str) -> None:
        """End all requests of a node, from now on."""
        for line in self._lines[identities.user_of_node(node)]:
            line.is_cut = True

    async def deploy(self, replicas: int = 3, **spec: Any) -> list[Pod]:
        """Create the Deployment `web`; return its Pods when they are ready."""
        await self.client.create(deployment(replicas, **spec))
        return await self.ready(replicas)

    async def roll_out(self, replicas: int, **spec: Any) -> tuple[list[str], list[str]]:
        """Create the Deployment `web`, and let `bob` change its image; return its Pods before and after."""
        old = [pod.metadata.name for pod in await self.deploy(replicas, **spec)]
        await self.client.apply(deployment(replicas, "web:2", **spec), field_manager="bob", force=True)
        return old, [pod.metadata.name for pod in await self.ready(replicas, frozenset(old))]

    async def disturb(self, pods: list[str], seed: int) -> None:
        """Change what is no reason to replace a Pod: the status of others, an annotation of their ReplicaSet."""
        condition = {"type": f"example.dev/Tested{seed}", "status": "True"}
        for pod in pods[: 1 + seed % 2]:
            await self.client.patch(
                Pod, pod, StrategicMergePatch({"status": {"conditions": [condition]}}), subresource="status"
            )
        if seed % 3 == 0:
            note = MergePatch({"metadata": {"annotations": {"seed": f"{seed}/{self.world.clock.monotonic()}"}}})
            await self.client.patch(ReplicaSet, pods[0].rpartition("-")[0], note)
        await self.world.clock.sleep((seed % 5) * 0.002)

    async def another(self, known: set[str]) -> str:
        """Wait for a Pod that is not one of those; return its name."""
        for _ in range(6000):
            for pod in await self.client.list(Pod):
                if pod.metadata.name not in known:
                    await self.world.clock.sleep(2.0)
                    return pod.metadata.name
            await self.world.clock.sleep(0.1)
        raise AssertionError("no other Pod was created")

    @asynccontextmanager
    async def held(self, controller: str) -> AsyncIterator[None]:
        """Let the requests of a controller wait until the end of the block."""
        lines = self._lines[identities.user_of_runnable(controller)]
        for line in lines:
            line.released.clear()
        try:
            yield
        finally:
            for line in lines:
                line.released.set()

    async def ready(self, replicas: int, without: frozenset[str] = frozenset()) -> list[Pod]:
        """Wait until the Deployment `web` has so many ready Pods, all of its last version, and no others."""
        for _ in range(3000):
            pods = await self.client.list(Pod)
            found = await self.client.get(Deployment, "web")
            status, observed = found.status, found.status.observed_generation or 0
            if (
                observed >= (found.metadata.generation or 0)
                and (status.updated_replicas, status.ready_replicas, status.replicas) == (replicas,) * 3
                and not without & {pod.metadata.name for pod in pods}
                and len(pods) == replicas
            ):
                await self.world.clock.sleep(2.0)
                return [*pods]
            await self.world.clock.sleep(0.1)
        raise AssertionError("the Deployment does not get ready")

    def creation(self, pod: str) -> Explained:
        return self._why(pod, lambda change: change.type == "create")

    def deletion(self, pod: str) -> Explained:
        """Why its deletion was requested."""
        return self._why(pod, lambda change: change.is_deletion and change.type == "update")

    def request(self, pod: str) -> Explained:
        """Why its deletion was requested, perhaps in one change with its removal."""
        first = next(each for each in self.changes_of(pod) if each.is_deletion)
        return self._why(pod, lambda change: change is first)

    def removal(self, pod: str) -> Explained:
        """Why it is gone."""
        return self._why(pod, lambda change: change.type == "delete")

    def changes_of(self, pod: str) -> list[Change]:
        return self.history.changes.of_object(Ref("v1", "Pod", "default", pod))

    def _why(self, pod: str, wanted: Callable[[Change], bool]) -> Explained:
        history = self.history
        (change,) = filter(wanted, self.changes_of(pod))
        return Explained(*chain(change, history.changes, history.runs))


def deployment(replicas: int = 3, image: str = "web:1", **spec: Any) -> dict[str, Any]:
    labels = {"app": "web"}
    containers = [{"name": "web", "image": image}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def on_plane(test: Callable[[ObservedPlane], Awaitable[Any]], seed: int = 1, *, merges_pods: bool = False) -> None:
    """Run a test in virtual time."""

    async def main(world: Simulation) -> None:
        async with started_server(world) as server:
            plane = ObservedPlane(world, server, merges_pods=merges_pods)
            await plane.begin()
            try:
                await test(plane)
            finally:
                await plane.stop()

    world = Simulation(seed=seed)
    world.run(partial(main, world)())


def _text(step: Step) -> str:
    if step.reconcile:
        run = step.reconcile
        causes = ", ".join(f"{each.ref.kind} {each.ref.name}@{each.resource_version}" for each in run.causes)
        also = ", ".join(f"{each.verb} {each.ref}" for each in step.also)
        return f"    {run.controller} {run.key} reasons={run.reasons} causes={causes} also={also}"
    if step.write:
        return f"{step.type} {step.write.verb} {step.write.ref} by {step.write.author}: {step.write.summary[:100]}"
    return f"{step.type}: {step.who or ''} {step.why or ''} {step.n or ''}"
