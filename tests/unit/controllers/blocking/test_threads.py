"""Plain functions as reconcilers, in threads."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

from tests.stage.controllers import ControllerStage, ServerlessStage, staged, without_server
from tests.stage.kinds import Widget, config_map, widget

from ostinato.api.errors import NotFound
from ostinato.controllers import BlockingContext, Request, Result, StartupSource, controller, current_reconcile
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.world import World

A, B = Request("default", "a"), Request("default", "b")


@staged
async def test_a_plain_function_sees_the_same_context_and_waits_where_it_would_await(stage: ControllerStage) -> None:
    seen: dict[str, Any] = {}

    @controller(Widget, owns=[ConfigMap])
    def widgets(each: Widget, ctx: BlockingContext) -> Result:
        with ctx.finalizer(each, "example.dev/cleanup") as deleting:
            seen["deleting"] = deleting
            if deleting:
                return Result()
            made = ctx.apply(config_map("one", k="v"), owner=each)
            seen["made"] = made.data
            seen["names"] = [found.metadata.name for found in ctx.client.list(ConfigMap, namespace="default")]
            seen["items"] = len(ctx.client.list(ConfigMap, namespace="default"))
            seen["missing"] = ctx.client.get(ConfigMap, "nothing", missing=None)
            seen["live"] = ctx.client.live.get(ConfigMap, "one").data
            seen["request"] = ctx.request
            seen["object"] = ctx.object is each
            seen["current"] = current_reconcile() is not None
            ctx.event(each, "Seen", "x")
            ctx.status(ready=1)
            try:
                ctx.client.get(ConfigMap, "nothing")
            except NotFound as error:
                seen["error"] = str(error)
        return Result(requeue_after=60)

    await stage.user.create(widget("a"))
    async with stage.running(widgets):
        await stage.settle()
        assert seen == {
            "deleting": False,
            "made": {"k": "v"},
            "names": ["one"],
            "items": 1,
            "missing": None,
            "live": {"k": "v"},
            "request": A,
            "object": True,
            "current": True,
            "error": 'configmaps "nothing" not found',
        }
        assert (await stage.user.get(Widget, "a")).metadata.finalizers == ["example.dev/cleanup"]
        assert stage.metrics.value("ostinato_threads", controller="widgets") == 8
        assert stage.metrics.value("ostinato_threads_busy", controller="widgets") == 0
        await stage.user.delete(Widget, "a")
        await stage.settle()
        assert await stage.user.get(Widget, "a", missing=None) is None
    assert stage.log.texts() == []


@staged
async def test_its_writes_are_its_own(stage: ControllerStage) -> None:
    """A plain function that wakes itself is found as well: what it writes in a thread is known to be its."""
    runs = [0]

    @controller(Widget)
    def restless(each: Widget, ctx: BlockingContext) -> None:
        runs[0] += 1
        ctx.status(note=f"run {runs[0]}")

    await stage.user.create(widget("a"))
    async with stage.running(restless):
        await stage.settle(100)
    assert runs[0] < 30
    assert "hot loop" in stage.log.texts()[0]


@without_server
async def test_a_plain_function_that_fails_is_tried_again(stage: ServerlessStage) -> None:
    runs: list[int] = []

    def failing(request: Request) -> None:
        runs.append(1)
        if len(runs) < 3:
            raise ValueError("no")

    async with stage.running(stage.controller(failing, StartupSource([A]))):
        await stage.settle()
        assert len(runs) == 3
        assert stage.count("controller_runtime_reconcile_errors_total") == 2


@without_server
async def test_a_plain_function_that_returns_a_coroutine_is_rejected(stage: ServerlessStage) -> None:
    async def inner() -> None: ...

    def outer(request: Request) -> Any:
        return inner()

    async with stage.running(stage.controller(outer, StartupSource([A]))):
        await stage.settle()
    assert "inner(…), which is never awaited" in stage.log.texts()[0]


def really(play: Any, **world: Any) -> None:
    """Run a test in the real world, with real threads."""

    async def main() -> None:
        real = World.real(**world)
        try:
            await play(ServerlessStage(real))  # type: ignore[arg-type]
        finally:
            real.executor.close()

    asyncio.run(main())


def test_a_plain_function_does_not_hold_up_the_loop_and_ends_at_its_next_call_after_its_time() -> None:
    async def play(stage: ServerlessStage) -> None:
        ended: list[BaseException] = []
        threads: set[str] = set()
        under_way = [0]
        most = [0]

        def slow(request: Request, ctx: BlockingContext) -> None:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
            threads.add(threading.current_thread().name)
            try:
                for _ in range(200):
                    time.sleep(0.005)
                    ctx.event({}, "Still", "here")
            except BaseException as error:
                ended.append(error)
                raise
            finally:
                under_way[0] -= 1

        made = stage.controller(slow, StartupSource([A]), reconcile_timeout=0.05, max_concurrent=4)
        async with stage.running(made):
            await stage.settle(0.5)
            assert isinstance(ended[0], TimeoutError)
            assert most[0] == 1
            assert stage.count("controller_runtime_reconcile_timeouts_total") >= 1
        assert all(name.startswith("ostinato-worker") for name in threads)
        assert any("reconcile cancelled, waiting for its thread" in text for text in stage.log.texts())

    really(play)


def test_a_plain_function_that_never_ends_is_abandoned_when_the_controller_is_dropped() -> None:
    async def play(stage: ServerlessStage) -> None:
        release = threading.Event()

        def stuck(request: Request) -> None:
            release.wait(10)

        task = asyncio.create_task(stage.controller(stuck, StartupSource([A])).run(stage.dependencies))
        await stage.settle(0.05)
        task.cancel()
        await stage.settle(0.05)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task], timeout=5)
        assert task.cancelled()
        release.set()

    really(play)


def test_a_call_that_waits_for_a_thread_when_its_time_is_over_is_never_made() -> None:
    async def play(stage: ServerlessStage) -> None:
        release = threading.Event()
        began: list[str] = []

        def blocking(request: Request) -> None:
            began.append(request.name)
            release.wait(5)

        made = stage.controller(blocking, StartupSource([A, B]), max_concurrent=2, reconcile_timeout=0.05)
        async with stage.running(made):
            await stage.settle(0.1)
            assert began == ["a"]
            release.set()

    really(play, workers=1)


def test_reconcilers_that_wait_long_for_a_thread_are_reported() -> None:
    from ostinato.world import Simulation

    simulation = Simulation(1, workers=1, latency=lambda rng: 8.0)

    async def main() -> None:
        stage = ServerlessStage(simulation)

        def slow(request: Request) -> None: ...

        keys = [Request("", str(number)) for number in range(6)]
        async with stage.running(stage.controller(slow, StartupSource(keys), max_concurrent=4)):
            await stage.settle(60)
        texts = stage.log.texts()
        assert len(texts) == 1
        assert texts[0].endswith("controller=test threads=1 waiting=3 longest_wait_seconds=5")

    simulation.run(main())
