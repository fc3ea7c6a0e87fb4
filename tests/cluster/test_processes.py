"""`ostinato up` in several processes: each is restarted if it dies, and none outlives the command."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from ostinato.api.codec import from_dict
from ostinato.api.errors import APIError
from ostinato.client import Client, Config
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import Pod, ServiceAccount
from tests.cluster.planes import PlaneProcess, parts_of

PATIENCE = 60.0
# Kills of each part, and interrupted starts: `OSTINATO_KILLS=100 pytest tests/cluster/test_processes.py`.
KILLS = int(os.environ.get("OSTINATO_KILLS", "1"))
PARTS = ("apiserver", "controllers,scheduler", "nodes")

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")
T = TypeVar("T")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[PlaneProcess]:
    if request.config.getoption("--cluster"):
        pytest.skip("only a plane of our own is killed")
    process = PlaneProcess(tmp_path_factory.mktemp("processes"), "--processes", "3")
    process.start()
    asyncio.run(begin(process))
    yield process
    asyncio.run(end(process))
    assert process.stop() == 0, process.log()[-2000:]


async def begin(plane: PlaneProcess) -> None:
    async with client_of(plane) as client:
        await eventually(lambda: client.get(ServiceAccount, "default", missing=None), bool)
        await client.create(deployment(1))
        await running(client, 1)


async def end(plane: PlaneProcess) -> None:
    async with client_of(plane) as client:
        await client.delete(Deployment, "web", propagation="Foreground")
        await eventually(lambda: client.list(Pod, labels="app=web"), lambda found: not found)


def client_of(plane: PlaneProcess) -> Client:
    return Client.connect(Config.load(path=plane.kubeconfig))


async def eventually(get: Callable[[], Awaitable[T]], holds: Callable[[T], object]) -> T:
    """Wait until a condition holds; a request that fails is repeated."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found: object = None
        try:
            found = value = await get()
            if holds(value):
                return value
        except (APIError, TransportError) as error:
            found = error
        assert time.monotonic() < deadline, found
        await asyncio.sleep(0.05)


def deployment(replicas: int) -> Deployment:
    container = {"name": "c", "image": "i", "command": ["sh", "-c", "echo started; while :; do sleep 0.5; done"]}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return from_dict(
        Deployment,
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec},
    )


async def running(client: Client, count: int) -> set[str]:
    """Wait until this many Pods run; return their uids and container ids."""

    def all_run(pods: list[Pod]) -> bool:
        return len(pods) == count and all(pod.status.phase == "Running" for pod in pods)

    async def pods() -> list[Pod]:
        return [pod for pod in await client.list(Pod, labels="app=web") if pod.metadata.deletion_timestamp is None]

    found = await eventually(pods, all_run)
    return {f"{pod.metadata.uid} {status.container_id}" for pod in found for status in pod.status.container_statuses}


def kill(plane: PlaneProcess, part: str) -> None:
    """Kill the process of a part, as soon as there is one, at a random moment of its start or its work."""
    deadline = time.monotonic() + PATIENCE
    while part not in plane.parts():
        assert time.monotonic() < deadline, plane.log()[-2000:]
        time.sleep(0.01)
    os.kill(plane.parts()[part], signal.SIGKILL)


@pytest.mark.parametrize("part", PARTS)
def test_a_process_that_is_killed_is_restarted_and_pods_keep_running(plane: PlaneProcess, part: str) -> None:
    async def scenario() -> None:
        before, port = await pods(1), Config.load(path=plane.kubeconfig).server
        old = plane.parts()[part]
        for number in range(KILLS):
            if number:
                await asyncio.sleep(random.uniform(0, 3))
            kill(plane, part)
        assert await pods(1) == before, "the containers were adopted"
        async with client_of(plane) as client:
            assert Config.load(path=plane.kubeconfig).server == port
            await eventually(lambda: logs(client), lambda text: text == "started\n")
            await eventually(lambda: scale(client, 2), bool)
            assert before < await running(client, 2)
            await eventually(lambda: scale(client, 1), bool)
            await running(client, 1)
        assert plane.parts().keys() == set(PARTS)
        assert plane.parts()[part] != old
        assert f"restarting component={part}" in plane.log()

    async def pods(count: int) -> set[str]:
        async with client_of(plane) as client:
            return await running(client, count)

    asyncio.run(scenario())


async def scale(client: Client, replicas: int) -> Deployment:
    found = await client.get(Deployment, "web")
    found.spec.replicas = replicas
    return await client.update(found)


async def logs(client: Client) -> str:
    (pod, *_) = await client.list(Pod, labels="app=web")
    return await client.pods.log(pod.metadata.name)


def test_all_processes_end_with_the_command_and_their_state_can_be_used_at_once(tmp_path: Path) -> None:
    plane = PlaneProcess(tmp_path, "--processes", "2", "--nodes", "0")
    plane.start()
    parts = plane.parts()
    assert parts.keys() == {"apiserver", "controllers,scheduler"}
    plane.kill()
    plane.start()
    try:
        assert not [pid for pid in parts.values() if exists(pid)]
        refused = refusal(command(tmp_path, "--processes", "2"))
        assert refused.returncode == 1
        assert refused.stderr == (
            f"ostinato up: the state directory {tmp_path / 'state'} is in use by process {plane.pid}; "
            "choose another directory with --state\n"
        )
    finally:
        assert plane.stop() == 0, plane.log()
    assert plane.log() == ""


def command(directory: Path, *options: str) -> list[str]:
    start = [sys.executable, "-m", "ostinato.cli", "up", "--state", str(directory / "state")]
    return [*start, "--listen", "127.0.0.1:0", "--nodes", "0", *options]


def refusal(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=False)


def exists(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("attempt", range(KILLS))
def test_an_interrupted_start_leaves_nothing_behind(tmp_path: Path, attempt: int) -> None:
    process = subprocess.Popen(
        command(tmp_path, "--processes", "3"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + PATIENCE
    while not (started := parts_of(process.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(random.uniform(0, 0.2 if KILLS == 1 else 2.5))
    process.send_signal(signal.SIGINT)
    _, log = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert log == ""
    assert not [pid for pid in started.values() if exists(pid)]


def test_a_port_in_use_is_reported_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = refusal([*command(tmp_path, "--processes", "2"), "--listen", f"127.0.0.1:{port}"])
    assert refused.returncode == 1
    assert refused.stderr == (
        f"ostinato up: port {port} on 127.0.0.1 is in use; choose another with --listen, or port 0 for a free one\n"
    )
