"""Isolation of the process runtime: containers attack the host, the node and other Pods; and their permissions.

Most tests need root and namespaces and are skipped otherwise.
"""

# ruff: noqa: ASYNC220, ASYNC221, ASYNC240 - what blocks here blocks nobody else
from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.runtimes import ExecError, Launch, Mount, ProcessOptions, StartError
from ostinato.plane.node.runtimes.process import ProcessRuntime, isolation
from ostinato.plane.node.runtimes.process.container import ProcessContainer
from ostinato.world import World

PATIENCE = 30.0
pytestmark = pytest.mark.skipif(
    bool(isolation.unsupported_reason()), reason=f"no isolation here: {isolation.unsupported_reason()}"
)

RESTRICTED = {
    "runAsUser": 1000,
    "runAsGroup": 1000,
    "runAsNonRoot": True,
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


class RuntimeFixture:
    """A runtime, and Pods in it."""

    def __init__(self, directory: Path, options: ProcessOptions) -> None:
        self.directory = directory
        self.world = World.real()
        self.runtime = ProcessRuntime(self.world, directory / "node", ["192.0.2.7"], options)

    def pod(self, uid: str = "u1", containers: int = 1, security: Any = None, **spec: Any) -> Pod:
        names = ["c", "d", "e"][:containers]
        known = {"metadata": {"name": f"p-{uid}", "namespace": "default", "uid": uid}}
        listed = [{"name": name, "image": "i", "securityContext": security or {}} for name in names]
        return from_dict(Pod, known | {"spec": {"containers": listed} | spec})

    async def start(self, pod: Pod, *command: str, name: str = "c", attempt: int = 0, **more: Any) -> ProcessContainer:
        container = next(each for each in pod.spec.containers if each.name == name)
        for field in ("working_dir", "tty", "stdin"):
            if field in more:
                setattr(container, field, more.pop(field))
        log = self.log_of(pod, name, attempt)
        return await self.runtime.start(
            Launch(pod=pod, container=container, attempt=attempt, command=command, log=log, **more)
        )

    def log_of(self, pod: Pod, name: str = "c", attempt: int = 0) -> Path:
        return self.directory / "logs" / pod.metadata.uid / name / f"{attempt}.log"

    async def output(self, pod: Pod, *command: str, **more: Any) -> str:
        """What a container prints until it ends; its code, if that is not 0, stands at the end."""
        container = await self.start(pod, *command, **more)
        await self.until(lambda: container.exit is not None)
        assert container.exit is not None
        log = self.log_of(pod, more.get("name", "c"), more.get("attempt", 0))
        lines = log.read_text().splitlines() if log.exists() else []
        said = "".join(line.split(" ", 3)[3] + "\n" for line in lines if line.count(" ") >= 3)
        said += container.exit.message
        return said.strip() if container.exit.code == 0 else f"{said.strip()}\ncode {container.exit.code}".strip()

    async def shell(self, pod: Pod, script: str, **more: Any) -> str:
        return await self.output(pod, "sh", "-c", script, **more)

    async def python(self, pod: Pod, script: str, **more: Any) -> str:
        return await self.output(pod, sys.executable, "-I", "-S", "-c", textwrap.dedent(script), **more)

    async def exec(self, pod: Pod, *command: str, tty: bool = False, name: str = "c") -> tuple[int, str]:
        session = await self.runtime.exec(pod, name, list(command), stdin=False, tty=tty)
        try:
            out = b""
            async with self.world.clock.timeout(PATIENCE):
                while (chunk := await session.read()) is not None:
                    out += chunk[1]
                return await session.wait(), out.decode()
        finally:
            await session.close()

    async def until(self, condition: Callable[[], object]) -> None:
        async with self.world.clock.timeout(PATIENCE):
            while not condition():
                await self.world.clock.sleep(0.01)


def with_runtime(
    directory: Path, play: Callable[[RuntimeFixture], Awaitable[None]], *, uvloop: bool = False, **options: Any
) -> None:
    async def whole() -> None:
        host = RuntimeFixture(directory, ProcessOptions(**options))
        try:
            await play(host)
        finally:
            for uid in await host.runtime.pod_uids():
                await host.runtime.remove(uid)
            host.world.executor.close()

    factory = pytest.importorskip("uvloop").new_event_loop if uvloop else None
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(whole())


def processes_with(argument: str) -> list[int]:
    """Of this machine, whatever their namespace: those that were started with an argument."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if argument.encode() in each.read_bytes().split(b"\0"):
                found.append(int(each.parent.name))
        except OSError:
            continue
    return found


def first_process(container: ProcessContainer) -> Path:
    return Path(f"/proc/{container.state.pid}")


# Descriptors and the shim's channel


@pytest.mark.parametrize("uvloop", [False, True])
@pytest.mark.parametrize("tty", [False, True])
def test_a_container_inherits_no_descriptors_of_the_node(tmp_path: Path, uvloop: bool, tty: bool) -> None:
    """CVE-2024-21626: with uvloop, the shim inherited what the server had open, and so did every container."""
    opened = os.open("/", os.O_RDONLY)
    os.set_inheritable(opened, True)  # noqa: FBT003

    async def play(host: RuntimeFixture) -> None:
        pod = host.pod(security=RESTRICTED)
        container = await host.start(pod, "sleep", "1000", tty=tty)
        held = f"/proc/{container.state.pid}/fd"
        await host.until(
            lambda: {*os.listdir(held)} == {"0", "1", "2"}
        )  # the dynamic linker opens libraries for a moment
        assert os.readlink(f"/proc/{container.state.pid}/fd/0").startswith("/dev/pts/" if tty else "/dev/null")
        for with_terminal in (False, True):
            listing = "for each in /proc/self/fd/*; do echo ${each##*/}; done"
            code, out = await host.exec(pod, "sh", "-c", listing, tty=with_terminal)
            assert code == 0
            assert {"0", "1", "2"} <= set(out.split()) <= {"0", "1", "2", "3", "10"}  # 3 or 10 is the listing itself
            code, out = await host.exec(pod, "readlink", "/proc/self/fd/0", "/proc/self/fd/4", tty=with_terminal)
            assert out.split()[0].startswith("/dev/pts/" if with_terminal else "/dev/null")
            assert len(out.split()) == 1
        keeper = f"/proc/{container.state.shim}/fd"
        assert "/" not in {os.readlink(f"{keeper}/{each}") for each in os.listdir(keeper)}

    try:
        with_runtime(tmp_path, play, uvloop=uvloop)
    finally:
        os.close(opened)


@pytest.mark.parametrize("number", range(3, 12))
def test_a_working_directory_that_is_a_descriptor_leads_nowhere(tmp_path: Path, number: int) -> None:
    """CVE-2024-21626: `workingDir: /proc/self/fd/7`, where 7 was a directory of the machine."""

    async def play(host: RuntimeFixture) -> None:
        said = await host.shell(host.pod(), "pwd; ls", working_dir=f"/proc/self/fd/{number}")
        assert "workingDir" in said
        assert said.endswith("code 128")

    with_runtime(tmp_path, play)


def test_a_reply_of_another_process_than_the_keeper_is_ignored(tmp_path: Path) -> None:
    """A container that wrote to the shim's socket had the agent kill a process of its choice."""

    async def play(host: RuntimeFixture) -> None:
        await host.output(host.pod("u0"), "true")
        launcher = host.runtime._launcher
        assert launcher._running is not None
        shim = launcher._running._process.pid
        stolen = _steal(shim, 0)
        directory = tmp_path / "node" / "pods" / "u1" / "containers" / "c" / "0"
        forged = {"directory": str(directory), "pid": 1, "shim": os.getpid(), "started": 0.0, "code": 0}
        waiting = asyncio.get_running_loop().create_future()
        launcher._waiting[str(directory)] = waiting
        for number in (1, shim):
            stolen.sendall(json.dumps(forged | {"shim": number}).encode() + b"\n")
        other = subprocess.Popen(["sleep", "1000"])
        stolen.sendall(json.dumps(forged | {"shim": other.pid}).encode() + b"\n")
        await host.world.clock.sleep(0.2)
        assert not waiting.done()
        del launcher._waiting[str(directory)]
        container = await host.start(host.pod("u1"), "sleep", "1000")
        assert container.state.shim != other.pid
        await container.stop(0.0)
        assert other.poll() is None
        other.kill()
        other.wait()
        stolen.close()

    with_runtime(tmp_path, play)


def _steal(process: int, descriptor: int) -> socket.socket:
    """Another process's socket, as only root can."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(process)
    number = libc.syscall(438, pidfd, descriptor, 0)
    os.close(pidfd)
    assert number >= 0, os.strerror(ctypes.get_errno())
    return socket.socket(fileno=number)


def test_a_keeper_serves_no_other_user(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        container = await host.start(host.pod(), "sleep", "1000")
        for path in (container.directory, *container.directory.parents):
            if path == tmp_path.parent.parent:
                break
            path.chmod(0o755)  # as if somebody had opened it
        script = (
            "import socket,sys; c=socket.socket(socket.AF_UNIX); c.connect('exec'); c.send(b'{}\\n'); print(c.recv(9))"
        )
        for name in ("exec", "attach"):
            (container.directory / name).chmod(0o777)
        done = subprocess.run(
            ["/usr/bin/env", "-C", str(container.directory), sys.executable, "-I", "-S", "-c", script],
            user=1000, group=1000, extra_groups=[], capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert "Permission" in done.stderr or done.stdout in ("b''\n", "") or "Reset" in done.stderr

    with_runtime(tmp_path, play)


def test_a_server_in_the_keepers_place_is_rejected(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        pod = host.pod()
        container = await host.start(pod, "sleep", "1000")
        (container.directory / "exec").unlink()
        here = os.getcwd()
        os.chdir(container.directory)
        false = socket.socket(socket.AF_UNIX)
        false.bind("exec")
        false.listen()
        os.chdir(here)
        with pytest.raises(ExecError, match="is not the container's keeper"):
            await host.exec(pod, "true")
        false.close()

    with_runtime(tmp_path, play)


def test_the_interpreter_of_the_node_cannot_be_overwritten_through_a_process_on_its_way_in(tmp_path: Path) -> None:
    """CVE-2019-5736: a container that executes /proc/self/exe has the node's own program, from which it came."""

    async def play(host: RuntimeFixture) -> None:
        pod = host.pod()
        await host.start(pod, "sleep", "1000")
        attack = """
            import os
            held = os.open("/proc/self/exe", os.O_RDONLY)
            try:
                os.open("/proc/self/exe", os.O_WRONLY)
            except OSError as error:
                print(error.strerror)
            if os.fork() == 0:
                os.set_inheritable(held, True)
                os.execvp("sh", ["sh", "-c", f"sleep 0.3; (: >> /proc/self/fd/{held}) || echo refused"])
        """
        code, out = await host.exec(pod, "/proc/self/exe", "-I", "-S", "-c", textwrap.dedent(attack))
        assert "Text file busy" in out or "Read-only file system" in out, out
        assert code == 0
        code, out = await host.exec(pod, "sh", "-c", "exec 9</proc/1/exe; echo")
        assert code == 0

    with_runtime(tmp_path, play)


# Files of the machine, the node and other Pods


@pytest.mark.parametrize("security", [{}, RESTRICTED])
def test_a_container_sees_neither_the_state_of_the_node_nor_home_directories(tmp_path: Path, security: Any) -> None:
    async def play(host: RuntimeFixture) -> None:
        victim = host.pod("victim")
        secret = tmp_path / "node" / "pods" / "victim" / "volumes" / "secret"
        secret.mkdir(parents=True)
        (secret / "password").write_text("blue-otter-51")
        other = await host.start(victim, "sleep", "1000", environment={"PASSWORD": "blue-otter-51"})
        pod = host.pod(security=security)
        script = f"""
            cat {other.directory}/launch.json {secret}/password
            ls {tmp_path}/node ~root/.ssh /home
            cat /etc/shadow /etc/ssh/*key
            grep -a blue-otter-5[1] /proc/*/environ /proc/*/cmdline
            grep -ra blue-otter-5[1] /dev /run /var /tmp /srv 2>/dev/null
            echo done
        """
        said = await host.shell(pod, script)
        assert "blue-otter-51" not in said
        assert said.splitlines()[-1] == "done"
        assert f"cannot access '{tmp_path}/node'" in said
        assert "/etc/shadow: No such file" in said

    with_runtime(tmp_path, play)


def test_an_exposed_directory_hides_the_state_that_lies_in_it(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        (tmp_path / "program").write_text("#!/bin/sh\necho it runs\n")
        (tmp_path / "program").chmod(0o755)
        pod = host.pod(security=RESTRICTED)
        said = await host.shell(pod, f"{tmp_path}/program; ls -A {tmp_path}/node; touch {tmp_path}/new || echo refused")
        assert said.startswith("it runs")
        assert "refused" in said.splitlines()
        assert "pods" not in said

    os.chmod(tmp_path, 0o755)
    with_runtime(tmp_path, play, exposed=[tmp_path])


@pytest.mark.parametrize("path", ["node/pods/victim/volumes/secret", "node", "node/pods/u1"])
def test_a_working_directory_among_the_state_of_the_node_is_an_empty_one(tmp_path: Path, path: str) -> None:
    """`chdir` came before `setuid`: a Pod whose workingDir was another's volume read its Secrets."""

    async def play(host: RuntimeFixture) -> None:
        secret = tmp_path / "node" / "pods" / "victim" / "volumes" / "secret"
        secret.mkdir(parents=True)
        (secret / "password").write_text("blue-otter-51")
        pod = host.pod(security=RESTRICTED)
        said = await host.shell(pod, "ls -AR; cat password; echo", working_dir=f"{tmp_path}/{path}")
        assert "blue-otter-51" not in said
        assert "password" not in said.replace("cat: password: No such file or directory", "")

    with_runtime(tmp_path, play)


def test_a_working_directory_is_entered_with_the_users_rights(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        closed = tmp_path / "volume" / "closed"
        closed.mkdir(parents=True, mode=0o700)
        mounts = [Mount(tmp_path / "volume", "/volume")]
        said = await host.shell(host.pod(security=RESTRICTED), "pwd", mounts=mounts, working_dir="/volume/closed")
        assert said == 'workingDir "/volume/closed": permission denied\ncode 128'

    with_runtime(tmp_path, play)


def test_links_in_a_volume_lead_nowhere_but_to_the_containers_own_root(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        volume, outside = tmp_path / "volume", tmp_path / "outside"
        for each in (volume, outside):
            each.mkdir()
        (outside / "file").write_text("secret")
        (volume / "out").symlink_to("/srv")
        (volume / "up").symlink_to("../../../../../../../../../../..")
        (volume / "dangling").symlink_to(outside)
        message = tmp_path / "message"
        message.touch()
        pod = host.pod()
        pod.spec.containers[0].termination_message_path = "/volume/out/message"
        mounts = [Mount(volume, "/volume"), Mount(outside, "/volume/out/inner")]
        script = f"ls /volume/up{tmp_path}; ls /volume/out/ /srv/inner; cat /volume/dangling/file"
        script += "; echo last words > /srv/message"
        said = await host.shell(pod, script, mounts=mounts, message=message, working_dir="/volume/out/work")
        assert "secret" not in said
        assert {"inner", "message", "work", "file"} <= set(said.split())
        assert said.count("No such file") == 2
        assert message.read_text() == "last words\n"
        assert not {"inner", "message", "work"} & set(os.listdir("/srv"))
        mounts = [Mount(volume, "/volume"), Mount(volume, "/volume/dangling/inner")]
        assert (await host.shell(pod, "true", mounts=mounts, attempt=1)).endswith("code 128")
        assert os.listdir(outside) == ["file"]

    with_runtime(tmp_path, play)


@pytest.mark.parametrize("target", ["/proc", "/proc/self", "/proc/sys", "/volume/link/x", "/dev/fd/../../proc/1"])
def test_nothing_is_mounted_over_proc(tmp_path: Path, target: str) -> None:
    """CVE-2019-16884: a volume over /proc hides what confines the container."""

    async def play(host: RuntimeFixture) -> None:
        volume = tmp_path / "volume"
        volume.mkdir()
        (volume / "link").symlink_to("/proc")
        (volume / "x").mkdir()
        mounts = [Mount(volume, "/volume"), Mount(volume, target)]
        said = await host.shell(host.pod(), "echo it runs", mounts=mounts)
        assert "it runs" not in said
        assert said.endswith("code 128")

    with_runtime(tmp_path, play)


def test_what_a_container_writes_stays_in_its_own_root(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        name = f"of-{tmp_path.name}"
        script = f"echo x > /{name} && echo x > /tmp/{name} && echo x > /etc/{name} && echo written"
        assert await host.shell(host.pod(), script) == "written"
        assert await host.shell(host.pod(), f"ls /{name} /tmp/{name}", attempt=1) != "written"
        assert not any(Path(each, name).exists() for each in ("/", "/tmp", "/etc"))
        said = await host.shell(host.pod("u2"), f"echo x > /usr/{name}; echo x > /bin/{name}; cat /{name}")
        assert said.count("Read-only file system") == 2
        assert "No such file" in said

    with_runtime(tmp_path, play)


def test_a_read_only_root_is_one_and_volumes_are_not(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        volume = tmp_path / "volume"
        volume.mkdir()
        pod = host.pod(security={"readOnlyRootFilesystem": True})
        script = "for each in / /tmp /etc /home/container /run /dev /volume; do touch $each/new && echo $each; done"
        said = await host.shell(pod, script, mounts=[Mount(volume, "/volume")])
        assert [line for line in said.splitlines() if line.startswith("/")] == ["/dev", "/volume"]

    with_runtime(tmp_path, play)


def test_state_of_the_node_is_for_its_user_alone(tmp_path: Path) -> None:
    """`launch.json`, with Secrets in it, was 0644 in directories that were 0755."""

    async def play(host: RuntimeFixture) -> None:
        os.umask(0o022)
        await host.start(host.pod(containers=2), "sleep", "1000", tty=True, environment={"A": "secret"})
        await host.start(host.pod("u2", security=RESTRICTED), "sleep", "1000")
        open_to_others: list[str] = []
        for directory, names, files in os.walk(tmp_path / "node"):
            own = ("root", "layer", "templates", "shm")  # a container's own files, below what is closed
            names[:] = [each for each in names if each not in own]
            found = (directory, *(f"{directory}/{name}" for name in files))
            open_to_others += [each for each in found if stat.S_IMODE(os.lstat(each).st_mode) & 0o077]
        assert open_to_others == []
        assert stat.S_IMODE(host.log_of(host.pod()).stat().st_mode) == 0o600

    with_runtime(tmp_path, play)


def test_state_that_an_earlier_version_left_open_is_closed(tmp_path: Path) -> None:
    home = tmp_path / "node" / "pods" / "u1" / "containers"
    home.mkdir(parents=True, mode=0o755)
    (tmp_path / "node").chmod(0o755)

    async def play(host: RuntimeFixture) -> None:
        for each in (tmp_path / "node", tmp_path / "node" / "pods", home.parent, home):
            assert stat.S_IMODE(each.stat().st_mode) == 0o700

    with_runtime(tmp_path, play)


# Processes


def test_a_container_sees_and_signals_no_process_but_its_own(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        victim = subprocess.Popen(["sleep", "1000"], user=1000, group=1000, extra_groups=[])
        try:
            pod = host.pod(security=RESTRICTED)
            script = f"""
                import os, signal
                print(sorted(int(each) for each in os.listdir("/proc") if each.isdigit()) == [1])
                for pid in ({victim.pid}, {os.getpid()}):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        print("no such process")
            """
            assert (await host.python(pod, script)).split("\n") == ["True", "no such process", "no such process"]
            assert victim.poll() is None
        finally:
            victim.kill()
            victim.wait()

    with_runtime(tmp_path, play)


@pytest.mark.parametrize("spec", [{}, {"hostPID": True}, {"shareProcessNamespace": True}])
def test_nothing_that_a_container_hides_survives_it(tmp_path: Path, spec: Any) -> None:
    """Double forks, sessions of their own, ignored signals, variables that are no more."""

    async def play(host: RuntimeFixture) -> None:
        pod = host.pod(containers=2, **spec)
        hidden = f"1000.{os.getpid()}"
        script = f"""
            trap '' TERM HUP
            (setsid env -i sh -c 'trap "" TERM HUP; setsid env -i sleep {hidden} & wait' </dev/null >/dev/null 2>&1 &)
            sleep 0.3
            exit 5
        """
        stays = await host.start(pod, "sleep", "1000", name="d")
        container = await host.start(pod, "sh", "-c", script)
        await host.until(lambda: container.exit is not None)
        assert container.exit is not None
        assert container.exit.code == 5
        await host.until(lambda: not processes_with(hidden))
        assert stays.exit is None

    with_runtime(tmp_path, play)


def test_nothing_of_a_container_survives_its_keeper(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        hidden = f"1001.{os.getpid()}"
        script = f"import ctypes, os; ctypes.CDLL(None).prctl(1, 0); os.execvpe('sleep', ['sleep', '{hidden}'], {{}})"
        container = await host.start(host.pod(), sys.executable, "-I", "-S", "-c", script)
        await host.until(lambda: processes_with(hidden))
        os.kill(container.state.shim, signal.SIGKILL)  # of which it would not have been told
        await host.until(lambda: container.exit is not None and not processes_with(hidden))

    with_runtime(tmp_path, play)


def test_containers_of_a_pod_share_what_a_pod_shares(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        pods = {
            "apart": host.pod("apart", containers=2),
            "together": host.pod("together", containers=2, shareProcessNamespace=True),
            "host": host.pod("host", containers=2, hostPID=True, hostIPC=True, hostNetwork=True),
        }
        for kind, pod in pods.items():
            one = await host.start(pod, "sleep", "1000")
            two = await host.start(pod, "sleep", "1000", name="d")
            shared = {
                name for name in ("pid", "ipc", "uts", "mnt", "net", "cgroup") if _ns(one, name) == _ns(two, name)
            }
            machine = {name for name in shared if _ns(one, name) == os.readlink(f"/proc/self/ns/{name}")}
            assert machine == ({"pid", "ipc", "uts", "net"} if kind == "host" else set())
            wanted = {"apart": {"ipc", "uts", "net"}, "together": {"pid", "ipc", "uts", "net"}}
            assert shared == wanted.get(kind, {"pid", "ipc", "uts", "net"})
            code, out = await host.exec(pod, "hostname")
            assert (code, out.strip()) == (0, socket.gethostname() if kind == "host" else f"p-{kind}")

    with_runtime(tmp_path, play)


def _ns(container: ProcessContainer, name: str) -> str:
    return os.readlink(first_process(container) / "ns" / name)


# What a container may do


def status_of(container: ProcessContainer) -> dict[str, str]:
    lines = (first_process(container) / "status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@pytest.mark.parametrize(
    ("security", "effective", "bounding"),
    [
        ({}, 0x5FB, 0x5FB),
        ({"capabilities": {"drop": ["ALL"]}}, 0, 0),
        ({"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}, 1 << 12, 1 << 12),
        ({"capabilities": {"drop": ["CHOWN"], "add": ["CAP_SYS_TIME"]}}, 0x5FA | 1 << 25, 0x5FA | 1 << 25),
        ({"runAsUser": 1000}, 0, 0x5FB),
        ({"runAsUser": 1000, "capabilities": {"drop": ["ALL"]}}, 0, 0),
    ],
)
def test_capabilities_are_those_that_were_granted(tmp_path: Path, security: Any, effective: int, bounding: int) -> None:
    async def play(host: RuntimeFixture) -> None:
        pod = host.pod(security=security)
        container = await host.start(pod, "sleep", "1000")
        said = status_of(container)
        assert {name: int(said[name], 16) for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")} == {
            "CapEff": effective,
            "CapPrm": effective,
            "CapBnd": bounding,
            "CapInh": 0,
            "CapAmb": 0,
        }
        code, out = await host.exec(pod, "grep", "Cap", "/proc/self/status")
        assert code == 0
        assert {line.split()[0][:-1]: line.split()[1] for line in out.splitlines()} == {
            name: said[name] for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb")
        }

    with_runtime(tmp_path, play)


def test_users_groups_and_restrictions_are_the_same_for_the_container_and_for_commands_in_it(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        groups = {"supplementalGroups": [3000], "fsGroup": 2000}
        pod = host.pod(containers=2, security=RESTRICTED, securityContext=groups)
        container = await host.start(pod, "sleep", "1000")
        assert container.user is not None
        assert container.user.linux is not None
        assert (container.user.linux.uid, container.user.linux.gid) == (1000, 1000)
        assert container.user.linux.supplemental_groups == [1000, 2000, 3000]
        seconds = f"1002.{os.getpid()}"
        session = await host.runtime.exec(pod, "c", ["sleep", seconds], stdin=False, tty=False)
        await host.until(lambda: processes_with(seconds))
        (command,) = processes_with(seconds)
        for pid in (container.state.pid, command):
            lines = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
            wanted = {"Uid": "1000\t" * 3 + "1000", "Gid": "1000\t" * 3 + "1000", "Groups": "2000 3000 "}
            wanted |= {"NoNewPrivs": "1", "Seccomp": "2", "CapBnd": "0" * 16}
            assert {name: lines[name] for name in wanted} == wanted
        for name in ("pid", "mnt", "ipc", "uts", "cgroup", "net", "user"):
            assert os.readlink(f"/proc/{command}/ns/{name}") == _ns(container, name)
        assert Path(f"/proc/{command}/cgroup").read_text() == (first_process(container) / "cgroup").read_text()
        assert os.readlink(f"/proc/{command}/root") == os.readlink(first_process(container) / "root")
        assert os.readlink(f"/proc/{command}/cwd") == os.readlink(first_process(container) / "cwd")
        await session.close()

    with_runtime(tmp_path, play)


ATTEMPTS = """
    import ctypes, os, socket
    libc = ctypes.CDLL(None, use_errno=True)
    def attempt(name, *arguments):
        ctypes.set_errno(0)
        result = getattr(libc, name)(*arguments)
        print(name, "done" if result >= 0 else os.strerror(ctypes.get_errno()))
    attempt("unshare", 0x10000000)
    attempt("unshare", 0x00020000)
    attempt("mount", b"none", b"/tmp", b"tmpfs", 0, None)
    attempt("umount2", b"/proc", 2)
    attempt("syscall", NUMBERS["keyctl"], 0, -3, 1)
    attempt("syscall", NUMBERS["add_key"], b"user", b"a", b"b", 1, -3)
    attempt("syscall", NUMBERS["bpf"], 0, 0, 0)
    attempt("syscall", NUMBERS["perf_event_open"], 0, 0, -1, -1, 0)
    attempt("syscall", 425, 8, 0)
    attempt("syscall", 428, -100, b"/", 1)
    attempt("syscall", NUMBERS["clone"], 0x10000000 | 17, 0, 0, 0, 0)
    attempt("swapon", b"/tmp/x", 0)
    attempt("mknod", b"/tmp/disk", 0o60666, 0x0800)
    attempt("chroot", b"/tmp")
    attempt("setuid", 0)
    attempt("sethostname", b"mine", 4)
"""
NUMBERS = {
    "x86_64": {"keyctl": 250, "add_key": 248, "bpf": 321, "perf_event_open": 298, "clone": 56},
    "aarch64": {"keyctl": 219, "add_key": 217, "bpf": 280, "perf_event_open": 241, "clone": 220},
}.get(os.uname().machine, {})


# mknod is a matter of the directory first: /tmp is not writable if the interpreter is below it.
_REJECTED = ("Operation not permitted", "mknod Permission denied")


def test_the_seccomp_filter_of_a_restricted_container_is_effective(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        script = textwrap.dedent(ATTEMPTS).replace("NUMBERS", repr(NUMBERS))
        pod = host.pod(security=RESTRICTED)
        said = (await host.python(pod, script)).splitlines()
        assert len(said) == 16
        assert [line for line in said if not line.endswith(_REJECTED)] == []
        await host.start(pod, "sleep", "1000", attempt=1)
        code, out = await host.exec(pod, sys.executable, "-I", "-S", "-c", script)
        assert code == 0
        assert [line for line in out.splitlines() if not line.endswith(_REJECTED)] == []

    with_runtime(tmp_path, play)


def test_root_in_a_container_is_not_root_of_the_machine(tmp_path: Path) -> None:
    """Without a filter, and as root, which is what a Pod gets that asks for nothing."""

    async def play(host: RuntimeFixture) -> None:
        script = """
            mount -t tmpfs none /tmp; umount /proc; hostname mine
            echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger; echo x > /sys/kernel/uevent_helper
            cat /proc/kcore | head -c 1 | wc -c; cat /proc/timer_list | wc -c; ls /sys/firmware | wc -l
            chroot /proc/1/root true || echo no chroot
            nsenter -t 1 -m true || echo no nsenter
            date -s 2000-01-01 >/dev/null || echo no time
        """
        said = await host.shell(host.pod(), script)
        for each in ("no chroot", "no nsenter", "no time"):
            assert each in said
        assert said.splitlines().count("0") == 3
        assert "must be superuser" in said or "permission denied" in said.lower()

    with_runtime(tmp_path, play)


def test_devices_that_a_container_makes_do_not_work(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        volume = tmp_path / "volume"
        volume.mkdir()
        pod = host.pod(security={"capabilities": {"add": ["MKNOD"]}})
        script = "for each in /tmp /dev /volume /dev/shm; do mknod $each/made c 1 5; head -c 1 $each/made | wc -c; done"
        said = await host.shell(pod, script, mounts=[Mount(volume, "/volume")])
        assert said.count("Permission denied") == 4
        assert [line for line in said.splitlines() if line.isdigit()] == ["0"] * 4
        assert await host.shell(host.pod("u2"), "head -c 5 /dev/zero | wc -c; echo x > /dev/null") == "5"

    with_runtime(tmp_path, play)


def test_a_program_with_setuid_gives_nothing_where_escalation_is_not_allowed(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        volume = tmp_path / "volume"
        volume.mkdir()
        shutil.copy("/usr/bin/id", volume / "id")
        (volume / "id").chmod(0o4755)
        mounts = [Mount(volume, "/volume")]
        pod = host.pod(security={"runAsUser": 1000, "allowPrivilegeEscalation": False})
        assert await host.output(pod, "/volume/id", "-u", mounts=mounts) == "1000"
        allowed = host.pod("u2", security={"runAsUser": 1000})
        assert await host.output(allowed, "/volume/id", "-u", mounts=mounts) == "0"

    with_runtime(tmp_path, play)


def test_a_privileged_container_has_the_devices_and_capabilities_of_the_machine(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        pod = host.pod(security={"privileged": True})
        script = (
            "ls /dev | wc -l; mount -t tmpfs none /mnt 2>/dev/null || mkdir /mnt && mount -t tmpfs none /mnt && echo ok"
        )
        said = (await host.shell(pod, script)).splitlines()
        assert int(said[0]) > 20
        assert said[-1] == "ok"
        assert not os.path.ismount("/mnt")

    with_runtime(tmp_path, play)


def test_a_user_namespace_maps_to_unused_host_ids(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        volume = tmp_path / "volume"
        volume.mkdir(mode=0o755)
        pod, other = (host.pod(uid, hostUsers=False) for uid in ("u1", "u2"))
        script = "id -u; echo x > /volume/file && stat -c %u /volume/file; touch /tmp/own && echo written; sleep 1000"
        container = await host.start(pod, "sh", "-c", script, mounts=[Mount(volume, "/volume")])
        second = await host.start(other, "sleep", "1000")
        await host.until(lambda: "written" in host.log_of(pod).read_text())
        said = [line.split(" ", 3)[3] for line in host.log_of(pod).read_text().splitlines()]
        assert said == ["0", "0", "written"]
        assert (volume / "file").stat().st_uid == 0  # on the disk: mounts map it
        ids = {int(status_of(each)["Uid"].split()[0]) for each in (container, second)}
        assert len(ids) == 2
        assert min(ids) >= 65536
        assert _ns(container, "user") != os.readlink("/proc/self/ns/user")
        code, out = await host.exec(pod, "sh", "-c", "id -u; cat /volume/file; ls -d /usr; kill -0 1 && echo own")
        assert (code, out) == (0, "0\nx\n/usr\nown\n")

    with_runtime(tmp_path, play)


def test_state_may_lie_on_layers_and_have_any_name(tmp_path: Path) -> None:
    """Where layers cannot be mounted on layers, the root is a copy; and ids that cannot be mapped are refused."""
    for name in ("lower", "upper", "work", "at"):
        (tmp_path / name).mkdir()
    layers = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    mounted = ["mount", "-t", "overlay", "overlay", "-o", layers, f"{tmp_path}/at"]
    if subprocess.run(mounted, check=False, capture_output=True).returncode != 0:
        pytest.skip("this kernel has no overlay")

    async def play(host: RuntimeFixture) -> None:
        assert (
            await host.shell(host.pod(), "echo x > /file; cat /file; ls -d /usr /etc/passwd") == "x\n/etc/passwd\n/usr"
        )

    async def mapped(host: RuntimeFixture) -> None:
        said = await host.output(host.pod(hostUsers=False), "true")
        assert said.startswith("hostUsers: false needs a file system with id-mapped mounts")
        assert said.endswith("code 128")

    try:
        with_runtime(tmp_path / "at" / "a: b, c", play)
        with_runtime(tmp_path / "at" / "d", mapped)
    finally:
        subprocess.run(["umount", "-l", f"{tmp_path}/at"], check=True)
    with_runtime(tmp_path / "a: b, c\\d", play)


# Commands


CATCHING = """
    import os
    allowed, seen, mine = None, False, {"1", str(os.getpid())}
    while True:
        for pid in os.listdir("/proc"):
            if not pid.isdigit():
                continue
            try:
                if os.path.exists(f"/proc/{pid}/rootSTATE"):
                    print("the machine's root", flush=True)
                with open(f"/proc/{pid}/status") as file:
                    has = next(line.split()[1] for line in file if line.startswith("CapPrm"))
            except OSError:
                continue
            allowed = allowed or int(open("/proc/self/status").read().split("CapPrm:")[1].split()[0], 16)
            if int(has, 16) & ~allowed:
                print("more capabilities", has, flush=True)
            if pid not in mine and not seen:
                seen = True
                print("another", flush=True)
"""


@pytest.mark.parametrize("what", ["command", "container"])
def test_a_process_on_its_way_in_cannot_be_caught_with_the_nodes_rights(tmp_path: Path, what: str) -> None:
    """CVE-2016-9962: a container that may trace reached the machine's root through a process that was about to join."""

    async def play(host: RuntimeFixture) -> None:
        shares = what == "container"
        security = {"capabilities": {"add": ["SYS_PTRACE"]}}
        pod = host.pod(containers=2, security=security, shareProcessNamespace=shares)
        script = textwrap.dedent(CATCHING).replace("STATE", f"{tmp_path}/node")
        await host.start(pod, sys.executable, "-I", "-S", "-c", script)
        for number in range(20):
            if shares:
                assert await host.output(pod, "sleep", "0.01", name="d", attempt=number) == ""
            else:
                assert await host.exec(pod, "sleep", "0.01") == (0, "")
        said = host.log_of(pod).read_text()
        assert "another" in said
        assert "the machine's root" not in said
        assert "more capabilities" not in said

    with_runtime(tmp_path, play)


def test_a_command_that_hides_does_not_outlive_the_container(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        pod = host.pod()
        container = await host.start(pod, "sleep", "1000")
        hidden = f"1003.{os.getpid()}"
        script = f"(setsid env -i sleep {hidden} </dev/null >/dev/null 2>&1 &)"
        assert await host.exec(pod, "sh", "-c", script) == (0, "")
        await host.until(lambda: processes_with(hidden))
        await container.stop(0.0)
        await host.until(lambda: not processes_with(hidden))

    with_runtime(tmp_path, play)


def test_a_command_whose_children_hold_its_streams_ends(tmp_path: Path) -> None:
    """`kubectl exec` hung for as long as something held the streams."""

    async def play(host: RuntimeFixture) -> None:
        pod = host.pod()
        await host.start(pod, "sleep", "1000")
        assert await host.exec(pod, "sh", "-c", "sleep 1000 & echo begun; exit 3") == (3, "begun\n")

    with_runtime(tmp_path, play)


def test_a_command_ends_with_its_container_and_its_client_is_told(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        pod = host.pod()
        container = await host.start(pod, "sleep", "1000")
        session = await host.runtime.exec(pod, "c", ["sleep", "1000"], stdin=False, tty=True)
        await container.stop(0.0)
        async with host.world.clock.timeout(PATIENCE):
            assert await session.wait() == 137
            assert await session.read() is None
        await session.close()
        with pytest.raises(ExecError, match="container not found"):
            await host.exec(pod, "true")

    with_runtime(tmp_path, play)


def test_a_command_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        pod = host.pod()
        await host.start(pod, "sleep", "1000")
        for command, message in (
            ("no-such-command", r"executable file not found in \$PATH"),
            ("/no/such", "no such file or directory"),
            ("/etc/passwd", "permission denied"),
        ):
            with pytest.raises(ExecError, match=message):
                await host.exec(pod, command)
        assert await host.exec(pod, "true") == (0, "")

    with_runtime(tmp_path, play)


def test_unsupported_settings_are_rejected_unless_the_node_is_insecure(tmp_path: Path) -> None:
    async def play(host: RuntimeFixture) -> None:
        pod = host.pod(security={"seLinuxOptions": {"level": "s0:c1"}})
        with pytest.raises(
            StartError, match=r"spec.containers\[c\].securityContext.seLinuxOptions: .*insecure"
        ) as caught:
            await host.start(pod, "true")
        assert caught.value.reason == "CreateContainerConfigError"

    async def insecure(host: RuntimeFixture) -> None:
        pod = host.pod(security={"seLinuxOptions": {"level": "s0:c1"}, "runAsUser": 1000})
        assert await host.output(pod, "id", "-u") == "1000"

    with_runtime(tmp_path, play)
    with_runtime(tmp_path, insecure, insecure=True)
