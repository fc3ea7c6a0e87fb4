"""A fake runtime that is controlled by the test, for the agent in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.stage.plane import Stage, on_stage

from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, ContainerStatus, ContainerUser, Pod, PodSpec
from ostinato.plane.node import fleet
from ostinato.plane.node.admission import NodeInfo
from ostinato.plane.node.environment.object_reader import ObjectReader
from ostinato.plane.node.local_node import LocalNode
from ostinato.plane.node.node_config import NodeConfig
from ostinato.plane.node.registration.node_status import Machine
from ostinato.plane.node.runtimes import EventRecorder, ExecError, Exit, Launch, OnPodChange, Session, Usage
from ostinato.plane.node.volumes.csi.attachments import VolumesInUse
from ostinato.plane.node.volumes.csi.drivers import NodeDrivers
from ostinato.plane.node.volumes.csi.volumes import CsiVolumes
from ostinato.world import Clock

Answer = tuple[int, bytes] | float
"""Of a command: its code and output, or the seconds that it takes to end."""


class FakeContainer:
    def __init__(self, launch: Launch, clock: Clock, changed: Callable[[], None]) -> None:
        self.launch = launch
        self.id = f"fake://{launch.container.name}-{launch.attempt}"
        self.image = ""
        self.image_id = "fake"
        self.attempt = launch.attempt
        self.user: ContainerUser | None = None
        self.started_at = Time.of(clock.now())
        self.ready = True
        self.exit: Exit | None = None
        self.stopped_with: list[float] = []
        self._clock = clock
        self._changed = changed

    def end(self, code: int, reason: str = "", message: str = "") -> None:
        self.exit = Exit(code=code, at=Time.of(self._clock.now()), reason=reason, message=message)
        self.ready = False
        self._changed()

    async def stop(self, grace: float) -> None:
        self.stopped_with.append(grace)
        if self.exit is None:
            self.end(143)


class FakeSession:
    def __init__(self, answer: Answer, clock: Clock) -> None:
        self._answer = answer
        self._clock = clock
        self._read = False

    async def read(self) -> tuple[int, bytes] | None:
        if isinstance(self._answer, float):
            await self._clock.sleep(self._answer)
            return None
        if self._read or not self._answer[1]:
            return None
        self._read = True
        return 1, self._answer[1]

    async def write(self, data: bytes) -> None: ...

    async def close_input(self) -> None: ...

    async def resize(self, width: int, height: int) -> None: ...

    async def wait(self) -> int:
        return 0 if isinstance(self._answer, float) else self._answer[0]

    async def close(self) -> None: ...


class FakeRuntime:
    version = "fake://1"
    is_real = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed: OnPodChange = lambda _: None
        self.started: list[FakeContainer] = []
        self.commands: list[tuple[str, tuple[str, ...]]] = []  # container and command, as they were run
        self.answers: dict[tuple[str, ...], Answer | Exception] = {}  # by command; others succeed
        self.on_start: Callable[[FakeContainer], None] = lambda _: None
        self.handlers: list[str] = []  # of the sandboxes
        self.refuse: Exception | None = None
        self.refuse_resize: Exception | None = None
        self.resize_takes = self.pull_takes = 0.0  # seconds
        self.resized: list[tuple[Container, int]] = []  # containers as they were resized, and their attempts

    def of(self, name: str) -> FakeContainer:
        """The newest of that name."""
        return next(each for each in reversed(self.started) if each.launch.container.name == name)

    def listen(self, changed: OnPodChange) -> None:
        self._changed = changed

    async def addresses(self, pod: Pod, handler: str = "") -> Sequence[str]:
        self.handlers.append(handler)
        return ["10.0.0.9"]

    async def pull(self, pod: Pod, container: Container, record_event: EventRecorder) -> None:
        await self._clock.sleep(self.pull_takes)
        record_event("Normal", "Pulled", "there")

    async def start(self, launch: Launch) -> FakeContainer:
        if self.refuse is not None:
            raise self.refuse
        container = FakeContainer(launch, self._clock, lambda: self._changed(launch.pod))
        self.started.append(container)
        self.on_start(container)
        return container

    async def recover(self, pod: Pod) -> Mapping[str, FakeContainer]:
        mine = [each for each in self.started if each.launch.pod.metadata.uid == pod.metadata.uid]
        return {each.launch.container.name: each for each in mine}

    async def resize(self, pod: Pod, container: Container, attempt: int) -> None:
        await self._clock.sleep(self.resize_takes)
        if self.refuse_resize is not None:
            raise self.refuse_resize
        self.resized.append((container, attempt))

    async def discard(self, pod: Pod) -> None: ...

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        self.commands.append((container, tuple(command)))
        answer = self.answers.get(tuple(command), (0, b""))
        if isinstance(answer, Exception):
            raise answer
        return FakeSession(answer, self._clock)

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:
        raise ExecError("nothing to attach to")

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:
        return {}


class NodeStage:
    """A stage with one node, whose runtime is a fake."""

    def __init__(self, stage: Stage, runtime: FakeRuntime) -> None:
        self.stage = stage
        self.runtime = runtime
        self.client = stage.client
        self.clock = stage.world.clock

    async def get(self, name: str = "p") -> Pod:
        return await self.client.get(Pod, name)

    async def status(self, container: str = "c", name: str = "p") -> ContainerStatus:
        status = (await self.get(name)).status
        every = (*status.init_container_statuses, *status.container_statuses, *status.ephemeral_container_statuses)
        return next(each for each in every if each.name == container)

    async def wait(self, seconds: float) -> None:
        await self.clock.sleep(seconds)

    async def events(self, name: str = "p") -> list[tuple[str, str]]:
        return await self.stage.events(name)


def pod(name: str = "p", **spec: Any) -> Pod:
    given: dict[str, Any] = {
        "node_name": "node-1",
        "containers": [container()],
        "automount_service_account_token": False,
    }
    given |= spec
    return Pod(metadata=ObjectMeta(name=name, labels={"tier": "front"}), spec=PodSpec(**given))


def container(name: str = "c", **more: Any) -> Container:
    return Container(name=name, image="i", command=["run"], **more)


def on_node(play: Callable[[NodeStage], Awaitable[None]], directory: Path) -> None:
    """Run a play on a node with four processors, in virtual time."""

    async def whole(stage: Stage) -> None:
        runtime = FakeRuntime(stage.world.clock)
        capacity = {"cpu": "4", "memory": "8Gi", "pods": "10", "ephemeral-storage": "100Gi"}
        machine = Machine(name="node-1", addresses=("192.0.2.1",), runtime=runtime.version, capacity=capacity)
        allocatable = {name: Quantity(amount) for name, amount in capacity.items()}
        config = NodeConfig(directory / "node", directory / "logs", machine.addresses, allocatable)
        info = NodeInfo("node-1", {"disk": "fast"}, allocatable)
        objects, in_use = ObjectReader(stage.client, stage.world), VolumesInUse("node-1", stage.client)
        drivers = NodeDrivers(stage.world.clock)
        csi = CsiVolumes("node-1", config.directory, drivers, objects, in_use, stage.world)
        host = LocalNode("node-1", machine.addresses, runtime, config, info, csi)
        stage.run(lambda manager: fleet.add_nodes(manager, [machine], {"node-1": host}, None), field_manager="kubelet")
        await stage.settle()
        await play(NodeStage(stage, runtime))

    on_stage(whole)
