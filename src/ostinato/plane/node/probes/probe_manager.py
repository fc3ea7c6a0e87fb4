"""Probes: whether a container has started, is ready, and lives.

Each probe is asked every so many seconds. What it says counts once it has said it often enough in a row; until the
startup probe succeeds the others wait, and after it has spoken it is asked no more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from ostinato.kinds.core_v1 import Container, Pod, Probe
from ostinato.plane.node.environment.expansion import expand
from ostinato.plane.node.probes.prober import Checker, Outcome
from ostinato.world import Clock

Kind = Literal["startup", "readiness", "liveness"]

Told = Callable[[Kind, bool], None]
"""`told(kind, result)` is called when the result of a probe has changed, or is the first."""

Complain = Callable[[str], None]
"""Called with what an unhealthy container is to be blamed for."""


class Probes:
    """Of one container that runs. Nothing happens after `stop`."""

    def __init__(self, pod: Pod, container: Container, address: str, checker: Checker, clock: Clock) -> None:
        self._pod = pod
        self._container = container
        self._address = address
        self._checker = checker
        self._clock = clock
        self._started = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self, age: float, told: Told, complain: Complain) -> None:
        """`age`: for how many seconds the container has run."""
        container = self._container
        probes: dict[Kind, Probe | None] = {
            "startup": container.startup_probe,
            "readiness": container.readiness_probe,
            "liveness": container.liveness_probe,
        }
        if container.startup_probe is None:
            self._started.set()
        for kind, probe in probes.items():
            if probe is not None:
                task = asyncio.get_running_loop().create_task(self._ask(kind, probe, age, told, complain))
                self._tasks.append(task)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _ask(self, kind: Kind, probe: Probe, age: float, told: Told, complain: Complain) -> None:
        if kind != "startup":
            await self._started.wait()
        await self._clock.sleep((probe.initial_delay_seconds or 0) - age)
        period = float(probe.period_seconds or 10)
        last, row = None, 0
        said: bool | None = None
        while True:
            began = self._clock.monotonic()
            outcome = await self._check(probe)
            if outcome.result != "success":
                complain(_complaint(kind, outcome))
            if outcome.result != "error":
                good = outcome.result == "success"
                row = row + 1 if good == last else 1
                last = good
                wanted = probe.success_threshold if good else probe.failure_threshold
                if row >= (wanted or (1 if good else 3)) and said != good:
                    said = good
                    if kind == "startup" and good:
                        self._started.set()
                    told(kind, good)
                    if kind == "startup" or (kind == "liveness" and not good):
                        return
            await self._clock.sleep(began + period - self._clock.monotonic())

    async def _check(self, probe: Probe) -> Outcome:
        seconds, container = float(probe.timeout_seconds or 1), self._container
        if probe.exec is not None:
            given = {each.name: each.value or "" for each in container.env if each.value_from is None}
            command = [expand(each, given) for each in probe.exec.command]
            return await self._checker.command(self._pod, container.name, command, seconds)
        if probe.http_get is not None:
            return await self._checker.http(probe.http_get, container, self._address, seconds)
        if probe.tcp_socket is not None:
            return await self._checker.tcp(probe.tcp_socket, container, self._address, seconds)
        return Outcome("error", "this node has probes of commands, HTTP and TCP")


def _complaint(kind: Kind, outcome: Outcome) -> str:
    name = kind.capitalize()
    if outcome.result == "error":
        return f"{name} probe errored and resulted in unknown state: {outcome.output}"
    return f"{name} probe failed: {outcome.output}"
