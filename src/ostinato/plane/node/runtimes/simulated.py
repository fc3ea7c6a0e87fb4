"""The simulated runtime: containers are state machines with timers; no process runs.

A thousand nodes with ten thousand Pods fit into one process. The behaviour of containers can be scripted, see `script`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ostinato.api.owners import controller_of
from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, Pod
from ostinato.plane.node.pod_identity import pod_identity
from ostinato.plane.node.runtimes import EventRecorder, ExecError, Exit, Launch, OnPodChange, Session, StartError, Usage
from ostinato.plane.node.runtimes.script import ANNOTATION, AT_ONCE, OF_A_JOB, STEADY, Script, ScriptError, parse
from ostinato.plane.node.runtimes.simulated_addresses import CidrAddresses, CidrsOf, SimulatedAddresses
from ostinato.world import Clock, World
from ostinato.world.clock import Timer

_TERMINATED: Final = 143  # exit code after SIGTERM
_KILLED: Final = 137


class SimulatedRuntime:
    """Runtime of simulated containers."""

    version = "simulated://1"
    is_real = False

    def __init__(self, world: World, cidrs_of: CidrsOf | None = None) -> None:
        """`cidrs_of`: the Pod CIDRs of a node, which Pods get addresses of. Defaults to a range of its own."""
        self._world = world
        self._changed: OnPodChange = lambda _: None
        self._addresses = SimulatedAddresses() if cidrs_of is None else CidrAddresses(cidrs_of)

    def listen(self, changed: OnPodChange) -> None:
        self._changed = changed

    async def addresses(self, pod: Pod, handler: str = "") -> Sequence[str]:  # noqa: ARG002
        return self._addresses.of(pod)

    async def pull(self, pod: Pod, container: Container, record_event: EventRecorder) -> None: ...

    async def start(self, launch: Launch) -> SimulatedContainer:
        pod = launch.pod
        script = _script_of(pod, launch.container.name)
        if script.holds:
            raise StartError("ContainerCreating", "")
        if script.starts_after:
            await self._world.clock.sleep(script.starts_after)
        started = SimulatedContainer(self._world.ids.uid(), Time.of(self._world.clock.now()), script, self._world.clock)
        started.attempt = launch.attempt
        identity = pod_identity(pod)
        started.live(lambda: self._changed(identity))
        return started

    async def recover(self, pod: Pod) -> Mapping[str, SimulatedContainer]:
        """Restore containers from the Pod's status, the only record of them."""
        clock = self._world.clock
        if pod.status.pod_ip:
            self._addresses.keep(pod)
        if not pod.status.container_statuses:
            return {}
        found = {}
        identity = pod_identity(pod)
        for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            state, script = status.state, _script_of(pod, status.name)
            container_id = (status.container_id or "").removeprefix(_SCHEME)
            if state is not None and state.running is not None and state.running.started_at is not None:
                running = SimulatedContainer(container_id, state.running.started_at, script, clock)
                running.attempt = status.restart_count
                running.live(lambda: self._changed(identity))
                found[status.name] = running
            elif state is not None and state.terminated is not None:
                ended = state.terminated
                begun, end = ended.started_at or Time.of(clock.now()), ended.finished_at or Time.of(clock.now())
                over = SimulatedContainer(container_id, begun, script, clock)
                over.attempt = status.restart_count
                over.exit = Exit(code=ended.exit_code, at=end, reason=ended.reason or "", message=ended.message or "")
                found[status.name] = over
        return found

    async def discard(self, pod: Pod) -> None:
        self._addresses.free(pod)

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:  # noqa: ARG002
        raise ExecError("simulated containers do not run commands")

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:  # noqa: ARG002
        raise ExecError("simulated containers have no output")

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:  # noqa: ARG002
        return {}


_SCHEME: Final = "simulated://"


class SimulatedContainer:
    image = ""
    user = None

    def __init__(self, name: str, started_at: Time, script: Script, clock: Clock) -> None:
        self.id = _SCHEME + name
        self.image_id = ""
        self.attempt = 0
        self.started_at = started_at
        self.ready = False
        self.exit: Exit | None = None
        self._script = script
        self._clock = clock
        self._timers: list[Timer] = []
        self._changed: Callable[[], None] = _nothing

    def live(self, changed: Callable[[], None]) -> None:
        """Start the timers of the script, from the container's age."""
        self._changed = changed
        script = self._script
        past = (self._clock.now() - self.started_at).total_seconds()
        if script.ready_after is not None:
            if script.ready_after <= past or script.ready_after == 0:
                self.ready = True
            else:
                self._timers.append(self._clock.timer(script.ready_after - past, self._get_ready))
        if script.ends_after is not None:
            self._timers.append(self._clock.timer(max(script.ends_after - past, 0.0), self._end, script.code))

    async def stop(self, grace: float) -> None:
        if self.exit is not None:
            return
        if self._script.lingers:
            await self._clock.sleep(grace)
            self._end(_KILLED)
        else:
            self._end(_TERMINATED)

    def _get_ready(self) -> None:
        self.ready = True
        self._changed()

    def _end(self, code: int) -> None:
        if self.exit is None:
            for timer in self._timers:
                timer.cancel()
            self.exit = Exit(code=code, at=max(Time.of(self._clock.now()), self.started_at))
            self._changed()


def _script_of(pod: Pod, container: str) -> Script:
    for each in pod.spec.init_containers:
        if each.name == container:
            return STEADY if each.restart_policy == "Always" else AT_ONCE
    text = pod.metadata.annotations.get(ANNOTATION)
    if text is None:
        owner = controller_of(pod)
        return OF_A_JOB if owner is not None and owner.kind == "Job" else STEADY
    try:
        return parse(text)
    except ScriptError as error:
        raise StartError("CreateContainerConfigError", f"annotation {ANNOTATION}: {error}") from None


def _nothing() -> None: ...
