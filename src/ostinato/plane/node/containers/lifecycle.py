"""How the containers of a Pod are started, watched and stopped: volumes, hooks, probes, last words and events.

A simulated container is only started and stopped; nothing of the rest is asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.errors import APIError
from ostinato.api.time import Time
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import Container, LifecycleHandler, Pod
from ostinato.plane.node.containers.container_state import Record, Waiting
from ostinato.plane.node.containers.termination_messages import last_words
from ostinato.plane.node.environment.container_environment import Supplies
from ostinato.plane.node.pod_status import Knowledge
from ostinato.plane.node.probes.probe_manager import Kind, Probes
from ostinato.plane.node.probes.prober import Checker
from ostinato.plane.node.runtimes import Launch, PullError, Runtime, SandboxError, StartError
from ostinato.plane.node.volumes import Mounted, MountError
from ostinato.world import Clock

EventRecorder = Callable[[Pod, str, str, str], None]
"""`tell(pod, type, reason, message)` makes an event."""

_MINIMUM_GRACE: Final = 2.0  # seconds that are left for SIGTERM, however long hooks took
_FIRST_RETRY: Final = 0.5  # seconds after which volumes that are not there are looked for again
_LONGEST_RETRY: Final = 20.0


class Quarters(msgspec.Struct, frozen=True, eq=False):
    """Where a Pod lives. `supplies`: None where containers are simulated."""

    host_ip: str
    runtime: Runtime
    clock: Clock
    supplies: Supplies | None = None


@runtime_checkable
class Resizable(Protocol):
    """A runtime that can change what its containers may use."""

    def resize(self, pod: Pod, container: Container, attempt: int) -> None: ...


class Life(Protocol):
    """What is known of the Pod whose containers are handled."""

    pod: Pod
    known: Knowledge
    records: dict[str, Record]

    def changed(self) -> None: ...

    def now(self) -> Time: ...


class Handler:
    def __init__(self, life: Life, quarters: Quarters, tell: EventRecorder) -> None:
        self._life = life
        self._quarters = quarters
        self._clock = quarters.clock
        self._tell = tell
        self._checker = Checker(quarters.runtime, quarters.clock)
        self._volumes: dict[str, Mounted] | None = None  # once they are mounted
        self._retry_at = 0.0
        self._retry = _FIRST_RETRY
        self._probes: dict[str, Probes] = {}
        self._kills: dict[str, asyncio.Task[None]] = {}  # of containers that are being ended for themselves

    async def address(self) -> str:
        pod = self._life.pod
        return self._quarters.host_ip if pod.spec.host_network else await self._quarters.runtime.address(pod)

    # Starting

    def retry_left(self) -> float:
        """Seconds until what the Pod lacked, a volume or a sandbox, may be tried again."""
        return self._retry_at - self._clock.monotonic() if self._retry_at else 0.0

    async def start(self, records: list[Record]) -> None:
        life = self._life
        if not await self._mount():
            return
        if not life.known.has_sandbox:
            try:
                life.known.pod_ip = await self.address()
            except SandboxError as error:
                self._tell(life.pod, "Warning", "FailedCreatePodSandBox", str(error))
                self._retry_later()
                return
            life.known.has_sandbox = True
        self._retry_at, self._retry = 0.0, _FIRST_RETRY
        for record in records:
            if not await self._start(record):
                return

    async def _mount(self) -> bool:
        supplies, life = self._quarters.supplies, self._life
        if supplies is None or self._volumes is not None:
            return True
        try:
            self._volumes = await supplies.mount(life.pod, life.known.started_at)
        except MountError as error:
            self._tell(life.pod, "Warning", "FailedMount", str(error))
            self._retry_later()
            return False
        return True

    def _retry_later(self) -> None:
        self._retry_at = self._clock.monotonic() + self._retry
        self._retry = min(2 * self._retry, _LONGEST_RETRY)

    async def _start(self, record: Record) -> bool:
        """Whether those after it may be started now."""
        runtime, supplies, life, pod = self._quarters.runtime, self._quarters.supplies, self._life, self._life.pod
        attempt = record.restarts + (record.running is not None)
        try:
            if supplies is None:
                launch = Launch(pod=pod, container=record.spec, attempt=attempt)
            else:
                await runtime.pull(pod, record.spec, lambda *what: self._tell(pod, *what))
                launch = await supplies.launch(pod, record.spec, attempt, life.known.pod_ip, self._volumes or {})
            running = await runtime.start(launch)
        except (APIError, TransportError, OSError) as error:
            reason = "CreateContainerError" if isinstance(error, OSError) else "CreateContainerConfigError"
            record.failed(Waiting(reason, str(error)), life.now())
            self._tell(pod, "Warning", "Failed", f"Error: {error}")
            return True
        except StartError as error:
            record.failed(Waiting(error.reason, str(error)), life.now(), error.again)
            said = error.reason if isinstance(error, PullError) else str(error)
            self._tell(pod, "Warning", "Failed", f"Error: {said}")
            return True
        record.started(running)
        self._tell(pod, "Normal", "Created", "Container created")
        if running.exit is not None and running.exit.reason == "StartError":
            self._tell(pod, "Warning", "Failed", f"Error: {running.exit.message}")
            return True
        self._tell(pod, "Normal", "Started", "Container started")
        if supplies is None:
            return True
        hook = None if record.spec.lifecycle is None else record.spec.lifecycle.post_start
        if hook is not None and not await self._after_start(record, hook):
            return True
        self._probe(record)
        return record.role != "sidecar" or record.is_started

    async def _after_start(self, record: Record, hook: LifecycleHandler) -> bool:
        """Whether the hook succeeded; if not, the container has been ended."""
        record.hooking = True
        try:
            good = await self._run(record, hook, None)
        finally:
            record.hooking = False
        if not good:
            pod = self._life.pod
            self._tell(pod, "Warning", "FailedPostStartHook", "PostStartHook failed")
            self._tell(pod, "Normal", "Killing", "FailedPostStartHook")
            await self._stop_within(record, self._grace)
            self.notice_ends()
        return good

    # Watching

    def recovered(self, record: Record) -> None:
        """It was there before this agent was."""
        if record.is_running and self._quarters.supplies is not None:
            status = self._life.pod.status
            told = next(
                (
                    each
                    for group in (status.init_container_statuses, status.container_statuses)
                    for each in group
                    if each.name == record.name
                ),
                None,
            )
            self._probe(record)
            if told is not None and told.started:
                record.probed_started = True
            if told is not None and told.ready:
                record.probed_ready = True

    def notice_ends(self) -> None:
        """What is to be done at the end of a container."""
        if self._quarters.supplies is None:
            return
        for record in self._life.records.values():
            if record.running is None or record.running.exit is None:
                continue
            probes = self._probes.pop(record.name, None)
            if probes is not None:
                probes.stop()
            if not record.words:
                pod, attempt = self._life.pod, record.running.attempt
                message = self._quarters.supplies.message(pod, record.name, attempt)
                log = self._quarters.supplies.log(pod, record.name, attempt)
                record.words = last_words(record.spec, record.running.exit, message, log)

    def _probe(self, record: Record) -> None:
        spec, running = record.spec, record.running
        assert running is not None
        record.probed_started = spec.startup_probe is None
        record.probed_ready = spec.readiness_probe is None
        if not (spec.startup_probe or spec.readiness_probe or spec.liveness_probe):
            return
        life = self._life
        probes = Probes(life.pod, spec, life.known.pod_ip or self._quarters.host_ip, self._checker, self._clock)
        self._probes[record.name] = probes
        age = (life.now() - running.started_at).total_seconds()

        def told(kind: Kind, good: bool) -> None:
            self._told(record, kind, good)

        probes.begin(age, told, lambda text: self._tell(life.pod, "Warning", "Unhealthy", text))

    def _told(self, record: Record, kind: Kind, good: bool) -> None:
        if kind == "readiness":
            record.probed_ready = good
        elif kind == "startup" and good:
            record.probed_started = True
        elif not good and record.is_running and record.name not in self._kills:
            self._kill(record, kind)
        self._life.changed()

    def replace(self, record: Record) -> None:
        """It is to be another, now that it has another image."""
        record.replaced = True
        text = f"Container {record.name} definition changed, will be restarted"
        self._condemn(record, self._end_one(record, text, self._grace))

    def resize(self, pod: Pod) -> None:
        """Its containers may use more, or less, from now on."""
        summary = {
            "initContainers": [_allocation(each) for each in pod.spec.init_containers],
            "containers": [_allocation(each) for each in pod.spec.containers],
            "generation": pod.metadata.generation,
        }
        if not pod.spec.init_containers:
            del summary["initContainers"]
        text = msgspec.json.encode(summary).decode()
        self._tell(pod, "Normal", "ResizeStarted", f"Pod resize started: {text}")
        if isinstance(self._quarters.runtime, Resizable):
            for record in self._life.records.values():
                if record.running is not None and record.is_running:
                    self._quarters.runtime.resize(pod, record.spec, record.running.attempt)
        self._tell(pod, "Normal", "ResizeCompleted", f"Pod resize completed: {text}")

    def _condemn(self, record: Record, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._kills[record.name] = task
        task.add_done_callback(lambda _: self._kills.pop(record.name, None))

    async def _end_one(self, record: Record, why: str, grace: float) -> None:
        self._tell(self._life.pod, "Normal", "Killing", why)
        await self._stop_within(record, grace)

    def _kill(self, record: Record, kind: Kind) -> None:
        probe = record.spec.liveness_probe if kind == "liveness" else record.spec.startup_probe
        grace = self._grace
        if probe is not None and probe.termination_grace_period_seconds is not None:
            grace = float(probe.termination_grace_period_seconds)
        text = f"Stopping container {record.name}"
        if self._comes_back(record):
            text = f"Container {record.name} failed {kind} probe, will be restarted"
        self._condemn(record, self._end_one(record, text, grace))

    def _comes_back(self, record: Record) -> bool:
        if record.role == "sidecar":
            return True
        policy = record.spec.restart_policy or self._life.pod.spec.restart_policy or "Always"
        return policy != "Never"

    @property
    def _grace(self) -> float:
        return float(self._life.pod.spec.termination_grace_period_seconds or 0)

    # Stopping

    async def stop_all(self, grace: float) -> None:
        """End all containers: sidecars after the others, the last one first."""
        life, until = self._life, self._clock.monotonic() + grace
        for probes in self._probes.values():
            probes.stop()
        ordinary = [each for each in life.records.values() if each.role != "sidecar" and each.is_running]
        if len(ordinary) == 1:
            await self._stop(ordinary[0], grace, until)
        else:
            await asyncio.gather(*(self._stop(each, grace, until) for each in ordinary))
        for record in reversed([each for each in life.records.values() if each.role == "sidecar"]):
            if record.is_running:
                await self._stop(record, grace, until)
        self.notice_ends()
        await self._quarters.runtime.discard(life.pod)
        if self._quarters.supplies is not None:
            await self._quarters.supplies.discard(life.pod)

    async def stop_for_restart(self) -> None:
        """End all containers, for all of them are to begin anew."""
        running = [each for each in self._life.records.values() if each.is_running and each.role != "ephemeral"]
        await asyncio.gather(*(self._end_one(each, "killing", self._grace) for each in running))
        self.notice_ends()

    async def _stop(self, record: Record, grace: float, until: float) -> None:
        self._tell(self._life.pod, "Normal", "Killing", f"Stopping container {record.name}")
        left = until - self._clock.monotonic()
        await self._stop_within(record, max(left, _MINIMUM_GRACE if grace else 0.0))

    async def _stop_within(self, record: Record, grace: float) -> None:
        """The hook before the end takes its time from the grace period."""
        assert record.running is not None
        hook = None if record.spec.lifecycle is None else record.spec.lifecycle.pre_stop
        if hook is not None and grace > 0 and record.is_running and self._quarters.supplies is not None:
            began = self._clock.monotonic()
            if not await self._run(record, hook, grace):
                self._tell(self._life.pod, "Warning", "FailedPreStopHook", "PreStopHook failed")
            grace = max(grace - (self._clock.monotonic() - began), _MINIMUM_GRACE)
        await record.running.stop(grace)

    async def _run(self, record: Record, hook: LifecycleHandler, seconds: float | None) -> bool:
        life, spec = self._life, record.spec
        if hook.exec is not None:
            outcome = await self._checker.command(life.pod, record.name, hook.exec.command, seconds)
            return outcome.result == "success"
        if hook.http_get is not None:
            address = life.known.pod_ip or self._quarters.host_ip
            agent = "kube-lifecycle/1.36"
            outcome = await self._checker.http(hook.http_get, spec, address, seconds, agent)
            return outcome.result == "success" or "statuscode" in outcome.output
        if hook.sleep is not None:
            asked = float(hook.sleep.seconds)
            await self._clock.sleep(asked if seconds is None else min(asked, seconds))
        return True


def _allocation(container: Container) -> dict[str, Any]:
    resources = {} if container.resources is None else to_dict(container.resources)
    return {"name": container.name, "resources": resources}
