"""The play: apply, look at the objects, kill a process, scale, roll out, delete; with what each step took."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from ostinato.cli.demo import timeline, tree
from ostinato.cli.demo.screen import FAINT, GOOD, STRONG, Screen, Span, Style
from ostinato.cli.demo.stage import NODE, WEB, web
from ostinato.cli.demo.story import YOU, Change, Story, is_ready
from ostinato.client import Client
from ostinato.kinds.apps_v1 import Deployment, DeploymentStatus
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.world import Clock

PATIENCE: Final = 30.0  # seconds for one step
_GATHER: Final = 0.08  # seconds in which changes are gathered into one line
_BAR: Final = 30
_TITLE: Final = Style("1;36", "#39c5cf", bold=True)
_PROCESS: Final = re.compile(r"process (\d+)")


class Step(msgspec.Struct, frozen=True):
    title: str
    command: str  # that does the same with kubectl, or a shell
    goal: str  # what it is played until


class Play:
    """`pause`: the seconds between two steps, to read in."""

    def __init__(self, client: Client, story: Story, screen: Screen, pause: float) -> None:
        self._client = client
        self._story = story
        self._screen = screen
        self._clock: Clock = client.world.clock
        self._pause = pause
        self._began = 0.0  # the step that is played
        self._took: list[tuple[str, float]] = []

    async def run(self, started: float) -> None:
        """From a plane whose API server answers; `started`: what that took."""
        self._took.append(("Start a control plane", started))
        began = self._clock.monotonic()
        await self._client.wait_for(Node, NODE, "Ready", timeout=PATIENCE)
        self._took.append(("Have a node that is ready", self._clock.monotonic() - began))
        reading = asyncio.get_running_loop().create_task(self._read())
        try:
            await self._steps()
        finally:
            reading.cancel()
        self._sum_up()

    async def _steps(self) -> None:
        async with self._step(Step("Apply a Deployment", "kubectl apply -f web.yaml", "3 of 3 are available")):
            await self._client.apply(web(3, "web:1"))
            await self._until(self._settled(3, "web:1"))
        await self._show_tree()

        victim = next(iter(self._story.pods))
        process = await self._process(victim)
        async with self._step(Step("Kill a container's process", f"kill -9 {process}", "it is healed")):
            os.kill(process, signal.SIGKILL)
            self._story.changes.append(Change(self._clock.monotonic(), YOU, "kill the process of", "Pod", victim))
            await self._until(lambda: _has_restarted(self._story.pods[victim]) and self._settled(3, "web:1")())

        scale = f"kubectl scale deployment {WEB} --replicas=5"
        async with self._step(Step("Scale it", scale, "5 of 5 are available")):
            await self._client.scale.set(Deployment, WEB, 5)
            await self._until(self._settled(5, "web:1"))

        rollout = f"kubectl set image deployment/{WEB} main=web:2"
        async with self._step(Step("Roll out a new version", rollout, "all are new")):
            await self._client.apply(web(5, "web:2"), force=True)
            await self._until(self._settled(5, "web:2"))
        await self._show_tree()

        async with self._step(Step("Delete it", f"kubectl delete deployment {WEB}", "nothing is left")):
            await self._client.delete(Deployment, WEB, propagation="Background")
            await self._until(lambda: not (self._story.deployments or self._story.replica_sets or self._story.pods))

    @asynccontextmanager
    async def _step(self, step: Step) -> AsyncIterator[None]:
        self._head(step.title, step.command)
        self._began = self._clock.monotonic()
        yield
        took = self._clock.monotonic() - self._began
        self._took.append((f"{step.title}, until {step.goal}", took))
        await self._clock.sleep(_GATHER)
        self._draw()
        self._screen.show(Span(f"{took * 1000:6.0f} ms  ✓ {step.goal}", GOOD))
        await self._clock.sleep(self._pause)

    async def _until(self, condition: Callable[[], bool]) -> None:
        try:
            async with self._clock.timeout(PATIENCE):
                await self._story.until(condition)
        except TimeoutError:
            raise TimeoutError(
                f"it took more than {PATIENCE:g} s; {'; '.join(waiting(self._story.pods.values()))}"
            ) from None

    def _settled(self, replicas: int, image: str) -> Callable[[], bool]:
        """A condition: there are so many Pods, all of them ready, all of this image, and their Deployment knows it."""

        def holds() -> bool:
            deployment, pods = self._story.deployments.get(WEB), self._story.pods.values()
            return (
                deployment is not None
                and _counts(deployment.status) == {replicas}
                and deployment.status.observed_generation == deployment.metadata.generation
                and len(pods) == replicas
                and all(is_ready(pod) and pod.spec.containers[0].image == image for pod in pods)
            )

        return holds

    async def _process(self, pod: str) -> int:
        """Which process a Pod's container is, as it says in its log."""
        async with self._clock.timeout(PATIENCE):
            while True:
                if found := _PROCESS.search(await self._client.pods.log(pod)):
                    return int(found[1])
                await self._clock.sleep(0.05)

    # What is shown

    async def _read(self) -> None:
        """Show changes soon after they happen."""
        while True:
            await self._story.heard()
            await self._clock.sleep(_GATHER)
            self._draw()

    def _draw(self) -> None:
        taken, self._story.changes = sorted(self._story.changes, key=lambda change: change.at), []
        for entry in timeline.gathered(taken):
            self._screen.show(*timeline.drawn(entry, self._began))

    def _head(self, title: str, command: str) -> None:
        self._screen.show()
        self._screen.show(Span(f"▌ {title:<28}", _TITLE), Span(f"$ {command}", FAINT))

    async def _show_tree(self) -> None:
        pids = {name: await self._process(name) for name in self._story.pods}
        self._head("What there is now", "kubectl get deployments,replicasets,pods")
        for line in tree.drawn(self._story, pids):
            self._screen.show(*line)
        await self._clock.sleep(self._pause)

    def _sum_up(self) -> None:
        longest = max(seconds for _, seconds in self._took)
        self._screen.show()
        self._screen.show(Span("▌ What it took", _TITLE))
        for name, seconds in self._took:
            bar = "█" * max(1, round(_BAR * seconds / longest))
            self._screen.show(f"  {name:<50}", Span(f"{seconds * 1000:6.0f} ms  ", STRONG), Span(bar, GOOD))


def _counts(status: DeploymentStatus) -> set[int | None]:
    """In one that has settled they are all the same."""
    return {status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas}


def waiting(pods: Iterable[Pod]) -> Iterator[str]:
    """What Pods wait for, in the words of their node or of the scheduler."""
    for pod in pods:
        for container in pod.status.container_statuses:
            if container.state is not None and (state := container.state.waiting) is not None:
                yield f"Pod {pod.metadata.name}: {state.reason}: {state.message or ''}".rstrip(": ")
        for each in pod.status.conditions:
            if each.type == "PodScheduled" and each.status == "False":
                yield f"Pod {pod.metadata.name}: {each.reason}: {each.message or ''}".rstrip(": ")


def _has_restarted(pod: Pod) -> bool:
    return is_ready(pod) and any(each.restart_count for each in pod.status.container_statuses)
