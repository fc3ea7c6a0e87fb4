"""The process runtime with real processes: start, exit, recovery and removal."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.kinds.core_v1 import Container, Pod, PodSpec, ResourceRequirements
from ostinato.plane.node.runtimes import ExecError, Launch, Mount, ProcessOptions, StartError, Usage
from ostinato.plane.node.runtimes.process import ProcessRuntime, container, isolation, limits, runtime
from ostinato.plane.node.runtimes.process.container import MARKER, ProcessContainer
from ostinato.world import World

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")

PATIENCE = 30.0
ISOLATED = not isolation.unsupported_reason()


class Bench:
    """A runtime on a directory; `again` is another agent's, after this one was killed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.world = World.real()
        options = ProcessOptions(insecure=not ISOLATED)  # as root without namespaces, nothing would run
        self.runtime = ProcessRuntime(self.world, directory / "node", ["192.0.2.7"], options)
        self.changed = asyncio.Event()
        self.runtime.listen(lambda _: self.changed.set())

    def again(self) -> Bench:
        return Bench(self.directory)

    def launch(self, *command: str, attempt: int = 0, pod: Pod | None = None, **more: Any) -> Launch:
        spec = {each: more.pop(each) for each in ("tty", "stdin", "working_dir", "resources") if each in more}
        container = Container(name="c", image="i", command=list(command), **spec)
        log = self.directory / "logs" / f"{attempt}.log"
        settings: dict[str, Any] = {"command": command, "log": log} | more
        return Launch(pod=pod or a_pod(), container=container, attempt=attempt, **settings)

    async def start(self, *command: str, **more: Any) -> ProcessContainer:
        return await self.runtime.start(self.launch(*command, **more))

    async def read_exit(self, container: ProcessContainer) -> int:
        await self.until(lambda: container.exit is not None)
        assert container.exit is not None
        return container.exit.code

    async def until(self, condition: Callable[[], bool]) -> None:
        async with self.world.clock.timeout(PATIENCE):
            while not condition():
                await self.world.clock.sleep(0.01)

    def log(self, attempt: int = 0) -> list[str]:
        """The lines, without their times."""
        lines = (self.directory / "logs" / f"{attempt}.log").read_text().splitlines()
        return [line.partition(" ")[2] for line in lines]


def a_pod(uid: str = "u1") -> Pod:
    return Pod(metadata=ObjectMeta(name="p", namespace="default", uid=uid), spec=PodSpec(containers=[]))


def with_bench(directory: Path, play: Callable[[Bench], Awaitable[None]]) -> None:
    async def whole() -> None:
        bench = Bench(directory)
        try:
            await play(bench)
        finally:
            for uid in await bench.runtime.pod_uids():
                await bench.runtime.remove(uid)
            bench.world.executor.close()

    asyncio.run(whole())


def processes_of(mark: Path) -> list[int]:
    """Those that carry a container's mark."""
    wanted, found = f"{MARKER}={mark}".encode(), []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if wanted in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                    found.append(int(name))
            except OSError:
                continue
    return found


def test_a_container_runs_writes_its_log_and_ends_with_its_code(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        container = await bench.start(
            "sh", "-c", 'echo "$A"; echo oh >&2; printf rest; exit 7', environment={"A": "one"}
        )
        assert container.exit is None or container.exit.code == 7
        assert await bench.read_exit(container) == 7
        assert sorted(bench.log()) == ["stderr F oh", "stdout F one", "stdout P rest"]
        first = (tmp_path / "logs" / "0.log").read_text()
        assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ", first)

    with_bench(tmp_path, play)


def test_a_container_has_a_directory_of_its_own_and_nothing_of_the_agents_environment(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        os.environ["SECRET_OF_THE_AGENT"] = "x"
        try:
            container = await bench.start("sh", "-c", 'pwd; echo "[$SECRET_OF_THE_AGENT]"')
        finally:
            del os.environ["SECRET_OF_THE_AGENT"]
        await bench.read_exit(container)
        where, secret = bench.log()
        assert where == "stdout F /home/container" if ISOLATED else where.endswith("/pods/u1/containers/c/work")
        assert secret == "stdout F []"

    with_bench(tmp_path, play)


def test_a_container_without_a_command_is_rejected_with_a_remedy(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        with pytest.raises(StartError, match="set `command`") as caught:
            await bench.start()
        assert caught.value.reason == "CreateContainerError"

    with_bench(tmp_path, play)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["no-such-command"], 'exec: "no-such-command": executable file not found in $PATH'),
        (["/no/such/file"], 'exec: "/no/such/file": no such file or directory'),
        (["/etc/passwd"], 'exec: "/etc/passwd": permission denied'),
    ],
)
def test_a_command_that_cannot_be_executed_ends_at_once_and_says_why(
    tmp_path: Path, command: list[str], message: str
) -> None:
    async def play(bench: Bench) -> None:
        container = await bench.start(*command)
        assert container.exit is not None
        assert (container.exit.code, container.exit.reason, container.exit.message) == (128, "StartError", message)

    with_bench(tmp_path, play)


def test_a_container_is_killed_after_its_grace_period(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        polite = await bench.start("sh", "-c", 'trap "exit 3" TERM; echo up; while :; do sleep 0.05; done')
        await bench.until(lambda: bench.log() == ["stdout F up"])
        await polite.stop(PATIENCE)
        assert polite.exit is not None
        assert polite.exit.code == 3
        deaf = await bench.start("sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.05; done', attempt=1)
        await bench.until(lambda: bench.log(1) == ["stdout F up"])
        await deaf.stop(0.2)
        assert deaf.exit is not None
        assert deaf.exit.code == 137

    with_bench(tmp_path, play)


def test_remaining_processes_are_killed_with_the_container(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        away = "setsid sh -c 'sleep 1000 & sleep 1000' </dev/null >/dev/null 2>&1 & sleep 1000 & sleep 0.2; exit 4"
        container = await bench.start("sh", "-c", away)
        assert await bench.read_exit(container) == 4
        assert not processes_of(container.directory)

    with_bench(tmp_path, play)


def test_another_agent_finds_a_container_and_the_code_of_one_that_ended_meanwhile(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        go = tmp_path / "shared" / "go"
        go.parent.mkdir()
        at = f"{tmp_path}/seen"
        waits = f"while [ ! -e {at}/go ]; do sleep 0.05; done; echo done; exit 9"
        container = await bench.start("sh", "-c", waits, mounts=[Mount(go.parent, at)])
        container.unwatch()  # as if the agent were killed
        other = bench.again()
        found = (await other.runtime.recover(a_pod()))["c"]
        assert (found.id, found.state, found.attempt) == (container.id, container.state, 0)
        assert found.exit is None
        found.unwatch()
        go.touch()
        await bench.until((container.directory / "exit.json").exists)
        third = bench.again()
        found = (await third.runtime.recover(a_pod()))["c"]
        assert await third.read_exit(found) == 9
        assert bench.log() == ["stdout F done"]

    with_bench(tmp_path, play)


def test_a_container_whose_keeper_is_killed_is_gone_with_all_its_processes(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        container = await bench.start("sh", "-c", "sleep 1000 & sleep 1000")
        os.kill(container.state.shim, signal.SIGKILL)
        assert await bench.read_exit(container) == 137
        assert container.exit is not None
        assert container.exit.reason == "ContainerStatusUnknown"
        await bench.until(lambda: not processes_of(container.directory))

    with_bench(tmp_path, play)


def test_a_late_keeper_does_not_start_the_container(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        directory = bench.directory / "node" / "pods" / "u1" / "containers" / "c" / "0"
        directory.mkdir(parents=True)
        assert await bench.runtime.recover(a_pod()) == {}  # another agent asked for it, and was killed
        assert not directory.exists()
        directory.mkdir()
        (directory / "exit.json").write_text('{"code": 137, "at": 0}')
        said = await bench.runtime._launcher.launch(directory)
        assert "start timed out" in said["error"]

    with_bench(tmp_path, play)


def test_nothing_is_left_of_a_pod_that_is_removed(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        container = await bench.start("sh", "-c", 'trap "" TERM; sleep 1000 & sleep 1000')
        other = bench.again()
        assert await other.runtime.pod_uids() == ["u1"]
        await other.runtime.remove("u1")
        assert await other.runtime.pod_uids() == []
        assert not processes_of(container.directory)
        await bench.read_exit(container)

    with_bench(tmp_path, play)


def test_a_log_that_grows_is_rotated_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "LOG_BYTES", 100_000)
    monkeypatch.setattr(runtime, "LOG_FILES", 3)

    async def play(bench: Bench) -> None:
        container = await bench.start("sh", "-c", "yes 0123456789012345678901234567890123456789 | head -c 3000000")
        assert await bench.read_exit(container) == 0
        sizes = {each.name: each.stat().st_size for each in (tmp_path / "logs").iterdir()}
        assert sorted(sizes) == ["0.log", "0.log.1", "0.log.2"]
        assert sum(sizes.values()) < 1_000_000

    with_bench(tmp_path, play)


def test_a_line_that_never_ends_is_cut(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        container = await bench.start("sh", "-c", "head -c 40000 /dev/zero | tr '\\0' x")
        assert await bench.read_exit(container) == 0
        lines = bench.log()
        assert [line[:9] for line in lines] == ["stdout P "] * 3
        assert sum(len(line) - 9 for line in lines) == 40000

    with_bench(tmp_path, play)


def test_a_container_whose_directory_was_removed_is_killed(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        container = await bench.start("sh", "-c", "sleep 1000 & wait")
        assert processes_of(container.directory)
        shutil.rmtree(container.directory)
        await bench.until(lambda: not processes_of(container.directory))

    with_bench(tmp_path, play)


def test_a_fork_bomb_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROCESSES", 40)
    if os.geteuid() != 0 or not _has_groups():
        pytest.skip("without control groups, the kernel does not count the processes of root")

    async def play(bench: Bench) -> None:
        bomb = "i=0; while [ $i -lt 100 ]; do sleep 100 & i=$((i+1)); done; echo all of them"
        container = await bench.start("sh", "-c", bomb)
        await bench.read_exit(container)
        assert "stdout F all of them" not in bench.log()
        assert not processes_of(container.directory)

    with_bench(tmp_path, play)


def test_a_container_that_takes_more_memory_than_it_may_is_killed(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not _has_groups():
        pytest.skip("control groups cannot be written here")

    async def play(bench: Bench) -> None:
        most = ResourceRequirements(limits={"memory": Quantity("30Mi")})
        greedy = "x = bytearray(200_000_000)"
        container = await bench.start(sys.executable, "-I", "-S", "-c", greedy, resources=most)
        assert await bench.read_exit(container) == 137
        assert container.exit is not None
        assert container.exit.reason == "OOMKilled"

    with_bench(tmp_path, play)


def _has_groups() -> bool:
    made = limits.limits_of(Container(name="c"), "probe-of-a-test")
    for group in made.groups:
        os.rmdir(group)
    return bool(made.groups)


async def output_of(bench: Bench, *command: str, send: bytes = b"", tty: bool = False) -> tuple[int, bytes]:
    session = await bench.runtime.exec(a_pod(), "c", list(command), stdin=bool(send), tty=tty)
    try:
        if send:
            await session.write(send)
            await session.close_input()
        out = b""
        async with bench.world.clock.timeout(PATIENCE):
            while (chunk := await session.read()) is not None:
                out += chunk[1]
            return await session.wait(), out
    finally:
        await session.close()


def test_commands_run_beside_a_container_with_its_variables_and_volumes(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        volume = tmp_path / "volume"
        volume.mkdir()
        (volume / "file").write_text("inside")
        mounts = [Mount(volume, f"{tmp_path}/seen")]
        await bench.start("sleep", "1000", environment={"A": "one"}, mounts=mounts)
        assert await output_of(bench, "sh", "-c", f'echo "$A"; cat {tmp_path}/seen/file; exit 5') == (5, b"one\ninside")
        assert await output_of(bench, "cat", send=b"to and fro") == (0, b"to and fro")
        code, out = await output_of(bench, "sh", "-c", "test -t 0 && echo a terminal", tty=True)
        assert (code, out) == (0, b"a terminal\r\n")
        with pytest.raises(ExecError, match=r"executable file not found in \$PATH"):
            await output_of(bench, "no-such-command")

    with_bench(tmp_path, play)


def test_a_container_that_ended_runs_no_commands(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        await bench.read_exit(await bench.start("true"))
        with pytest.raises(ExecError, match=r'container not found \("c"\)'):
            await output_of(bench, "true")

    with_bench(tmp_path, play)


def test_attach_streams_output_and_input(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        container = await bench.start("sh", "-c", 'while read -r line; do echo "<$line>"; done; echo end', stdin=True)
        session = await bench.runtime.attach(a_pod(), "c", stdin=True, tty=False)
        await session.write(b"one\n")
        assert await session.read() == (1, b"<one>\n")
        await session.close_input()
        assert await session.read() == (1, b"end\n")
        assert await session.read() is None
        await session.close()
        assert await bench.read_exit(container) == 0

    with_bench(tmp_path, play)


def test_a_container_with_a_terminal_has_one(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        container = await bench.start("sh", "-c", "test -t 1 && stty size", tty=True, stdin=True)
        assert await bench.read_exit(container) == 0

    with_bench(tmp_path, play)


def test_mount_paths_are_created_and_removed(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        volume = tmp_path / "volume"
        volume.mkdir()
        target = tmp_path / "deep" / "down"
        command = f"echo here > {target}/file; test -w {target}"
        container = await bench.start("sh", "-c", command, mounts=[Mount(volume, str(target))])
        assert await bench.read_exit(container) == 0
        assert (volume / "file").read_text() == "here\n"
        assert not (tmp_path / "deep").exists()

    with_bench(tmp_path, play)


@pytest.mark.skipif(not ISOLATED, reason="only root has mounts of its own")
def test_a_sub_path_that_is_a_link_out_of_its_volume_when_it_is_bound_is_refused(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        (tmp_path / "volume" / "part").mkdir(parents=True)
        (tmp_path / "volume" / "part" / "file").write_text("mine")
        (tmp_path / "outside").mkdir()
        (tmp_path / "outside" / "file").write_text("secret")
        at = f"{tmp_path}/seen"
        mounts = [Mount(tmp_path / "volume", at, sub_path="part")]
        assert await bench.read_exit(await bench.start("cat", f"{at}/file", mounts=mounts)) == 0
        assert bench.log() == ["stdout P mine"]
        (tmp_path / "volume" / "part").rename(tmp_path / "volume" / "other")  # as another container would
        (tmp_path / "volume" / "part").symlink_to("../outside")
        with pytest.raises(StartError, match="leads out of its volume"):
            await bench.start("cat", f"{at}/file", mounts=mounts, attempt=1)

    with_bench(tmp_path, play)


@pytest.mark.skipif(not ISOLATED, reason="only root has mounts of its own")
def test_two_containers_see_different_volumes_at_one_place(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").write_text(name)
        at = f"{tmp_path}/at"
        first = await bench.start("sh", "-c", f"sleep 0.2; cat {at}/file", mounts=[Mount(tmp_path / "one", at)])
        mounts = [Mount(tmp_path / "two", at, read_only=True)]
        command = f"cat {at}/file; touch {at}/new || exit 8"
        second = await bench.start("sh", "-c", command, mounts=mounts, attempt=1, pod=a_pod("u2"))
        assert await bench.read_exit(second) == 8
        assert await bench.read_exit(first) == 0
        assert bench.log() == ["stdout P one"]
        assert "stdout P two" in bench.log(1)

    with_bench(tmp_path, play)


def test_usage_is_that_of_all_processes_of_a_container(tmp_path: Path) -> None:
    async def play(bench: Bench) -> None:
        await bench.start("sh", "-c", "sleep 1000 & i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 1000")
        usage = Usage(0.0, 0)
        async with bench.world.clock.timeout(PATIENCE):
            while usage.cpu < 0.01 or usage.memory == 0:
                usage = (await bench.runtime.usage(a_pod()))["c"]
                await bench.world.clock.sleep(0.02)

    with_bench(tmp_path, play)


def test_an_idle_container_has_used_processor_time(tmp_path: Path) -> None:
    """metrics-server drops Pods with a container that has none."""

    async def play(bench: Bench) -> None:
        await bench.start("sleep", "1000")
        usage = Usage(0.0, 0)
        async with bench.world.clock.timeout(PATIENCE):
            while usage.cpu == 0.0:
                usage = (await bench.runtime.usage(a_pod()))["c"]
                await bench.world.clock.sleep(0.02)

    with_bench(tmp_path, play)


def test_processor_time_never_decreases_when_processes_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = iter([Usage(1.005, 10), Usage(1.0, 20), Usage(1.5, 30)])
    monkeypatch.setattr(container, "usage_of", lambda _: next(measured))

    async def play(bench: Bench) -> None:
        await bench.start("sleep", "1000")
        seen = [(await bench.runtime.usage(a_pod()))["c"] for _ in range(3)]
        assert seen == [Usage(1.005, 10), Usage(1.005, 20), Usage(1.5, 30)]

    with_bench(tmp_path, play)


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root runs containers as itself")
def test_as_root_without_namespaces_nothing_runs_unless_the_node_is_insecure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation, "unsupported_reason", lambda: "the node lacks the capability SYS_ADMIN")

    async def play(bench: Bench) -> None:
        secure = ProcessRuntime(bench.world, bench.directory / "secure", ["192.0.2.7"])
        with pytest.raises(StartError, match=r"lacks the capability SYS_ADMIN; .* --insecure-processes") as caught:
            await secure.start(bench.launch("true"))
        assert caught.value.reason == "CreateContainerError"
        bench.runtime = ProcessRuntime(bench.world, bench.directory / "node", [""], ProcessOptions(insecure=True))
        container = await bench.start("sh", "-c", "pwd")
        assert await bench.read_exit(container) == 0
        assert bench.log()[0].endswith("/pods/u1/containers/c/work")

    with_bench(tmp_path, play)
