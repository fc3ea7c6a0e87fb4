"""Pod worker: brings one Pod to its desired state, and terminates it.

- `sync` compares desired and actual state and begins the next operation. It never waits: one operation at a time runs
  as a task, and `on_change` requests the next sync when it is done.
- Init containers run one after the other until each succeeds; sidecars among them keep running. Then the main
  containers run together. An exited container is restarted by its restart policy: immediately the first time, then
  after 10 s, doubled each time up to five minutes.
- A Pod that is deleted or completed is terminated: main containers first, then sidecars in reverse order.
- Life cycle: syncing, terminating (`terminate` was requested), terminated (`is_terminated`).

The worker decides; `PodContainers`, which it owns, holds the state of the containers and carries operations out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Pod, PodStatus
from ostinato.plane.csi import CsiError
from ostinato.plane.node.admission import Rejection
from ostinato.plane.node.containers.allocation import DEFERRED, PendingResize, reported_resize
from ostinato.plane.node.containers.container_record import ContainerRecord, requests_restart_of_all, should_restart
from ostinato.plane.node.containers.pod_containers import PodContainers, PodEventRecorder
from ostinato.plane.node.containers.resize import resize_summary
from ostinato.plane.node.local_node import NodeComponents
from ostinato.plane.node.pod_status import PodWorkerState, has_started, merged, pod_status

_logger = logging.getLogger(__name__)

VOLUME_SYNC: Final = 15.0  # seconds between two checks of a Pod's volumes
_EVICTION_GRACE: Final = 1.0
_RETRY_SECONDS: Final = 10.0  # before the next sync after an operation failed unexpectedly
_DEADLINE_EXCEEDED: Final = "Pod was active on the node longer than the specified deadline"


class PodWorker:
    """`on_change(pod)` is called when the Pod needs another sync."""

    def __init__(
        self, pod: Pod, node: NodeComponents, record_event: PodEventRecorder, on_change: Callable[[Pod], None]
    ) -> None:
        self._node = node
        self._clock = node.clock
        self._record_event = record_event if node.runtime.is_real else _discard_event
        self._on_change = on_change
        self._containers = PodContainers(pod, node, self._record_event, on_change)
        self._state = PodWorkerState(
            sandbox=self._containers.sandbox,
            started_at=self._containers.started_at,
            details=node.runtime.is_real,
            pending_resize=reported_resize(pod) if node.runtime.is_real else None,
        )
        self._task: asyncio.Task[None] | None = None  # the operation that is under way
        self._grace: float | None = None  # grace period of the termination that is under way
        self._volumes_checked = self._clock.monotonic()

    @property
    def pod(self) -> Pod:
        """The Pod as last seen."""
        return self._containers.seen

    @property
    def allocated(self) -> Pod:
        """The Pod with the resources that are allocated to it."""
        return self._containers.pod

    @property
    def started_at(self) -> Time:
        return self._state.started_at

    @property
    def is_busy(self) -> bool:
        """Whether an operation is under way."""
        return self._task is not None and not self._task.done()

    @property
    def is_terminated(self) -> bool:
        """Whether all containers have ended and none will be restarted."""
        return self._state.is_terminated

    def status(self) -> PodStatus:
        """Return the Pod's current status, for the status manager."""
        pod = self.pod
        return merged(pod.status, pod_status(pod, self._containers.records, self._state, self._now()))

    async def recover(self) -> None:
        """Take over the containers that an earlier agent has started."""
        await self._containers.recover()

    def update(self, pod: Pod) -> None:
        """Apply a new version of the Pod."""
        self._containers.update(pod)

    def compact(self) -> None:
        """Reduce memory while no operation is under way: keep only what identifies the Pod until the next `update`."""
        if not self.is_busy:
            self._task = None  # it references the Pod
            self._containers.compact()

    @property
    def is_compacted(self) -> bool:
        return not self.pod.spec.containers

    async def sync_volumes(self) -> float | None:
        """Refresh projected volumes and evict the Pod if it exceeds limits; return the seconds until the next check."""
        volumes = self._node.volumes
        if volumes is None or not self.pod.spec.volumes or self.is_terminated:
            return None
        left = self._volumes_checked + VOLUME_SYNC - self._clock.monotonic()
        if left > 0:
            return left
        self._volumes_checked = self._clock.monotonic()
        for name in await volumes.refresh(self.pod, self._state.started_at):
            text = f'MountVolume.NodeExpandVolume succeeded for volume "{name}"'
            self._record_event(self.pod, "Normal", "FileSystemResizeSuccessful", text)
        message = await volumes.eviction_message(self.pod)
        if message and self._grace is None:
            self._record_event(self.pod, "Warning", "Evicted", message)
            self._state.failure = ("Failed", "Evicted", message)
            self._terminate(_EVICTION_GRACE)
        return VOLUME_SYNC

    # Resize

    @property
    def has_resize(self) -> bool:
        """Whether the Pod asks for other resources than those that are allocated to it."""
        return self._containers.has_resize

    @property
    def pending_since(self) -> Time | None:
        """When the resize became pending; None if none is."""
        pending = self._state.pending_resize
        return None if pending is None else pending.since

    def allocate(self) -> None:
        """Allocate the resources that the Pod asks for."""
        self._state.pending_resize = None
        self._containers.allocate()

    def defer(self, rejection: Rejection) -> bool:
        """Report that there is no room for the resize; return whether the report is another one than before."""
        pod, old, now = self.pod, self._state.pending_resize, self._now()
        generation, message = pod.metadata.generation or 0, rejection.message
        if old is not None and (old.generation, old.message) == (generation, message):
            return False
        since = now if old is None else old.since
        self._state.pending_resize = PendingResize(DEFERRED, message, generation, since, now)
        if old is None or old.generation != generation:
            text = f"Pod resize {rejection.reason}: {resize_summary(pod, message)}"
            self._record_event(pod, "Warning", "ResizeDeferred", text)
        return True

    def withdraw_resize(self) -> None:
        """Forget a pending resize that the Pod no longer asks for."""
        self._state.pending_resize = None

    # Sync

    def terminate(self, grace: float) -> None:
        """Stop all containers within a grace period; a shorter one than before takes effect immediately."""
        self._containers.observe_exits()
        if not self.is_terminated:
            self._terminate(grace)

    def sync(self) -> float | None:
        """Begin the next operation; return the seconds until another sync is needed, if known."""
        self._containers.observe_exits()
        if self.is_terminated or self.is_busy:
            return None
        deadline = self._deadline_left()
        if deadline is not None and deadline <= 0:
            self._record_event(self.pod, "Normal", "DeadlineExceeded", _DEADLINE_EXCEEDED)
            self._state.failure = ("Failed", "DeadlineExceeded", _DEADLINE_EXCEEDED)
            self._terminate(self._containers.grace_period)
            return None
        delays = [each for each in (deadline, self._sync_containers()) if each is not None]
        return min(delays) if delays else None

    def _deadline_left(self) -> float | None:
        seconds = self.pod.spec.active_deadline_seconds
        return None if seconds is None else seconds - (self._now() - self._state.started_at).total_seconds()

    def _sync_containers(self) -> float | None:
        """Start the containers that may run now; return the seconds until the next may."""
        policy = self.pod.spec.restart_policy or "Always"
        records = self._containers.records
        starts: list[ContainerRecord] = []
        delays: list[float] = []

        def request_start(record: ContainerRecord) -> None:
            left = self._containers.start_delay(record)
            if left > 0:
                delays.append(left)
            else:
                starts.append(record)

        if any(requests_restart_of_all(record) for record in records.values()):
            self._state.restarting_all = True
            self._begin(self._restart_all())
            return None
        if self._is_completed(policy):
            self._terminate(self._containers.grace_period)
            return None
        resize = self._containers.resize_delay()
        if resize == 0:
            self._begin(self._containers.resize())
            return None
        if resize is not None:
            delays.append(resize)
        initialized = self._sync_init_containers(policy, request_start)
        if initialized is None:  # an init container has failed permanently
            self._terminate(self._containers.grace_period)
            return None
        for record in records.values():
            if record.role == "ephemeral":
                if record.instance is None and self._state.sandbox.is_ready:
                    request_start(record)
            elif record.role != "main" or not initialized or record.is_running:
                continue
            elif record.exit is None or should_restart(record, policy):
                request_start(record)
        if starts:
            self._begin(self._containers.start(starts))
        return min(delays) if delays else None

    def _sync_init_containers(self, policy: str, request_start: Callable[[ContainerRecord], None]) -> bool | None:
        """Return whether the main containers may run; None if they never will."""
        main_started = has_started(self._containers.records.values())
        for record in self._containers.records.values():
            if record.role == "sidecar":
                if not record.is_running:
                    request_start(record)
                if not record.is_started and not main_started:
                    return False
            elif record.role == "init" and not main_started:
                if record.is_running:
                    return False
                if record.exit is None:
                    request_start(record)
                    return False
                if record.exit.code != 0:
                    if not should_restart(record, policy):
                        return None
                    request_start(record)
                    return False
        return True

    def _is_completed(self, policy: str) -> bool:
        return all(
            record.exit is not None and not should_restart(record, policy)
            for record in self._containers.records.values()
            if record.role == "main"
        )

    # Operations

    def _begin(self, work: Awaitable[None]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(work))

    async def _run(self, work: Awaitable[None]) -> None:
        try:
            await work
        except CsiError as error:
            meta = self.pod.metadata
            _logger.warning("volume not unmounted, retrying pod=%s/%s error=%s", meta.namespace, meta.name, error)
            await self._clock.sleep(_RETRY_SECONDS)
        except Exception:
            meta = self.pod.metadata
            _logger.exception("operation failed, retrying pod=%s/%s", meta.namespace, meta.name)
            await self._clock.sleep(_RETRY_SECONDS)
        self._on_change(self.pod)

    def _terminate(self, grace: float) -> None:
        if self._grace is not None and (self.is_busy and self._grace <= grace):
            return
        if self._task is not None:
            self._task.cancel()
        self._grace = grace
        self._begin(self._stop_all(grace))

    async def _restart_all(self) -> None:
        await self._containers.restart_all()
        self._state.restarting_all = False

    async def _stop_all(self, grace: float) -> None:
        await self._containers.stop_all(grace)
        self._state.is_terminated = True

    def _now(self) -> Time:
        return Time.of(self._clock.now())


def _discard_event(pod: Pod, kind: str, reason: str, message: str) -> None: ...
