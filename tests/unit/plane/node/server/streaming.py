"""A server with one node whose containers are played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tests.stage.server import started_server

from ostinato.api.gvk import NamespacedName
from ostinato.client.client import Client
from ostinato.client.patching import MergePatch
from ostinato.kinds.core_v1 import Pod
from ostinato.plane.node.runtimes import ExecError, Runtime, Session, Usage
from ostinato.plane.node.server.pod_streams import PodStreams
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.request import Request
from ostinato.streams.upgrade import Upgrade
from ostinato.world import Simulation

MANIFEST: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default", "uid": "u"},
    "spec": {
        "nodeName": "n",
        "containers": [{"name": "c", "image": "i", "command": ["x"]}, {"name": "d", "image": "i", "tty": True}],
    },
}
RUNNING: dict[str, Any] = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def ended(code: int = 0) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "containerID": "process://1"}}


def container_status(
    state: dict[str, Any], *, name: str = "c", restarts: int = 0, last: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {
        "name": name,
        "state": state,
        "lastState": last or {},
        "restartCount": restarts,
        "image": "i",
        "imageID": "",
        "ready": True,
    }


class PlayedSession:
    """A command: `echo` repeats its input in capitals, `exit` ends with a code, `hang` never ends."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self.sizes: list[tuple[int, int]] = []
        self.closed = False
        self.outputs: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self.code = 0
        match words:
            case ["exit", code]:
                self.outputs.put_nowait((2, b"failing\n"))
                self.outputs.put_nowait(None)
                self.code = int(code)
            case ["say", text]:
                self.outputs.put_nowait((1, text.encode()))
                self.outputs.put_nowait((2, b"aside"))
                self.outputs.put_nowait(None)

    async def read(self) -> tuple[int, bytes] | None:
        return await self.outputs.get()

    async def write(self, data: bytes) -> None:
        self.outputs.put_nowait((1, data.upper()))

    async def close_input(self) -> None:
        self.outputs.put_nowait(None)

    async def resize(self, width: int, height: int) -> None:
        self.sizes.append((width, height))
        self.outputs.put_nowait((1, f"{width}x{height}".encode()))

    async def wait(self) -> int:
        return self.code

    async def close(self) -> None:
        self.closed = True


class PlayedRuntime:
    """Of a `Runtime`, what streams need."""

    def __init__(self) -> None:
        self.sessions: list[PlayedSession] = []
        self.attached: list[tuple[str, bool, bool]] = []
        self.used: dict[str, Usage] = {}

    async def exec(self, pod: Pod, container: str, command: Sequence[str], *, stdin: bool, tty: bool) -> Session:
        if command[0] == "nope":
            raise ExecError("no such program: nope")
        self.sessions.append(PlayedSession(command))
        return self.sessions[-1]

    async def attach(self, pod: Pod, container: str, *, stdin: bool, tty: bool) -> Session:
        self.attached.append((container, stdin, tty))
        self.sessions.append(PlayedSession(["echo"]))
        return self.sessions[-1]

    async def usage(self, pod: Pod) -> Mapping[str, Usage]:
        return self.used


class Stage:
    def __init__(self, world: Simulation, server: Server, logs: Path | None) -> None:
        self.world = world
        self.server = server
        self.runtime = PlayedRuntime()
        self.client = Client(InProcessTransport(server), world=world, namespace="default")
        self.streams = PodStreams(world, self.find, {"n": cast("Runtime", self.runtime)}, logs)
        server.nodes.add("n", self.streams.handle)

    async def find(self, key: NamespacedName) -> Pod | None:
        return await self.client.get(Pod, key, missing=None)

    async def begin(self, *statuses: dict[str, Any], phase: str = "Running") -> Pod:
        """Have the Pod there, with the statuses of its containers; c and d run if nothing is said."""
        for kind, name in (("Node", "n"), ("ServiceAccount", "default")):
            await self.client.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}})
        await self.client.create({"apiVersion": "v1", "kind": "Pod", **MANIFEST})
        return await self.say(*statuses, phase=phase)

    async def say(self, *statuses: dict[str, Any], phase: str = "Running") -> Pod:
        every = statuses or (container_status(RUNNING), container_status(RUNNING, name="d"))
        change = {"status": {"phase": phase, "containerStatuses": list(every)}}
        return await self.client.patch(Pod, "p", MergePatch(change), subresource="status")

    async def upgrade(self, path: str, query: str, headers: dict[str, str]) -> Upgrade:
        answer = await self.streams.handle(Request("POST", path, query, headers))
        assert isinstance(answer, Upgrade), f"{answer.status} {getattr(answer, 'body', b'')!r}"
        return answer


def stage(play: Callable[[Stage], Awaitable[None]], logs: Path | None = None) -> None:
    """Play it in virtual time."""
    world = Simulation(1)

    async def main() -> None:
        async with started_server(world) as server:
            await play(Stage(world, server, logs))

    world.run(main())
