"""One Pod's life on a node: what is to be done next, and what is known of it.

- `step` looks at what is wanted and what runs, and begins what closes the gap. It never waits: what takes time goes on
  beside it, one thing at a time, and calls for the next step when it is done.
- Init containers run one after the other, each until it succeeds; sidecars among them stay. Then the others run
  together. A container that ends is started again if its policy says so: at once the first time, after 10 s the second,
  then twice as long each time, up to five minutes.
- A Pod that is deleted, or is over, is ended: first its containers, then its sidecars, the last one first.

How containers are started and stopped is in `handling`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Final

from ostinato.api.meta import ObjectMeta
from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, Pod, PodSpec
from ostinato.plane.node.containers.container_state import (
    Record,
    Waiting,
    asks_for_all,
    ephemeral_record,
    records_of,
    restarts,
)
from ostinato.plane.node.containers.lifecycle import EventRecorder, Handler, Quarters
from ostinato.plane.node.pod_status import Knowledge, has_begun

TEND_EVERY: Final = 15.0  # seconds between two looks at a Pod's volumes
_EVICTION_GRACE: Final = 1.0
_TOO_LONG: Final = "Pod was active on the node longer than the specified deadline"


class PodLife:
    def __init__(self, pod: Pod, quarters: Quarters, tell: EventRecorder) -> None:
        clock = quarters.clock
        self.pod = pod  # as it was last seen
        self.records = records_of(pod)
        self.known = Knowledge(
            host_ip=quarters.host_ip,
            started_at=pod.status.start_time or Time.of(clock.now()),
            details=quarters.runtime.is_real,
        )
        self.is_over = False  # everything has ended, and will not be started again
        self._quarters = quarters
        self._clock = clock
        self._tell = tell if quarters.runtime.is_real else _nobody
        self._handler = Handler(self, quarters, self._tell)
        self._task: asyncio.Task[None] | None = None  # what is being done
        self._ending: float | None = None  # the grace period with which it is being ended
        self._tended = clock.monotonic()
        self._changed: Callable[[Pod], None] = lambda _: None

    def listen(self, changed: Callable[[Pod], None]) -> None:
        """Whom to call when it is time for the next step."""
        self._changed = changed

    def changed(self) -> None:
        """Something has happened that a status should tell."""
        self._changed(self.pod)

    async def recover(self) -> None:
        """Find again what an agent before this one has started."""
        for name, running in (await self._quarters.runtime.recover(self.pod)).items():
            if name in self.records:
                record = self.records[name]
                record.running = running
                record.restarts = max(record.restarts, running.attempt)
                self.known.has_sandbox = True
                self._handler.recovered(record)
        if self.known.has_sandbox:
            self.known.pod_ip = await self._handler.address()

    def see(self, pod: Pod) -> None:
        """The Pod has changed."""
        before, self.pod = self.pod, pod
        if pod.metadata.generation == before.metadata.generation:
            return
        resized = False
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            record = self.records.get(container.name)
            if record is not None:
                other = record.spec.image != container.image
                resized |= record.spec.resources != container.resources
                record.spec = container
                if other and record.is_running and record.role in ("main", "sidecar"):
                    self._handler.replace(record)
        if resized:
            self._handler.resize(pod)
        for ephemeral in pod.spec.ephemeral_containers:
            if ephemeral.name not in self.records:
                self.records[ephemeral.name] = ephemeral_record(ephemeral)

    def rest(self) -> None:
        """Hold no more of the Pod than what tells it from others, until it is seen again: there may be thousands."""
        if self.is_busy:
            return
        self._task = None  # it remembers what was written where it began
        metadata, spec = self.pod.metadata, self.pod.spec
        self.pod = Pod(
            metadata=ObjectMeta(
                name=metadata.name,
                namespace=metadata.namespace,
                uid=metadata.uid,
                resource_version=metadata.resource_version,
            ),
            spec=PodSpec(containers=[], node_name=spec.node_name, readiness_gates=spec.readiness_gates),
        )
        for record in self.records.values():
            record.spec = _outline(record.name, record.spec.image, record.spec.restart_policy)

    @property
    def is_at_rest(self) -> bool:
        return not self.pod.spec.containers

    async def tend(self) -> float | None:
        """Keep the Pod's volumes up to date and within their bounds; the seconds after which to do that again."""
        supplies = self._quarters.supplies
        if supplies is None or not self.pod.spec.volumes or self.is_over:
            return None
        left = self._tended + TEND_EVERY - self._clock.monotonic()
        if left > 0:
            return left
        self._tended = self._clock.monotonic()
        await supplies.refresh(self.pod, self.known.started_at)
        complaint = await supplies.overfull(self.pod)
        if complaint and self._ending is None:
            self._tell(self.pod, "Warning", "Evicted", complaint)
            self.known.end = ("Failed", "Evicted", complaint)
            self._end(_EVICTION_GRACE)
        return TEND_EVERY

    # What is next

    def step(self, ending: float | None = None) -> float | None:
        """Begin what is to be done next; the seconds after which to look again, if that is known.

        `ending`: the grace period of a Pod that is to go.
        """
        self._handler.notice_ends()
        if self.is_over:
            return None
        if ending is not None:
            self._end(ending)
            return None
        if self.is_busy:
            return None
        late = self._deadline_left()
        if late is not None and late <= 0:
            self._tell(self.pod, "Normal", "DeadlineExceeded", _TOO_LONG)
            self.known.end = ("Failed", "DeadlineExceeded", _TOO_LONG)
            self._end(self._own_grace)
            return None
        due = self._next()
        waits = [each for each in (late, due) if each is not None]
        return min(waits) if waits else None

    @property
    def is_busy(self) -> bool:
        """Whether something is being done."""
        return self._task is not None and not self._task.done()

    @property
    def _own_grace(self) -> float:
        return float(self.pod.spec.termination_grace_period_seconds or 0)

    def _deadline_left(self) -> float | None:
        seconds = self.pod.spec.active_deadline_seconds
        return None if seconds is None else seconds - (self.now() - self.known.started_at).total_seconds()

    def _next(self) -> float | None:
        """Start what is to run and may run now; the seconds until the next may."""
        policy = self.pod.spec.restart_policy or "Always"
        starts: list[Record] = []
        waits: list[float] = []

        def wants(record: Record) -> None:
            left = max(self._backoff_left(record), self._handler.retry_left())
            if left > 0:
                waits.append(left)
            else:
                starts.append(record)

        if any(asks_for_all(record) for record in self.records.values()):
            self.known.restarting_all = True
            self._begin(self._restart_all())
            return None
        if self._is_done(policy):
            self._end(self._own_grace)
            return None
        initialised = self._initialise(policy, wants)
        if initialised is None:  # an init container has failed for good
            self._end(self._own_grace)
            return None
        for record in self.records.values():
            if record.role == "ephemeral":
                if record.running is None and self.known.has_sandbox:
                    wants(record)
            elif record.role != "main" or not initialised or record.is_running:
                continue
            elif record.exit is None or restarts(record, policy):
                wants(record)
        if starts:
            self._begin(self._handler.start(starts))
        return min(waits) if waits else None

    def _initialise(self, policy: str, wants: Callable[[Record], None]) -> bool | None:
        """Whether the others may run; None if they never will."""
        for record in self.records.values():
            if record.role == "sidecar":
                if not record.is_running:
                    wants(record)
                if not record.is_started and not self._main_has_run:
                    return False
            elif record.role == "init" and not self._main_has_run:
                if record.is_running:
                    return False
                if record.exit is None:
                    wants(record)
                    return False
                if record.exit.code != 0:
                    if not restarts(record, policy):
                        return None
                    wants(record)
                    return False
        return True

    @property
    def _main_has_run(self) -> bool:
        return has_begun(self.records.values())

    def _is_done(self, policy: str) -> bool:
        return all(
            record.exit is not None and not restarts(record, policy)
            for record in self.records.values()
            if record.role == "main"
        )

    def _backoff_left(self, record: Record) -> float:
        due = record.due()
        left = 0.0 if due is None else (due - self.now()).total_seconds()
        if left > 0 and record.waiting is None:
            pod = self.pod.metadata
            whose = f"{pod.name}_{pod.namespace}({pod.uid})"
            text = f"back-off {_short(record.backoff)} restarting failed container={record.name} pod={whose}"
            record.waiting = Waiting("CrashLoopBackOff", text)
            message = f"Back-off restarting failed container {record.name} in pod {whose}"
            self._tell(self.pod, "Warning", "BackOff", message)
        return left

    # Doing it

    def _begin(self, work: Awaitable[None]) -> None:
        self._task = asyncio.get_running_loop().create_task(self._do(work))

    async def _do(self, work: Awaitable[None]) -> None:
        await work
        self.changed()

    def _end(self, grace: float) -> None:
        """End all containers within a grace period; a shorter one than before counts at once."""
        if self._ending is not None and (self.is_busy and self._ending <= grace):
            return
        if self._task is not None:
            self._task.cancel()
        self._ending = grace
        self._begin(self._stop_all(grace))

    async def _restart_all(self) -> None:
        await self._handler.stop_for_restart()
        for record in self.records.values():
            if record.role != "ephemeral":
                record.begin_anew()
        self.known.restarting_all = False

    async def _stop_all(self, grace: float) -> None:
        await self._handler.stop_all(grace)
        self.known.has_sandbox = False
        self.known.is_gone = True
        self.is_over = True

    def now(self) -> Time:
        return Time.of(self._clock.now())


def _short(seconds: float) -> str:
    """As Go writes a duration: "10s", "2m40s", "5m0s"."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _nobody(pod: Pod, kind: str, reason: str, message: str) -> None: ...


@lru_cache(maxsize=1024)
def _outline(name: str, image: str | None, restart_policy: str | None) -> Container:
    """A container of which just this is known; shared, and never changed."""
    return Container(name=name, image=image, restart_policy=restart_policy)
