"""Probe manager: runs the startup, readiness and liveness probes of a Pod's containers.

- Each probe has a worker that runs it periodically. A result counts after successThreshold or failureThreshold
  consecutive outcomes.
- Readiness and liveness probes wait for the startup probe to succeed, which then stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Literal

from ostinato.kinds.core_v1 import Container, Pod, Probe
from ostinato.plane.node.environment.expansion import expand
from ostinato.plane.node.probes.outcome import Outcome
from ostinato.plane.node.probes.prober import Prober
from ostinato.world import Clock
from ostinato.world.supervision import supervised

ProbeKind = Literal["startup", "readiness", "liveness"]

OnResult = Callable[[ProbeKind, bool], None]
"""`on_result(kind, success)` is called with the first result of a probe and with each change."""

OnUnhealthy = Callable[[str], None]
"""`on_unhealthy(message)` is called for each outcome that is not a success."""


class ProbeManager:
    """The probes of the containers of one Pod."""

    def __init__(self, prober: Prober, clock: Clock) -> None:
        self._prober = prober
        self._clock = clock
        self._workers: dict[str, _ContainerProbes] = {}  # by container

    def start(
        self,
        pod: Pod,
        container: Container,
        address: str,
        age: float,
        on_result: OnResult,
        on_unhealthy: OnUnhealthy,
    ) -> None:
        """Start the probes of a running container. `age`: seconds since its start."""
        if not (container.startup_probe or container.readiness_probe or container.liveness_probe):
            return
        workers = _ContainerProbes(pod, container, address, self._prober, self._clock)
        self._workers[container.name] = workers
        workers.start(age, on_result, on_unhealthy)

    def stop(self, container: str) -> None:
        """Stop the probes of a container; no callback runs afterwards."""
        workers = self._workers.pop(container, None)
        if workers is not None:
            workers.stop()

    def stop_all(self) -> None:
        for workers in self._workers.values():
            workers.stop()


class _ContainerProbes:
    """The probe workers of one running container."""

    def __init__(self, pod: Pod, container: Container, address: str, prober: Prober, clock: Clock) -> None:
        self._pod = pod
        self._container = container
        self._address = address
        self._prober = prober
        self._clock = clock
        self._started = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, age: float, on_result: OnResult, on_unhealthy: OnUnhealthy) -> None:
        container, pod = self._container, self._pod.metadata
        probes: dict[ProbeKind, Probe | None] = {
            "startup": container.startup_probe,
            "readiness": container.readiness_probe,
            "liveness": container.liveness_probe,
        }
        if container.startup_probe is None:
            self._started.set()
        for kind, probe in probes.items():
            if probe is not None:
                worker = partial(self._work, kind, probe, age, on_result, on_unhealthy)
                work = supervised(f"{kind} probe of {pod.namespace}/{pod.name}/{container.name}", worker, self._clock)
                self._tasks.append(asyncio.get_running_loop().create_task(work))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._prober.results.forget(self._pod, self._container.name)

    async def _work(
        self, kind: ProbeKind, probe: Probe, age: float, on_result: OnResult, on_unhealthy: OnUnhealthy
    ) -> None:
        if kind != "startup":
            await self._started.wait()
        await self._clock.sleep((probe.initial_delay_seconds or 0) - age)
        period = float(probe.period_seconds or 10)
        last, consecutive = None, 0
        reported: bool | None = None
        while True:
            began = self._clock.monotonic()
            outcome = await self._probe(probe)
            self._prober.results.count(self._pod, self._container.name, kind, outcome)
            if outcome.result != "success":
                on_unhealthy(_message(kind, outcome))
            if outcome.result != "error":
                success = outcome.result == "success"
                consecutive = consecutive + 1 if success == last else 1
                last = success
                threshold = probe.success_threshold if success else probe.failure_threshold
                if consecutive >= (threshold or (1 if success else 3)) and reported != success:
                    reported = success
                    if kind == "startup" and success:
                        self._started.set()
                    on_result(kind, success)
                    if kind == "startup" or (kind == "liveness" and not success):
                        return
            await self._clock.sleep(began + period - self._clock.monotonic())

    async def _probe(self, probe: Probe) -> Outcome:
        seconds, container = float(probe.timeout_seconds or 1), self._container
        if probe.exec is not None:
            variables = {each.name: each.value or "" for each in container.env if each.value_from is None}
            command = [expand(each, variables) for each in probe.exec.command]
            return await self._prober.command(self._pod, container.name, command, seconds)
        if probe.http_get is not None:
            return await self._prober.http(probe.http_get, container, self._address, seconds)
        if probe.tcp_socket is not None:
            return await self._prober.tcp(probe.tcp_socket, container, self._address, seconds)
        if probe.grpc is not None:
            return await self._prober.grpc(probe.grpc, self._address, seconds)
        return Outcome("error", "missing probe handler")


def _message(kind: ProbeKind, outcome: Outcome) -> str:
    name = kind.capitalize()
    if outcome.result == "error":
        return f"{name} probe errored and resulted in unknown state: {outcome.output}"
    return f"{name} probe failed: {outcome.output}"
