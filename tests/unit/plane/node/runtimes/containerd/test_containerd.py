"""The containerd runtime with a private containerd."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit.plane.node.runtimes.containerd.containerd_server import containerd

from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import (
    Capabilities,
    Container,
    EphemeralContainer,
    Pod,
    PodSecurityContext,
    PodSpec,
    ResourceRequirements,
    SecurityContext,
)
from ostinato.plane.node.containers.resize import ResizeError
from ostinato.plane.node.runtimes import ExecError, Launch, Mount, SandboxError, StartError, UnusableRuntime
from ostinato.plane.node.runtimes.containerd import ContainerdRuntime, connect
from ostinato.plane.node.runtimes.containerd.container import CriContainer
from ostinato.world import World

FOREVER = "trap 'exit 3' TERM; while :; do sleep 0.05; done"


@pytest.fixture(scope="module")
def socket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with containerd(tmp_path_factory.mktemp("containerd")) as path:
        yield path


class Node:
    """An agent's view of the runtime."""

    def __init__(self, world: World, runtime: ContainerdRuntime, directory: Path) -> None:
        self.world = world
        self.runtime = runtime
        self.directory = directory
        self.changed = asyncio.Event()
        self.pods: list[Pod] = []
        runtime.listen(lambda _: self.changed.set())

    def pod(self, container: Container | None = None, **spec: Any) -> Pod:
        container = container or Container(name="c", image="busybox:1")
        uid = self.world.ids.uid()
        made = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid=uid), spec=PodSpec(containers=[container], **spec))
        self.pods.append(made)
        return made

    def log(self, pod: Pod, attempt: int = 0, container: str = "c") -> Path:
        return self.directory / "logs" / pod.metadata.uid / container / f"{attempt}.log"

    async def said_something(self, pod: Pod, attempt: int = 0) -> None:
        """The script is past its first words: what it does about signals is settled."""
        log = self.log(pod, attempt)
        while not (log.exists() and log.stat().st_size):
            await self.world.clock.sleep(0.01)

    async def start(self, pod: Pod, script: str, attempt: int = 0, **launch: Any) -> CriContainer:
        given = {"container": pod.spec.containers[0], "command": ["sh", "-c", script], **launch}
        log = self.log(pod, attempt, given["container"].name)
        return await self.runtime.start(Launch(pod=pod, attempt=attempt, log=log, **given))

    async def ended(self, container: CriContainer) -> int:
        while container.exit is None:
            self.changed.clear()
            await self.changed.wait()
        return container.exit.code

    async def output(self, pod: Pod, script: str, **launch: Any) -> list[str]:
        """What a container writes, line by line, once it has ended well."""
        assert await self.ended(await self.start(pod, script, **launch)) == 0
        return [line.split(" ", 3)[3] for line in self.log(pod).read_text().splitlines()]


Play = Callable[[Node], Awaitable[None]]


@pytest.fixture
def on_node(socket: Path, tmp_path: Path) -> Callable[[Play], None]:
    def run(play: Play) -> None:
        async def scene() -> None:
            world = World.real()
            found = await connect(world, socket)
            node = Node(world, ContainerdRuntime(world, found, tmp_path), tmp_path)
            try:
                async with asyncio.timeout(60):
                    await play(node)
            finally:
                for pod in node.pods:
                    await node.runtime.discard(pod)
                assert await node.runtime.pod_uids() == []
                await found.close()

        asyncio.run(scene())

    return run


def test_a_container_runs_writes_its_log_and_ends_with_its_code(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        container = await node.start(pod, "echo out; echo err >&2; exit 7")
        assert container.id.startswith("containerd://")
        assert container.image_id.startswith("sha256:")
        assert container.image == "docker.io/library/busybox:1"
        assert await node.ended(container) == 7
        assert container.exit is not None
        assert container.exit.reason == "Error"
        assert container.exit.at >= container.started_at
        lines = node.log(pod).read_text().splitlines()
        assert sorted(line.split(" ", 1)[1] for line in lines) == ["stderr F err", "stdout F out"]

    on_node(play)


def test_a_container_that_is_stopped_may_end_by_itself_before_it_is_killed(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        polite = await node.start(pod, "trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done")
        await node.said_something(pod)
        await polite.stop(30)
        assert polite.exit is not None
        assert polite.exit.code == 3
        deaf = await node.start(pod, "trap '' TERM; echo ready; while :; do sleep 0.05; done", attempt=1)
        await node.said_something(pod, attempt=1)
        await deaf.stop(1)
        assert deaf.exit is not None
        assert deaf.exit.code == 137
        await deaf.stop(1)

    on_node(play)


def test_containers_of_a_pod_share_their_network_and_pods_do_not(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        one, two = node.pod(), node.pod()
        addresses = [(await node.runtime.addresses(each))[0] for each in (one, two)]
        assert len({*addresses, ""}) == 3
        assert (await node.runtime.addresses(one))[0] == addresses[0]
        own = "ip -4 -o addr show eth0 | tr -s ' ' | cut -d ' ' -f 4 | cut -d / -f 1"
        assert await node.output(one, own) == [addresses[0]]

    on_node(play)


def test_files_variables_and_names_are_where_they_belong(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        shared = node.directory / "shared"
        shared.mkdir()
        (shared / "file").write_text("content")
        pod = node.pod(hostname="me")
        script = "cat /in/file; echo; touch /in/x 2>/dev/null || echo refused; echo $A; hostname; tail -1 /etc/hosts"
        mounts = [Mount(shared, "/in", read_only=True)]
        output = await node.output(pod, script, mounts=mounts, environment={"A": "ä b"})
        address = (await node.runtime.addresses(pod))[-1]
        assert output == ["content", "refused", "ä b", "me", f"{address}\tme"]

    on_node(play)


def test_termination_messages_are_written_to_the_agents_file(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        container = Container(name="c", image="busybox:1", termination_message_path="/dev/termination-log")
        pod = node.pod(container, security_context=PodSecurityContext(run_as_user=1234))
        message = node.directory / "message"
        await node.output(pod, "echo words > /dev/termination-log", message=message)
        assert message.read_text() == "words\n"

    on_node(play)


def test_user_and_capabilities_are_applied(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        context = SecurityContext(
            run_as_user=77, read_only_root_filesystem=True, capabilities=Capabilities(drop=["ALL"])
        )
        container = Container(name="c", image="busybox:1", security_context=context)
        pod = node.pod(container, security_context=PodSecurityContext(run_as_group=88, supplemental_groups=[99]))
        script = "id -u; id -G; touch /tmp/x 2>/dev/null || echo refused; grep CapBnd /proc/self/status | cut -f 2"
        assert await node.output(pod, script) == ["77", "88 99", "refused", "0000000000000000"]

    on_node(play)


def test_an_unsupported_pod_gets_no_sandbox(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        with pytest.raises(SandboxError, match="hostUsers: false is not supported"):
            await node.runtime.addresses(node.pod(host_users=False))
        with pytest.raises(SandboxError, match='no runtime for "odd" is configured'):
            await node.runtime.addresses(node.pod(), handler="odd")

    on_node(play)


def test_run_as_non_root_rejects_root(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod(security_context=PodSecurityContext(run_as_non_root=True))
        with pytest.raises(StartError, match="image will run as root") as caught:
            await node.start(pod, "true")
        assert caught.value.reason == "CreateContainerConfigError"

    on_node(play)


def test_a_container_that_wants_more_memory_than_it_may_have_is_killed(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        limits = ResourceRequirements(limits={"memory": Quantity("8Mi")})
        pod = node.pod(Container(name="c", image="busybox:1", resources=limits))
        container = await node.start(pod, "x=aaaaaaaa; while :; do x=$x$x; done")
        assert await node.ended(container) == 137
        assert container.exit is not None
        assert container.exit.reason == "OOMKilled"

    on_node(play)


def test_a_command_that_cannot_be_executed_is_a_container_that_has_ended(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        container = await node.start(node.pod(), "", command=["no-such-command"])
        assert container.exit is not None
        assert (container.exit.code, container.exit.reason) == (128, "StartError")
        assert 'exec: "no-such-command": executable file not found' in container.exit.message

    on_node(play)


def test_a_restarted_agent_recovers_running_and_exited_containers(
    on_node: Callable[[Play], None], socket: Path
) -> None:
    async def play(node: Node) -> None:
        containers = [Container(name=name, image="busybox:1") for name in ("runs", "ended")]
        pod = node.pod(containers[0])
        pod.spec.containers = containers
        running = await node.start(pod, FOREVER, container=containers[0])
        assert await node.ended(await node.start(pod, "exit 5", container=containers[1], attempt=2)) == 5
        anew = await connect(node.world, socket)
        later = ContainerdRuntime(node.world, anew, node.directory)
        told = asyncio.Event()
        later.listen(lambda _: told.set())
        found = await later.recover(pod)
        assert {name: (each.id, each.exit and each.exit.code) for name, each in found.items()}["runs"] == (
            running.id,
            None,
        )
        assert found["ended"].exit is not None
        assert (found["ended"].exit.code, found["ended"].attempt) == (5, 2)
        await running.stop(10)
        await told.wait()
        assert found["runs"].exit is not None
        assert found["runs"].exit.code == 3
        assert await later.pod_uids() == [pod.metadata.uid]
        await anew.close()

    on_node(play)


def test_nothing_runs_twice_under_one_name(on_node: Callable[[Play], None], socket: Path) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        first = await node.start(pod, FOREVER)
        anew = await connect(node.world, socket)
        forgetful = ContainerdRuntime(node.world, anew, node.directory)
        container = pod.spec.containers[0]
        launch = Launch(pod=pod, container=container, attempt=0, command=["sh", "-c", FOREVER], log=node.log(pod))
        second = await forgetful.start(launch)
        assert second.id != first.id
        await node.ended(first)
        assert (await node.runtime.recover(pod))["c"].id == second.id
        await anew.close()

    on_node(play)


def test_nodes_leave_each_others_pods_alone(on_node: Callable[[Play], None], socket: Path) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        container = await node.start(pod, FOREVER)
        anew = await connect(node.world, socket)
        other = ContainerdRuntime(node.world, anew, node.directory / "other")
        assert await other.pod_uids() == []
        await other.remove(pod.metadata.uid)
        await container.refresh()
        assert container.exit is None
        await anew.close()

    on_node(play)


async def read(session: Any) -> list[tuple[int, bytes]]:
    outputs = []
    while (output := await session.read()) is not None:
        outputs.append(output)
    return outputs


def test_commands_have_streams_codes_and_ends(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        await node.start(pod, FOREVER)
        command: Sequence[str] = ["sh", "-c", "cat; echo err >&2; exit 6"]
        session = await node.runtime.exec(pod, "c", command, stdin=True, tty=False)
        await session.write(b"in")
        await session.close_input()
        assert sorted(await read(session)) == [(1, b"in"), (2, b"err\n")]
        assert await session.wait() == 6
        await session.close()
        session = await node.runtime.exec(pod, "c", ["sh", "-c", "tty"], stdin=True, tty=True)
        await session.resize(80, 25)
        assert [stream for stream, _ in await read(session)] == [1]
        await session.close()

    on_node(play)


def test_a_command_that_is_not_there_is_an_error(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        await node.start(pod, FOREVER)
        session = await node.runtime.exec(pod, "c", ["no-such-command"], stdin=False, tty=False)
        assert await read(session) == []
        with pytest.raises(ExecError, match=r"^failed to exec in container: .*executable file not found"):
            await session.wait()
        await session.close()
        with pytest.raises(ExecError, match="executable file not found"):
            await node.runtime.run(pod, "c", ["no-such-command"], 5)
        with pytest.raises(ExecError, match=r'container not found \("d"\)'):
            await node.runtime.run(pod, "d", ["true"], 5)

    on_node(play)


def test_a_command_that_takes_too_long_is_killed(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        await node.start(pod, FOREVER)
        assert await node.runtime.run(pod, "c", ["sh", "-c", "echo a; echo b >&2; exit 4"], 5) == (4, b"a\nb\n")
        with pytest.raises(TimeoutError):
            await node.runtime.run(pod, "c", ["sleep", "7777"], 1)
        _, listed = await node.runtime.run(pod, "c", ["ps"], 5)
        assert b"7777" not in listed

    on_node(play)


def test_attach_streams_the_output_of_a_container(on_node: Callable[[Play], None]) -> None:
    """containerd attaches input before output, and detaches output when the container ends: both may lose output."""

    async def play(node: Node) -> None:
        pod = node.pod(Container(name="c", image="busybox:1", stdin=True))
        container = await node.start(pod, "while read line && [ $line != end ]; do echo heard $line; done")
        session = await node.runtime.attach(pod, "c", stdin=True, tty=False)
        reading = asyncio.ensure_future(session.read())
        while not reading.done():
            await session.write(b"this\n")
            await asyncio.wait([reading], timeout=0.5)
        found = reading.result()
        assert found is not None
        assert (found[0], found[1][:11]) == (1, b"heard this\n")
        await session.write(b"end\n")
        assert await node.ended(container) == 0
        await session.close()

    on_node(play)


def test_ports_are_reached_within_the_pods_own_network(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        await node.start(pod, f"echo here > /tmp/index.html; httpd -p 127.0.0.1:8080 -h /tmp; {FOREVER}")
        while (await node.runtime.run(pod, "c", ["wget", "-qO-", "127.0.0.1:8080/index.html"], 5))[0] != 0:
            pass
        link = await node.runtime.connect(pod, 8080)
        await link.write(b"GET /index.html HTTP/1.0\r\n\r\n")
        answer = b""
        while (data := await link.read()) is not None:
            answer += data
        assert answer.endswith(b"\r\n\r\nhere\n")
        await link.close()
        link = await node.runtime.connect(pod, 8081)
        assert await link.read() is None
        await link.close()
        assert b"connection refused" in await link.failure()

    on_node(play)


def test_an_ephemeral_container_sees_the_processes_of_its_target(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        await node.start(pod, FOREVER)
        pod.spec.ephemeral_containers = [
            EphemeralContainer(name="d", image="busybox:1", target_container_name="c"),
        ]
        debug = Container(name="d", image="busybox:1")
        assert await node.ended(await node.start(pod, "ps | grep -q 'exit 3'", container=debug)) == 0

    on_node(play)


def test_what_containers_use_is_measured(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        await node.start(pod, "while :; do :; done")
        usage = await node.runtime.usage(pod)
        while not usage or usage["c"].cpu == 0:
            usage = await node.runtime.usage(pod)
        assert usage["c"].memory > 0

    on_node(play)


def test_a_log_that_grows_is_rotated(on_node: Callable[[Play], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ostinato.plane.node.runtimes.containerd.rotation.LOG_BYTES", 100)

    async def play(node: Node) -> None:
        pod = node.pod()
        await node.start(pod, "while :; do echo 0123456789; sleep 0.01; done")
        rotated = node.log(pod).with_name("0.log.1")
        while not (rotated.exists() and node.log(pod).exists() and node.log(pod).stat().st_size > 0):
            node.runtime._watch._wake.set()
            await node.world.clock.sleep(0.05)
        assert rotated.stat().st_size >= 100

    on_node(play)


def test_a_missing_socket_is_reported(tmp_path: Path) -> None:
    async def play() -> None:
        with pytest.raises(UnusableRuntime, match="none: No such file or directory; check that it runs"):
            await connect(World.real(), tmp_path / "none")

    asyncio.run(play())


def test_a_running_container_is_resized_in_place(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        pod = node.pod()
        container = pod.spec.containers[0]
        container.resources = ResourceRequirements(limits={"memory": Quantity("64Mi"), "cpu": Quantity("200m")})
        await node.start(pod, "echo ready; sleep 1000")
        await node.said_something(pod)
        container.resources = ResourceRequirements(limits={"memory": Quantity("32Mi"), "cpu": Quantity("100m")})
        await node.runtime.resize(pod, container, 0)
        read = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null"
        code, output = await node.runtime.run(pod, container.name, ["sh", "-c", read], 10)
        assert str(32 << 20).encode() in output, (code, output)
        read = "cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us 2>/dev/null"
        code, output = await node.runtime.run(pod, container.name, ["sh", "-c", read], 10)
        assert output.startswith(b"10000"), (code, output)
        with pytest.raises(ResizeError, match="not found"):
            await node.runtime.resize(node.pod(), container, 0)

    on_node(play)


def test_containerd_reports_its_health(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        assert await node.runtime.health() == ""

    on_node(play)


def test_an_image_is_mounted_as_a_volume(on_node: Callable[[Play], None]) -> None:
    async def play(node: Node) -> None:
        version = tuple(int(each) for each in re.findall(r"\d+", node.runtime.version)[:2])
        if version < (2, 1):
            pytest.skip(f"{node.runtime.version} does not mount images")
        pod = node.pod()
        mounts = [Mount(Path(), "/image", read_only=True, image="busybox:1")]
        script = "test -e /image/bin/busybox && echo there; touch /image/x 2>/dev/null || echo refused"
        assert await node.output(pod, script, mounts=mounts) == ["there", "refused"]
        with pytest.raises(StartError, match='image "absent:1" was removed'):
            await node.start(node.pod(), "true", mounts=[Mount(Path(), "/image", image="absent:1")])

    on_node(play)
