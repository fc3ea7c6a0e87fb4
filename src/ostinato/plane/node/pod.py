"""One Pod's life on a node: what is to be done next, and what is known of it.

- `step` looks at what is wanted and what runs, and begins what closes the gap. It never waits: what takes time goes on
  beside it, one thing at a time, and calls for the next step when it is done.
- Init containers run one after the other, each until it succeeds; sidecars among them stay. Then the others run
  together. A container that ends is started again if its policy says so: at once the first time, after 10 s the second,
  then twice as long each time, up to five minutes.
- A Pod that is deleted, or is over, is ended: first its containers, then its sidecars, the last one first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.containers import Record, Waiting, records_of, restarts
from ostinato.plane.node.runtimes import Launch, Runtime, StartError
from ostinato.plane.node.status import Knowledge
from ostinato.world import Clock

Tell = Callable[[Pod, str, str, str], None]
"""`tell(pod, type, reason, message)` makes an event."""

_MINIMUM_GRACE = 2.0  # seconds that are left for SIGTERM, however long hooks took


class PodLife:
    def __init__(self, pod: Pod, host_ip: str, runtime: Runtime, clock: Clock, tell: Tell) -> None:
        self.pod = pod  # as it was last seen
        self.records = records_of(pod)
        self.known = Knowledge(host_ip=host_ip, started_at=pod.status.start_time or Time.of(clock.now()))
        self.is_over = False  # everything has ended, and will not be started again
        self._runtime = runtime
        self._clock = clock
        self._tell = tell if runtime.tells else _nobody
        self._task: asyncio.Task[None] | None = None  # what is being done
        self._ending: float | None = None  # the grace period with which it is being ended
        self._changed: Callable[[Pod], None] = lambda _: None

    def listen(self, changed: Callable[[Pod], None]) -> None:
        """Whom to call when it is time for the next step."""
        self._changed = changed

    async def recover(self) -> None:
        """Find again what an agent before this one has started."""
        for name, running in (await self._runtime.recover(self.pod)).items():
            if name in self.records:
                self.records[name].running = running
                self.known.has_sandbox = True
        if self.known.has_sandbox:
            self.known.pod_ip = await self._address()

    def see(self, pod: Pod) -> None:
        """The Pod has changed."""
        self.pod = pod

    # What is next

    def step(self, ending: float | None = None) -> float | None:
        """Begin what is to be done next; the seconds after which to look again, if that is known.

        `ending`: the grace period of a Pod that is to go.
        """
        if self.is_over:
            return None
        if ending is not None:
            self._end(ending)
            return None
        if self.is_busy:
            return None
        late = self._deadline_left()
        if late is not None and late <= 0:
            self.known.end = (
                "Failed",
                "DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline",
            )
            self._end(float(self.pod.spec.termination_grace_period_seconds or 0))
            return None
        due = self._next()
        waits = [each for each in (late, due) if each is not None]
        return min(waits) if waits else None

    @property
    def is_busy(self) -> bool:
        """Whether something is being done."""
        return self._task is not None and not self._task.done()

    def _deadline_left(self) -> float | None:
        seconds = self.pod.spec.active_deadline_seconds
        return None if seconds is None else seconds - (self._now() - self.known.started_at).total_seconds()

    def _next(self) -> float | None:
        """Start what is to run and may run now; the seconds until the next may."""
        policy = self.pod.spec.restart_policy or "Always"
        starts: list[Record] = []
        waits: list[float] = []

        def wants(record: Record) -> None:
            left = self._backoff_left(record)
            if left > 0:
                waits.append(left)
            else:
                starts.append(record)

        if self._is_done(policy):
            self._end(float(self.pod.spec.termination_grace_period_seconds or 0))
            return None
        initialised = self._initialise(policy, wants)
        if initialised is None:  # an init container has failed for good
            self._end(float(self.pod.spec.termination_grace_period_seconds or 0))
            return None
        if initialised:
            for record in self.records.values():
                if record.role == "main" and not record.is_running:
                    if record.exit is None or restarts(record, policy):
                        wants(record)
                elif record.role == "ephemeral" and record.running is None:
                    wants(record)
        if starts:
            self._begin(self._start(starts))
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
        return any(record.role == "main" and (record.running or record.before) for record in self.records.values())

    def _is_done(self, policy: str) -> bool:
        return all(
            record.exit is not None and not restarts(record, policy)
            for record in self.records.values()
            if record.role == "main"
        )

    def _backoff_left(self, record: Record) -> float:
        due = record.due()
        left = 0.0 if due is None else (due - self._now()).total_seconds()
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
        self._changed(self.pod)

    async def _start(self, records: list[Record]) -> None:
        if not self.known.has_sandbox:
            self.known.pod_ip = await self._address()
            self.known.has_sandbox = True
        for record in records:
            attempt = record.restarts + (record.running is not None)
            try:
                running = await self._runtime.start(Launch(pod=self.pod, container=record.spec, attempt=attempt))
            except StartError as error:
                record.failed(Waiting(error.reason, str(error)), self._now())
                self._tell(self.pod, "Warning", "Failed", f"Error: {error}")
                continue
            record.started(running)
            self._tell(self.pod, "Normal", "Created", "Container created")
            self._tell(self.pod, "Normal", "Started", "Container started")

    async def _address(self) -> str:
        return self.known.host_ip if self.pod.spec.host_network else await self._runtime.address(self.pod)

    def _end(self, grace: float) -> None:
        """End all containers within a grace period; a shorter one than before counts at once."""
        if self._ending is not None and (self.is_busy and self._ending <= grace):
            return
        if self._task is not None:
            self._task.cancel()
        self._ending = grace
        self._begin(self._stop_all(grace))

    async def _stop_all(self, grace: float) -> None:
        until = self._clock.monotonic() + grace
        ordinary = [each for each in self.records.values() if each.role != "sidecar" and each.is_running]
        if len(ordinary) == 1:
            await self._stop(ordinary[0], until)
        else:
            await asyncio.gather(*(self._stop(each, until) for each in ordinary))
        for record in reversed([each for each in self.records.values() if each.role == "sidecar"]):
            if record.is_running:
                await self._stop(record, until)
        self.known.has_sandbox = False
        await self._runtime.discard(self.pod)
        self.is_over = True

    async def _stop(self, record: Record, until: float) -> None:
        assert record.running is not None
        self._tell(self.pod, "Normal", "Killing", f"Stopping container {record.name}")
        grace = until - self._clock.monotonic()
        await record.running.stop(max(grace, _MINIMUM_GRACE if self._ending else 0.0))

    def _now(self) -> Time:
        return Time.of(self._clock.now())


def _short(seconds: float) -> str:
    """As Go writes a duration: "10s", "2m40s", "5m0s"."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _nobody(pod: Pod, kind: str, reason: str, message: str) -> None: ...
