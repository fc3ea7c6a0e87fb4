"""The demo's steps: apply, show the objects, kill a process, scale, roll out, delete; each with its duration."""

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
from ostinato.cli.demo.changes import YOU, Change, ChangeWatcher, is_ready
from ostinato.cli.demo.cluster import NODE, WEB, web
from ostinato.cli.demo.screen import FAINT, GOOD, STRONG, Screen, Span, Style
from ostinato.client import Client
from ostinato.kinds.apps_v1 import Deployment, DeploymentStatus
from ostinato.kinds.core_v1 import Node, Pod
from ostinato.world import Clock

STEP_TIMEOUT: Final = 30.0  # seconds
_GROUP_SECONDS: Final = 0.08  # seconds within which equal changes share a line
_BAR: Final = 30
_TITLE: Final = Style("1;36", "#39c5cf", bold=True)
_PROCESS: Final = re.compile(r"process (\d+)")


class Step(msgspec.Struct, frozen=True):
    title: str
    command: str  # the equivalent kubectl or shell command
    goal: str  # the condition that ends the step


class Scenario:
    """`pause`: seconds between two steps."""

    def __init__(self, client: Client, watcher: ChangeWatcher, screen: Screen, pause: float) -> None:
        self._client = client
        self._watcher = watcher
        self._screen = screen
        self._clock: Clock = client.world.clock
        self._pause = pause
        self._began = 0.0  # start of the current step
        self._took: list[tuple[str, float]] = []

    async def run(self, started: float) -> None:
        """Run all steps. `started`: seconds that the API server took to start."""
        self._took.append(("Start the control plane", started))
        began = self._clock.monotonic()
        await self._client.wait_for(Node, NODE, "Ready", timeout=STEP_TIMEOUT)
        self._took.append(("Node becomes Ready", self._clock.monotonic() - began))
        reading = asyncio.get_running_loop().create_task(self._read())
        try:
            await self._steps()
        finally:
            reading.cancel()
        self._sum_up()

    async def _steps(self) -> None:
        async with self._step(Step("Apply a Deployment", "kubectl apply -f web.yaml", "3 of 3 available")):
            await self._client.apply(web(3, "web:1"))
            await self._until(self._settled(3, "web:1"))
        await self._show_tree()

        victim = next(iter(self._watcher.pods))
        process = await self._process(victim)
        async with self._step(Step("Kill a container's process", f"kill -9 {process}", "container restarted")):
            os.kill(process, signal.SIGKILL)
            self._watcher.changes.append(Change(self._clock.monotonic(), YOU, "kill the process of", "Pod", victim))
            await self._until(lambda: _has_restarted(self._watcher.pods[victim]) and self._settled(3, "web:1")())

        scale = f"kubectl scale deployment {WEB} --replicas=5"
        async with self._step(Step("Scale it", scale, "5 of 5 available")):
            await self._client.scale.set(Deployment, WEB, 5)
            await self._until(self._settled(5, "web:1"))

        rollout = f"kubectl set image deployment/{WEB} main=web:2"
        async with self._step(Step("Roll out a new version", rollout, "5 of 5 updated")):
            await self._client.apply(web(5, "web:2"), force=True)
            await self._until(self._settled(5, "web:2"))
        await self._show_tree()

        async with self._step(Step("Delete it", f"kubectl delete deployment {WEB}", "all objects deleted")):
            await self._client.delete(Deployment, WEB, propagation="Background")
            await self._until(
                lambda: not (self._watcher.deployments or self._watcher.replica_sets or self._watcher.pods)
            )

    @asynccontextmanager
    async def _step(self, step: Step) -> AsyncIterator[None]:
        self._head(step.title, step.command)
        self._began = self._clock.monotonic()
        yield
        took = self._clock.monotonic() - self._began
        self._took.append((f"{step.title}: {step.goal}", took))
        await self._clock.sleep(_GROUP_SECONDS)
        self._draw()
        self._screen.show(Span(f"{took * 1000:6.0f} ms  ✓ {step.goal}", GOOD))
        await self._clock.sleep(self._pause)

    async def _until(self, condition: Callable[[], bool]) -> None:
        try:
            async with self._clock.timeout(STEP_TIMEOUT):
                await self._watcher.until(condition)
        except TimeoutError:
            raise TimeoutError(
                f"step timed out after {STEP_TIMEOUT:g} s; {'; '.join(waiting(self._watcher.pods.values()))}"
            ) from None

    def _settled(self, replicas: int, image: str) -> Callable[[], bool]:
        """Return a condition: this number of Pods, all ready, with this image, and the Deployment's status agrees."""

        def holds() -> bool:
            deployment, pods = self._watcher.deployments.get(WEB), self._watcher.pods.values()
            return (
                deployment is not None
                and _counts(deployment.status) == {replicas}
                and deployment.status.observed_generation == deployment.metadata.generation
                and len(pods) == replicas
                and all(is_ready(pod) and pod.spec.containers[0].image == image for pod in pods)
            )

        return holds

    async def _process(self, pod: str) -> int:
        """Return the process id of a Pod's container, from its log."""
        async with self._clock.timeout(STEP_TIMEOUT):
            while True:
                if found := _PROCESS.search(await self._client.pods.log(pod)):
                    return int(found[1])
                await self._clock.sleep(0.05)

    async def _read(self) -> None:
        """Show changes as they happen, grouped."""
        while True:
            await self._watcher.next_change()
            await self._clock.sleep(_GROUP_SECONDS)
            self._draw()

    def _draw(self) -> None:
        taken, self._watcher.changes = sorted(self._watcher.changes, key=lambda change: change.at), []
        for entry in timeline.grouped(taken):
            self._screen.show(*timeline.render(entry, self._began))

    def _head(self, title: str, command: str) -> None:
        self._screen.show()
        self._screen.show(Span(f"▌ {title:<28}", _TITLE), Span(f"$ {command}", FAINT))

    async def _show_tree(self) -> None:
        pids = {name: await self._process(name) for name in self._watcher.pods}
        self._head("Current objects", "kubectl get deployments,replicasets,pods")
        for line in tree.render(self._watcher, pids):
            self._screen.show(*line)
        await self._clock.sleep(self._pause)

    def _sum_up(self) -> None:
        longest = max(seconds for _, seconds in self._took)
        self._screen.show()
        self._screen.show(Span("▌ Durations", _TITLE))
        for name, seconds in self._took:
            bar = "█" * max(1, round(_BAR * seconds / longest))
            self._screen.show(f"  {name:<50}", Span(f"{seconds * 1000:6.0f} ms  ", STRONG), Span(bar, GOOD))


def _counts(status: DeploymentStatus) -> set[int | None]:
    """Return the distinct replica counts; one if the Deployment is complete."""
    return {status.replicas, status.updated_replicas, status.ready_replicas, status.available_replicas}


def waiting(pods: Iterable[Pod]) -> Iterator[str]:
    """Yield the reasons for which Pods wait, from the kubelet and the scheduler."""
    for pod in pods:
        for container in pod.status.container_statuses:
            if container.state is not None and (state := container.state.waiting) is not None:
                yield f"Pod {pod.metadata.name}: {state.reason}: {state.message or ''}".rstrip(": ")
        for each in pod.status.conditions:
            if each.type == "PodScheduled" and each.status == "False":
                yield f"Pod {pod.metadata.name}: {each.reason}: {each.message or ''}".rstrip(": ")


def _has_restarted(pod: Pod) -> bool:
    return is_ready(pod) and any(each.restart_count for each in pod.status.container_statuses)
