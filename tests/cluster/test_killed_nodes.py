"""A plane whose Pods are processes is killed under load: afterwards no Pod runs twice, and none is left over."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ostinato.api.codec import from_dict
from ostinato.client import Client, Config, MergePatch
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import Pod, ServiceAccount
from tests.cluster.planes import PlaneProcess

PATIENCE = 60.0
ROUNDS = 10

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are looked up in /proc")


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[PlaneProcess]:
    if request.config.getoption("--cluster"):
        pytest.skip("only a plane of our own is killed")
    process = PlaneProcess(tmp_path_factory.mktemp("killed"), "--nodes", "1", "--runtime", "process")
    process.start()
    yield process
    assert process.stop() == 0, process.log()[-2000:]


def deployment(replicas: int) -> Deployment:
    command = ["sh", "-c", "while :; do sleep 0.5; done"]
    pod = {
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "c", "image": "i", "command": command}],
    }
    return from_dict(
        Deployment,
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
            },
        },
    )


def running(state: Path) -> Counter[str]:
    """How many containers of each Pod run, by its uid: shells that carry the mark of this plane."""
    mark = f"OSTINATO_CONTAINER={state.resolve()}/".encode()
    found: Counter[str] = Counter()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                command = Path(f"/proc/{name}/cmdline").read_bytes()
                variables = Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            for each in variables:
                if each.startswith(mark) and command.startswith(b"sh\0"):
                    found[each.decode().partition("/pods/")[2].partition("/")[0]] += 1
    return found


async def alive(client: Client) -> set[str]:
    return {pod.metadata.uid for pod in await client.list(Pod, namespace="default")}


async def converges(plane: PlaneProcess, state: Path, replicas: int) -> None:
    client = Client.connect(Config.load(path=plane.kubeconfig))
    try:
        end = time.monotonic() + PATIENCE
        while True:
            found, pods = running(state), await alive(client)
            if len(pods) == replicas and found.keys() == pods and set(found.values()) <= {1}:
                return
            assert time.monotonic() < end, f"{replicas} Pods were wanted; there are {pods}, and these run: {found}"
            await asyncio.sleep(0.1)
    finally:
        await client.close()


def test_no_pod_runs_twice_and_none_is_left_over_however_often_the_plane_is_killed(plane: PlaneProcess) -> None:
    state = plane.kubeconfig.parent

    async def scale(replicas: int) -> None:
        client = Client.connect(Config.load(path=plane.kubeconfig))
        try:
            change = MergePatch({"spec": {"replicas": replicas}})
            await client.patch(Deployment, "web", change, namespace="default")
        finally:
            await client.close()

    async def begin() -> None:
        client = Client.connect(Config.load(path=plane.kubeconfig))
        try:
            await until_service_account(client)
            await client.create(deployment(4))
        finally:
            await client.close()

    asyncio.run(begin())
    asyncio.run(converges(plane, state, 4))
    for number in range(ROUNDS):
        replicas = 8 if number % 2 == 0 else 3
        asyncio.run(scale(replicas))
        time.sleep(0.05 * number)  # each time at another moment of the work
        plane.kill()
        plane.start()
        asyncio.run(converges(plane, state, replicas))
    asyncio.run(scale(0))
    asyncio.run(converges(plane, state, 0))


async def until_service_account(client: Client) -> None:
    end = time.monotonic() + PATIENCE
    while await client.get(ServiceAccount, "default", namespace="default", missing=None) is None:
        assert time.monotonic() < end, "there is no service account"
        await asyncio.sleep(0.1)
