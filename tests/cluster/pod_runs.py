"""Pods of a whole plane on this machine: run them, wait for them, read what they print."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

import msgspec

from ostinato.api.errors import NotFound
from ostinato.client import Client, Config
from ostinato.kinds.apps_v1 import Deployment
from ostinato.kinds.core_v1 import Pod, ServiceAccount
from tests.cluster.planes import PlaneProcess
from tests.unit.plane.network.machine import TestMachine

T = TypeVar("T")
SECONDS = 60
SERVE = ["python3", "-m", "http.server", "8000"]


def until(condition: Callable[[], T], what: str) -> T:
    end = monotonic() + SECONDS
    while not (found := condition()):
        assert monotonic() < end, f"no {what}"
        sleep(0.05)
    return found


@contextmanager
def plane_with_networks(here: TestMachine, directory: Path) -> Iterator[PlaneProcess]:
    """A plane whose Pods have networks of their own; in the end it has left nothing of them."""
    plane = PlaneProcess(directory, "--nodes", "1", "--runtime", "process")
    plane.start()
    yield plane
    remove_pods(plane)
    assert plane.stop() == 0, plane.log()[-2000:]
    until(lambda: not here.links(), "end of the links")


def ask(plane: PlaneProcess, act: Callable[[Client], Awaitable[T]]) -> T:
    async def asked() -> T:
        config = Config.load(path=plane.kubeconfig, namespace="default")
        async with Client.connect(config, field_manager="test") as client, asyncio.timeout(SECONDS):
            return await act(client)

    return asyncio.run(asked())


def create(plane: PlaneProcess, kind: type[T], content: dict[str, Any]) -> T:
    until(lambda: ask(plane, lambda client: client.get(ServiceAccount, "default", missing=None)), "service account")
    made = msgspec.convert(content, kind)
    return ask(plane, lambda client: client.create(made))  # type: ignore[arg-type,return-value]


def remove_pods(plane: PlaneProcess) -> None:
    async def removed(client: Client) -> None:
        for kind in (Deployment, Pod):
            async for each in client.list(kind, namespace=""):  # type: ignore[type-var]
                with suppress(NotFound):
                    await client.delete(each, grace_period=0)

    ask(plane, removed)
    until(lambda: not ask(plane, pods), "end of the Pods")
    until(lambda: not [name for _, name in socket.if_nameindex() if name.startswith("ostv")], "end of their links")


async def pods(client: Client) -> list[Pod]:
    return [each async for each in client.list(Pod, namespace="")]


def run(plane: PlaneProcess, name: str, *command: str, **more: Any) -> Pod:
    """A Pod that runs, or has run."""
    container = {"name": "c", "image": "none", "command": list(command), **more.pop("container", {})}
    labels = more.pop("labels", {})
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **more}
    create(plane, Pod, {"metadata": {"name": name, "labels": labels}, "spec": spec})

    def started() -> Pod | None:
        pod = ask(plane, lambda client: client.get(Pod, name))
        return pod if pod.status.phase in ("Running", "Succeeded", "Failed") else None

    return until(started, f"start of {name}: {plane.log()[-2000:]}")


def printed(plane: PlaneProcess, name: str) -> str:
    """What a Pod has printed, when it has ended."""

    def ended() -> bool:
        return ask(plane, lambda client: client.get(Pod, name)).status.phase in ("Succeeded", "Failed")

    until(ended, f"end of {name}")
    return kubectl(plane, "logs", name)


def kubectl(plane: PlaneProcess, *arguments: str) -> str:
    command = ["kubectl", "--kubeconfig", str(plane.kubeconfig), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=SECONDS).stdout


def fetched(url: str) -> str:
    """The answer at a URL; empty if there is none."""
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
