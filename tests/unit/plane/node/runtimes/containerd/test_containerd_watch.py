"""Detection of container exits, by events and by relisting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest

from ostinato.grpc import Code, RpcError
from ostinato.plane.node.runtimes.containerd.container import CREATED, EXITED, RUNNING, CriContainer
from ostinato.plane.node.runtimes.containerd.cri import Message
from ostinato.plane.node.runtimes.containerd.watch import ContainerWatch
from ostinato.world import Simulation


class Containers:
    """A CRI with containers, and with or without events."""

    def __init__(self, *, tells: bool) -> None:
        self.is_real = tells
        self.states: dict[str, int] = {}
        self.calls: list[str] = []
        self.is_away = False
        self.events: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def status(self, key: str) -> dict[str, Any]:
        return {"id": key, "state": self.states[key], "exit_code": 4, "started_at": 10**9, "finished_at": 2 * 10**9}

    async def call(self, method: str, request: Message, within: float = 0) -> dict[str, Any]:
        self.calls.append(method)
        if self.is_away:
            raise RpcError(Code.UNAVAILABLE, "away")
        if method == "ListContainers":
            return {"containers": [{"id": key} for key, state in self.states.items() if state == RUNNING]}
        if method == "StopContainer":
            self.states[request["container_id"]] = EXITED
            return {}
        if request["container_id"] not in self.states:
            raise RpcError(Code.NOT_FOUND, "not found")
        return {"status": self.status(request["container_id"])}

    async def stream(self, method: str, request: Message) -> AsyncGenerator[dict[str, Any], None]:
        if not self.is_real:
            raise RpcError(Code.UNIMPLEMENTED, "unknown method")
        while (event := await self.events.get()) is not None:
            yield event


class Scene:
    def __init__(self, world: Simulation, *, tells: bool) -> None:
        self.clock = world.clock
        self.cri = Containers(tells=tells)
        self.watch = ContainerWatch(self.cri, world.clock)
        self.ended: list[str] = []

    def add(self, key: str) -> CriContainer:
        self.cri.states[key] = RUNNING
        container = CriContainer(self.cri, self.cri.status(key), self.clock)
        self.watch.add(container, lambda: self.ended.append(key))
        return container


def play(scene: Callable[[Scene], Awaitable[None]], *, tells: bool = True) -> None:
    world = Simulation(1)

    async def run() -> None:
        stage = Scene(world, tells=tells)
        try:
            await scene(stage)
        finally:
            await stage.watch.close()

    world.run(run())


def test_an_exit_event_is_handled() -> None:
    async def scene(stage: Scene) -> None:
        one, two = stage.add("one"), stage.add("two")
        await stage.clock.sleep(1)
        stage.cri.states["one"] = EXITED
        stage.cri.events.put_nowait({"container_id": "one", "container_event_type": 2})
        stage.cri.events.put_nowait({"container_id": "other", "container_event_type": 2})
        await stage.clock.sleep(0.01)
        assert stage.ended == ["one"]
        assert one.exit is not None
        assert one.exit.code == 4
        assert two.exit is None

    play(scene)


@pytest.mark.parametrize(("tells", "seconds"), [(True, 10), (False, 1)])
def test_an_exit_without_an_event_is_found_by_relisting(tells: bool, seconds: int) -> None:
    async def scene(stage: Scene) -> None:
        stage.add("one")
        await stage.clock.sleep(0.5)
        stage.cri.states["one"] = EXITED
        await stage.clock.sleep(seconds - 1)
        assert stage.ended == []
        await stage.clock.sleep(1.1)
        assert stage.ended == ["one"]

    play(scene, tells=tells)


def test_exits_are_found_after_the_event_stream_was_interrupted() -> None:
    async def scene(stage: Scene) -> None:
        stage.add("one")
        await stage.clock.sleep(1)
        stage.cri.states["one"] = EXITED
        stage.cri.events.put_nowait(None)
        await stage.clock.sleep(0.01)
        assert stage.ended == ["one"]

    play(scene)


def test_containers_stay_running_while_the_runtime_is_unavailable() -> None:
    async def scene(stage: Scene) -> None:
        container = stage.add("one")
        await stage.clock.sleep(1)
        stage.cri.is_away = True
        await stage.clock.sleep(60)
        assert container.exit is None
        stage.cri.is_away = False
        del stage.cri.states["one"]
        await stage.clock.sleep(11)
        assert stage.ended == ["one"]
        assert container.exit is not None
        assert (container.exit.code, container.exit.reason) == (137, "ContainerStatusUnknown")

    play(scene)


def test_no_requests_are_sent_without_watched_containers() -> None:
    async def scene(stage: Scene) -> None:
        stage.add("one")
        stage.watch.remove("one")
        await stage.clock.sleep(1)
        stage.cri.calls.clear()
        await stage.clock.sleep(3600)
        assert stage.cri.calls == []

    play(scene)


def test_stop_is_retried_until_the_container_has_exited() -> None:
    async def scene(stage: Scene) -> None:
        container = stage.add("one")
        stage.cri.is_away = True
        stopping = asyncio.ensure_future(container.stop(3))
        await stage.clock.sleep(5)
        stage.cri.is_away = False
        await stopping
        assert container.exit is not None
        await container.stop(3)

    play(scene)


def test_no_container_ends_before_it_starts() -> None:
    async def scene(stage: Scene) -> None:
        stage.cri.states["one"] = EXITED
        status = stage.cri.status("one") | {"started_at": 3 * 10**9}
        container = CriContainer(stage.cri, status, stage.clock)
        assert container.exit is not None
        assert container.exit.at == container.started_at

    play(scene)


def test_a_container_that_was_not_started_has_not_ended() -> None:
    async def scene(stage: Scene) -> None:
        stage.cri.states["one"] = CREATED
        assert CriContainer(stage.cri, stage.cri.status("one"), stage.clock).exit is None

    play(scene)


@pytest.mark.parametrize("tells", [True, False])
def test_many_exits_at_once_do_not_end_the_watch(tells: bool) -> None:
    async def scene(stage: Scene) -> None:
        keys = [f"c{n}" for n in range(40)]
        for key in keys:
            stage.add(key)
        await stage.clock.sleep(20)
        for key in keys:
            stage.cri.states[key] = EXITED
        stage.watch._watched["c0"] = (stage.watch._watched["c0"][0], lambda: stage.watch.remove("c1"))
        await stage.clock.sleep(20)
        assert sorted(stage.ended) == sorted(keys[2:])
        stage.add("later")
        await stage.clock.sleep(20)
        stage.cri.states["later"] = EXITED
        await stage.clock.sleep(20)
        assert stage.ended[-1] == "later"

    play(scene, tells=tells)


def test_an_unexpected_failure_of_the_watch_is_logged_and_the_watch_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Scene) -> None:
        container = stage.add("c")
        refresh = container.refresh
        failures = [ValueError("broken")]

        async def failing() -> None:
            if failures:
                raise failures.pop()
            await refresh()

        container.refresh = failing  # type: ignore[method-assign]
        stage.cri.states["c"] = EXITED
        await stage.clock.sleep(20)
        assert stage.ended == ["c"]
        assert not failures

    play(scene, tells=False)
    assert "background task failed, restarting task=container relist" in caplog.text
