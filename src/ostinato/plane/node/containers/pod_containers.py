"""The containers of one Pod: starts, probes, stops and recovers them.

- `PodContainers` is the only owner of the container records: pod worker and status manager read them.
- It knows nothing of its pod worker; a probe result is reported through `on_change`.
- On a node with simulated containers there are no volumes, variables, hooks, probes and termination messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import lru_cache
from typing import Any, Final

from ostinato.api.errors import APIError
from ostinato.api.time import Time
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.core_v1 import Container, LifecycleHandler, Pod
from ostinato.plane.node.containers.allocation import Allocation
from ostinato.plane.node.containers.container_record import ContainerRecord, Waiting, ephemeral_record, records_of
from ostinato.plane.node.containers.resize import Resizable, ResizeError, requires_restart, resize_summary
from ostinato.plane.node.containers.termination_messages import termination_message
from ostinato.plane.node.local_node import NodeComponents
from ostinato.plane.node.pod_identity import pod_identity
from ostinato.plane.node.pod_sandbox import PodSandbox
from ostinato.plane.node.probes.probe_manager import ProbeKind, ProbeManager
from ostinato.plane.node.runtimes import Launch, PullError, RuntimeContainer, SandboxError, StartError
from ostinato.plane.node.volumes import MountedVolume, MountError

PodEventRecorder = Callable[[Pod, str, str, str], None]
"""`record_event(pod, type, reason, message)` emits an event about a Pod."""

_MINIMUM_GRACE: Final = 2.0  # seconds between SIGTERM and SIGKILL, however long a preStop hook took
_FIRST_RETRY: Final = 0.5  # seconds until volumes or the sandbox are tried again
_MAX_RETRY: Final = 20.0
_RESIZE_RETRY: Final = 10.0


class PodContainers:
    """The containers of a Pod.

    - `seen`: the Pod as last seen.
    - `pod`: the same with the resources that are allocated to it; containers have these.
    - `records`: its containers in start order, to be read only.
    """

    def __init__(
        self, pod: Pod, node: NodeComponents, record_event: PodEventRecorder, on_change: Callable[[Pod], None]
    ) -> None:
        self._allocation = Allocation(pod) if node.runtime.is_real else None
        self.seen, self.pod = pod, self._allocated(pod)
        self.records = records_of(self.pod)
        self.sandbox = PodSandbox(node.host_ips, node.runtime, node.admit)
        self.started_at = pod.status.start_time or Time.of(node.clock.now())
        self._node = node
        self._clock = node.clock
        self._record_event = record_event
        self._on_change = on_change
        self._probes = ProbeManager(node.prober, node.clock)
        self._volumes: dict[str, MountedVolume] | None = None  # None until they are mounted
        self._retry_at = 0.0
        self._retry = _FIRST_RETRY
        self._resize_at = 0.0  # when a failed resize is tried again
        self._is_resizing = False  # from the allocation until all containers have their resources
        self._stopping: dict[str, asyncio.Task[None]] = {}  # containers that are being stopped individually

    # Desired state

    def update(self, pod: Pod) -> None:
        """Apply a new version of the Pod: images, resources, ephemeral containers."""
        before, self.seen, self.pod = self.seen, pod, self._allocated(pod)
        if pod.metadata.generation == before.metadata.generation:
            return
        for container in (*self.pod.spec.init_containers, *self.pod.spec.containers):
            record = self.records.get(container.name)
            if record is not None:
                other_image = record.spec.image != container.image
                record.spec = container
                if other_image and record.is_running and record.role in ("main", "sidecar"):
                    self._replace(record)
        for ephemeral in pod.spec.ephemeral_containers:
            if ephemeral.name not in self.records:
                self.records[ephemeral.name] = ephemeral_record(ephemeral)

    def compact(self) -> None:
        """Keep only what identifies the Pod, until the next `update`: simulated Pods number in the thousands."""
        self.seen = self.pod = pod_identity(self.pod)
        for record in self.records.values():
            record.spec = _outline(record.name, record.spec.image, record.spec.restart_policy)
            record.resources = None

    async def recover(self) -> None:
        """Take over the containers that an earlier agent has started."""
        found = await self._node.runtime.recover(self.pod)
        has_containers = False
        for name, instance in found.items():
            if name in self.records:
                record = self.records[name]
                record.instance = instance
                record.resources = record.spec.resources if record.resources is None else record.resources
                record.restart_count = max(record.restart_count, instance.attempt)
                has_containers = True
                self._resume_probes(record)
        if has_containers:
            await self.sandbox.ensure(self.pod)

    # Start

    def start_delay(self, record: ContainerRecord) -> float:
        """Return the seconds until a container may be started: its back-off, or the retry of volumes and sandbox."""
        retry = self._retry_at - self._clock.monotonic() if self._retry_at else 0.0
        return max(self._backoff_left(record), retry)

    async def start(self, records: list[ContainerRecord]) -> None:
        """Start containers in order, after volumes and sandbox are ready."""
        if not await self._mount():
            return
        try:
            if not self.sandbox.is_ready:
                await self.sandbox.ensure(self.pod, await self._handler())
        except SandboxError as error:
            self._record_event(self.pod, "Warning", "FailedCreatePodSandBox", str(error))
            self._retry_later()
            return
        self._retry_at, self._retry = 0.0, _FIRST_RETRY
        for record in records:
            if not await self._start(record):
                return

    async def _handler(self) -> str:
        """Return the handler of the Pod's RuntimeClass; `SandboxError` if the class cannot be read."""
        environment, name = self._node.environment, self.pod.spec.runtime_class_name
        if environment is None or not name:
            return ""
        try:
            return await environment.runtime_handler(name)
        except (APIError, TransportError) as error:
            raise SandboxError(f"Failed to create pod sandbox: runtime class {name}: {error}") from None

    def _backoff_left(self, record: ContainerRecord) -> float:
        next_start = record.next_start()
        left = 0.0 if next_start is None else (next_start - self._now()).total_seconds()
        if left > 0 and record.waiting is None:
            meta = self.pod.metadata
            full_name = f"{meta.name}_{meta.namespace}({meta.uid})"
            text = f"back-off {_go_duration(record.backoff)} restarting failed container={record.name} pod={full_name}"
            record.waiting = Waiting("CrashLoopBackOff", text)
            message = f"Back-off restarting failed container {record.name} in pod {full_name}"
            self._record_event(self.pod, "Warning", "BackOff", message)
        return left

    async def _mount(self) -> bool:
        volumes = self._node.volumes
        if volumes is None or self._volumes is not None:
            return True
        try:
            self._volumes = await volumes.mount(self.pod, self.started_at)
        except MountError as error:
            self._record_event(self.pod, "Warning", "FailedMount", str(error))
            self._retry_later()
            return False
        return True

    def _retry_later(self) -> None:
        self._retry_at = self._clock.monotonic() + self._retry
        self._retry = min(2 * self._retry, _MAX_RETRY)

    async def _start(self, record: ContainerRecord) -> bool:
        """Start a container; return whether the next one may be started now."""
        pod = self.pod
        try:
            instance = await self._launch(record)
        except (APIError, TransportError, OSError) as error:
            reason = "CreateContainerError" if isinstance(error, OSError) else "CreateContainerConfigError"
            record.record_start_failure(Waiting(reason, str(error)), self._now())
            self._record_event(pod, "Warning", "Failed", f"Error: {error}")
            return True
        except StartError as error:
            record.record_start_failure(Waiting(error.reason, str(error)), self._now(), error.retry_after)
            text = error.reason if isinstance(error, PullError) else str(error)
            self._record_event(pod, "Warning", "Failed", f"Error: {text}")
            return True
        record.record_start(instance)
        self._record_event(pod, "Normal", "Created", "Container created")
        if instance.exit is not None and instance.exit.reason == "StartError":
            self._record_event(pod, "Warning", "Failed", f"Error: {instance.exit.message}")
            return True
        self._record_event(pod, "Normal", "Started", "Container started")
        if self._node.environment is None:
            return True
        hook = None if record.spec.lifecycle is None else record.spec.lifecycle.post_start
        if hook is not None and not await self._run_post_start(record, hook):
            return True
        self._start_probes(record)
        return record.role != "sidecar" or record.is_started

    async def _launch(self, record: ContainerRecord) -> RuntimeContainer:
        runtime, environment, pod = self._node.runtime, self._node.environment, self.pod
        attempt = record.restart_count + (record.instance is not None)
        if environment is None:
            return await runtime.start(Launch(pod=pod, container=record.spec, attempt=attempt))
        await runtime.pull(pod, record.spec, lambda *event: self._record_event(pod, *event))
        volumes = self._volumes or {}
        return await runtime.start(await environment.launch(pod, record.spec, attempt, self.sandbox.ips, volumes))

    async def _run_post_start(self, record: ContainerRecord, hook: LifecycleHandler) -> bool:
        """Run the postStart hook; on failure stop the container and return False."""
        record.in_post_start = True
        try:
            succeeded = await self._node.hooks.run(self.pod, record.spec, hook, self.sandbox.address, None)
        finally:
            record.in_post_start = False
        if not succeeded:
            self._record_event(self.pod, "Warning", "FailedPostStartHook", "PostStartHook failed")
            self._record_event(self.pod, "Normal", "Killing", "FailedPostStartHook")
            await self._stop_instance(record, self.grace_period)
            self.observe_exits()
        return succeeded

    # Probes and exits

    def observe_exits(self) -> None:
        """Stop the probes of exited containers and read their termination messages."""
        environment = self._node.environment
        if environment is None:
            return
        for record in self.records.values():
            if record.instance is None or record.instance.exit is None:
                continue
            self._probes.stop(record.name)
            if not record.termination_message:
                attempt = record.instance.attempt
                file = environment.termination_message(self.pod, record.name, attempt)
                log = environment.log(self.pod, record.name, attempt)
                record.termination_message = termination_message(record.spec, record.instance.exit, file, log)

    def _resume_probes(self, record: ContainerRecord) -> None:
        """Start the probes of a recovered container, with the results that its status shows."""
        if not record.is_running or self._node.environment is None:
            return
        status = self.pod.status
        every = (*status.init_container_statuses, *status.container_statuses)
        known = next((each for each in every if each.name == record.name), None)
        self._start_probes(record)
        if known is not None and known.started:
            record.passed_startup = True
        if known is not None and known.ready:
            record.passed_readiness = True

    def _start_probes(self, record: ContainerRecord) -> None:
        spec, instance = record.spec, record.instance
        assert instance is not None
        record.passed_startup = spec.startup_probe is None
        record.passed_readiness = spec.readiness_probe is None
        age = (self._now() - instance.started_at).total_seconds()

        def on_result(kind: ProbeKind, success: bool) -> None:
            self._apply_probe_result(record, kind, success)

        def on_unhealthy(message: str) -> None:
            self._record_event(self.pod, "Warning", "Unhealthy", message)

        self._probes.start(self.pod, spec, self.sandbox.address, age, on_result, on_unhealthy)

    def _apply_probe_result(self, record: ContainerRecord, kind: ProbeKind, success: bool) -> None:
        if kind == "readiness":
            record.passed_readiness = success
        elif kind == "startup" and success:
            record.passed_startup = True
        elif not success and record.is_running and record.name not in self._stopping:
            self._kill_unhealthy(record, kind)
        self._on_change(self.pod)

    def _kill_unhealthy(self, record: ContainerRecord, kind: ProbeKind) -> None:
        probe = record.spec.liveness_probe if kind == "liveness" else record.spec.startup_probe
        grace = self.grace_period
        if probe is not None and probe.termination_grace_period_seconds is not None:
            grace = float(probe.termination_grace_period_seconds)
        policy = record.spec.restart_policy or self.pod.spec.restart_policy or "Always"
        text = f"Stopping container {record.name}"
        if record.role == "sidecar" or policy != "Never":
            text = f"Container {record.name} failed {kind} probe, will be restarted"
        self._stop_in_background(record, self._kill(record, text, grace))

    # Changes in place

    def _replace(self, record: ContainerRecord, reason: str = "definition changed, will be restarted") -> None:
        """Stop a container, to be started again whatever its restart policy is."""
        record.replace()
        text = f"Container {record.name} {reason}"
        self._stop_in_background(record, self._kill(record, text, self.grace_period))

    @property
    def has_resize(self) -> bool:
        """Whether the spec of the Pod asks for other resources than those that are allocated to it."""
        return self._allocation is not None and self._allocation.differs(self.seen)

    def allocate(self) -> None:
        """Allocate the resources of the Pod's spec; `resize` gives them to its containers."""
        assert self._allocation is not None, "resources of simulated containers are not allocated"
        self._allocation.allocate(self.seen)
        self.pod = self.seen
        for container in (*self.pod.spec.init_containers, *self.pod.spec.containers):
            if (record := self.records.get(container.name)) is not None:
                record.spec, record.resize_error = container, ""
        self._is_resizing, self._resize_at = True, 0.0
        self._record_event(self.pod, "Normal", "ResizeStarted", f"Pod resize started: {resize_summary(self.pod)}")

    def resize_delay(self) -> float | None:
        """Return the seconds until running containers are to be resized; None if all have their resources."""
        if not self._node.runtime.is_real:
            return None
        if any(record.needs_resize for record in self.records.values()):
            return max(self._resize_at - self._clock.monotonic(), 0.0)
        if self._is_resizing:
            self._is_resizing = False
            text = f"Pod resize completed: {resize_summary(self.pod)}"
            self._record_event(self.pod, "Normal", "ResizeCompleted", text)
        return None

    async def resize(self) -> None:
        """Give running containers their allocated resources, in place or by a restart, as their policy says."""
        pod, runtime = self.pod, self._node.runtime
        for record in [each for each in self.records.values() if each.needs_resize]:
            spec = record.spec
            if requires_restart(spec, record.resources):
                self._replace(record, "resize requires restart")
                continue
            if isinstance(runtime, Resizable) and record.instance is not None:
                try:
                    await runtime.resize(pod, spec, record.instance.attempt)
                except ResizeError as error:
                    record.resize_error = f"Error resizing container {spec.name}: {error}"
                    text = f"Pod resize error: {resize_summary(pod, record.resize_error)}"
                    self._record_event(pod, "Warning", "ResizeError", text)
                    self._resize_at = self._clock.monotonic() + _RESIZE_RETRY
                    return
            record.resources, record.resize_error = spec.resources, ""

    def _allocated(self, pod: Pod) -> Pod:
        return pod if self._allocation is None else self._allocation.applied_to(pod)

    # Stop

    @property
    def grace_period(self) -> float:
        return float(self.pod.spec.termination_grace_period_seconds or 0)

    async def stop_all(self, grace: float) -> None:
        """Stop all containers, sidecars last and in reverse order; then remove sandbox and volumes."""
        until = self._clock.monotonic() + grace
        self._probes.stop_all()
        for record in self.records.values():
            record.stays_ready = False
        ordinary = [each for each in self.records.values() if each.role != "sidecar" and each.is_running]
        if len(ordinary) == 1:
            await self._stop(ordinary[0], grace, until)
        else:
            await asyncio.gather(*(self._stop(each, grace, until) for each in ordinary))
        for record in reversed([each for each in self.records.values() if each.role == "sidecar"]):
            if record.is_running:
                await self._stop(record, grace, until)
        self.observe_exits()
        await self._node.runtime.discard(self.pod)
        if self._node.environment is not None:
            await self._node.environment.discard(self.pod)
        if self._node.volumes is not None:
            await self._node.volumes.unmount(self.pod)
        self.sandbox.mark_removed()

    async def restart_all(self) -> None:
        """Stop all containers and reset their records (RestartAllContainers)."""
        running = [each for each in self.records.values() if each.is_running and each.role != "ephemeral"]
        await asyncio.gather(*(self._kill(each, "killing", self.grace_period) for each in running))
        self.observe_exits()
        for record in self.records.values():
            if record.role != "ephemeral":
                record.reset()

    def _stop_in_background(self, record: ContainerRecord, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._stopping[record.name] = task
        task.add_done_callback(lambda _: self._stopping.pop(record.name, None))

    async def _stop(self, record: ContainerRecord, grace: float, until: float) -> None:
        self._record_event(self.pod, "Normal", "Killing", f"Stopping container {record.name}")
        left = until - self._clock.monotonic()
        await self._stop_instance(record, max(left, _MINIMUM_GRACE if grace else 0.0))

    async def _kill(self, record: ContainerRecord, message: str, grace: float) -> None:
        self._record_event(self.pod, "Normal", "Killing", message)
        await self._stop_instance(record, grace)

    async def _stop_instance(self, record: ContainerRecord, grace: float) -> None:
        """Run the preStop hook, whose time counts towards the grace period, and stop the container."""
        assert record.instance is not None
        hook = None if record.spec.lifecycle is None else record.spec.lifecycle.pre_stop
        if hook is not None and grace > 0 and record.is_running and self._node.environment is not None:
            began = self._clock.monotonic()
            if not await self._node.hooks.run(self.pod, record.spec, hook, self.sandbox.address, grace):
                self._record_event(self.pod, "Warning", "FailedPreStopHook", "PreStopHook failed")
            grace = max(grace - (self._clock.monotonic() - began), _MINIMUM_GRACE)
        await record.instance.stop(grace)

    def _now(self) -> Time:
        return Time.of(self._clock.now())


def _go_duration(seconds: float) -> str:
    """Format a duration as Go does: "10s", "2m40s", "5m0s"."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


@lru_cache(maxsize=1024)
def _outline(name: str, image: str | None, restart_policy: str | None) -> Container:
    """Return a container with these fields only; shared between Pods and never changed."""
    return Container(name=name, image=image, restart_policy=restart_policy)
