"""Daemons: one for each selected object, started, cancelled and awaited with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, WidgetSpec

from ostinato.api.meta import ObjectMeta
from ostinato.client.patching import MergePatch
from ostinato.controllers import (
    BlockingContext,
    Context,
    ControllerFunction,
    PermanentError,
    Request,
    TemporaryError,
    current_reconcile,
    daemon,
)
from ostinato.kinds.core_v1 import ConfigMap

KEY = Request("default", "a")


def widget(name: str = "a", **labels: str) -> Widget:
    return Widget(metadata=ObjectMeta(name=name, namespace="default", labels=labels), spec=WidgetSpec(size=1))


class Daemons:
    """Notes the daemons that run, and checks that an object never has two."""

    def __init__(self, stage: ControllerStage) -> None:
        self.stage = stage
        self.running: dict[str, str] = {}  # uid by name
        self.log: list[str] = []
        self.fail: Callable[[], Exception | None] = lambda: None
        self.clean_up = 0.0  # seconds
        self.times: list[float] = []
        self._began = stage.world.clock.monotonic()

    def made(self, **options: Any) -> ControllerFunction:
        @daemon(Widget, **options)
        async def daemons(widget: Widget, ctx: Context) -> None:
            name = widget.metadata.name
            assert name not in self.running, "a second daemon of the object"
            self.running[name] = widget.metadata.uid
            self.log.append(f"+{name}")
            self.times.append(round(ctx.world.clock.monotonic() - self._began, 3))
            try:
                while True:
                    if (error := self.fail()) is not None:
                        raise error
                    await ctx.sleep(1)
            finally:
                if self.clean_up:
                    await ctx.sleep(self.clean_up)
                del self.running[name]
                self.log.append(f"-{name}")

        return daemons


@staged
async def test_each_object_has_a_daemon_until_it_is_deleted(stage: ControllerStage) -> None:
    daemons = Daemons(stage)
    await stage.user.create(widget("a"))
    async with stage.running(daemons.made()):
        await stage.settle()
        await stage.user.create(widget("b"))
        await stage.settle()
        assert set(daemons.running) == {"a", "b"}
        assert stage.metrics.value("ostinato_daemons", controller="daemons") == 2
        await stage.user.patch(Widget, KEY, MergePatch({"spec": {"size": 2}}))
        await stage.settle()
        assert daemons.log == ["+a", "+b"], "an update does not restart it"
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.settle()
        assert set(daemons.running) == {"b"}
        assert stage.metrics.value("ostinato_daemons", controller="daemons") == 1
    assert daemons.log == ["+a", "+b", "-a", "-b"], "the stop of the controller cancels it and waits for it"


@staged
async def test_a_daemon_ends_when_its_object_begins_to_be_deleted(stage: ControllerStage) -> None:
    daemons = Daemons(stage)
    kept = widget("a")
    kept.metadata.finalizers = ["example.dev/other"]
    await stage.user.create(kept)
    async with stage.running(daemons.made()):
        await stage.settle()
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.settle()
        assert daemons.log == ["+a", "-a"]
    await stage.user.patch(Widget, KEY, MergePatch({"metadata": {"finalizers": None}}))


@staged
async def test_a_daemon_follows_labels_and_function(stage: ControllerStage) -> None:
    daemons = Daemons(stage)
    await stage.user.create(widget("a", tier="web"))
    await stage.user.create(widget("b", tier="db"))
    async with stage.running(daemons.made(labels="tier=web", when=lambda each: each.spec.size < 5)):
        await stage.settle()
        assert set(daemons.running) == {"a"}
        for change, running in (
            ({"metadata": {"labels": {"tier": "db"}}}, set()),
            ({"metadata": {"labels": {"tier": "web"}}}, {"a"}),
            ({"spec": {"size": 5}}, set()),
            ({"spec": {"size": 4}}, {"a"}),
        ):
            await stage.user.patch(Widget, KEY, MergePatch(change))
            await stage.settle()
            assert set(daemons.running) == running


@staged
async def test_a_recreated_object_gets_a_new_daemon_after_the_end_of_the_old_one(stage: ControllerStage) -> None:
    daemons = Daemons(stage)
    daemons.clean_up = 5.0
    await stage.user.create(widget("a"))
    async with stage.running(daemons.made(max_concurrent=4)):
        await stage.settle()
        old = daemons.running["a"]
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.user.create(widget("a"))
        await stage.settle(2)
        assert daemons.running == {"a": old}
        await stage.settle(10)
        assert daemons.running["a"] != old
        assert daemons.log == ["+a", "-a", "+a"]


@staged
async def test_an_object_deleted_while_its_daemon_starts_has_none(stage: ControllerStage) -> None:
    daemons = Daemons(stage)
    async with stage.running(daemons.made(max_concurrent=4)):
        await stage.settle()
        for steps in range(60):
            await stage.user.create(widget("a"))
            for _ in range(steps):
                await asyncio.sleep(0)
            await stage.user.delete(Widget, "a", namespace="default")
        await stage.settle(2)
        assert daemons.running == {}
    assert stage.log.texts() == []


@staged
async def test_in_a_storm_of_updates_an_object_has_at_most_one_daemon(stage: ControllerStage) -> None:
    daemons = Daemons(stage)
    daemons.clean_up = 0.05
    await stage.user.create(widget("a", tier="web"))
    rng = stage.world.rng.fork("storm")
    async with stage.running(daemons.made(labels="tier=web", max_concurrent=8)):
        for _ in range(200):
            tier = "web" if rng.random() < 0.5 else "db"
            await stage.user.patch(Widget, KEY, MergePatch({"metadata": {"labels": {"tier": tier}}}))
            await stage.settle(rng.random() * 0.1)
        await stage.user.patch(Widget, KEY, MergePatch({"metadata": {"labels": {"tier": "web"}}}))
        await stage.settle(1)
        assert set(daemons.running) == {"a"}
    assert daemons.log.count("+a") > 10


@staged
async def test_a_failed_daemon_is_reported_and_restarted_with_backoff_until_it_is_stable(
    stage: ControllerStage,
) -> None:
    daemons = Daemons(stage)
    daemons.fail = lambda: ValueError("no connection")
    await stage.user.create(widget("a"))
    async with stage.running(daemons.made()):
        await stage.settle(0.1)
        starts = [round(each - daemons.times[0], 3) for each in daemons.times[:4]]
        assert starts == [0.0, 0.005, 0.015, 0.035]
        text = "reconcile failed controller=daemons object='Widget default/a' error=ValueError: no connection"
        assert stage.log.texts()[0] == text
        assert ("Warning", "ReconcileError", "ValueError: no connection") in stage.recorder.events
        found = await stage.user.get(Widget, KEY)
        assert found.status is not None
        assert [each.status for each in found.status.conditions] == ["False"]
        daemons.fail = lambda: None
        await stage.settle(50)
        assert set(daemons.running) == {"a"}
        started = len(daemons.times)
        found = await stage.user.get(Widget, KEY)
        assert found.status is not None
        assert found.status.conditions, "it is not stable yet"
        await stage.settle(20)
        found = await stage.user.get(Widget, KEY)
        assert found.status is not None
        assert not found.status.conditions
        daemons.fail = lambda: ValueError("no connection")
        await stage.settle(1.02)
        assert daemons.times[started + 1] - daemons.times[started] == pytest.approx(0.01, abs=0.002)


@staged
async def test_events_do_not_undo_the_backoff(stage: ControllerStage) -> None:
    starts: list[float] = []

    @daemon(Widget, max_concurrent=4)
    async def daemons(widget: Widget, ctx: Context) -> None:
        starts.append(ctx.world.clock.monotonic())
        await ctx.status(note=str(ctx.now()), ready=len(starts))
        raise TemporaryError("not yet", delay=30)

    await stage.user.create(widget("a"))
    async with stage.running(daemons):
        await stage.settle(100)
        assert len(starts) == 4
        await stage.user.patch(Widget, KEY, MergePatch({"spec": {"size": 2}}))
        await stage.settle(1)
        assert len(starts) == 5, "a change of the spec restarts it"


@pytest.mark.parametrize("options", [{}, {"max_retries": 0}])
def test_a_given_up_daemon_is_restarted_when_the_spec_changes(options: dict[str, Any]) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        starts: list[int] = []

        @daemon(Widget, **options)
        async def daemons(widget: Widget, ctx: Context) -> None:
            starts.append(widget.spec.size)
            await ctx.status(note=str(ctx.now()), ready=len(starts))
            raise ValueError("no") if options else PermanentError("unknown size")

        await stage.user.create(widget("a"))
        async with stage.running(daemons):
            await stage.settle(3000)
            assert starts == [1]
            await stage.user.patch(Widget, KEY, MergePatch({"spec": {"size": 2}}))
            await stage.settle(3000)
            assert starts == [1, 2]

    play()


@staged
async def test_a_daemon_that_returns_is_not_restarted(stage: ControllerStage) -> None:
    starts: list[str] = []

    @daemon(Widget, when=lambda each: each.spec.size < 5)
    async def daemons(widget: Widget, ctx: Context) -> None:
        starts.append(widget.metadata.name)

    await stage.user.create(widget("a"))
    async with stage.running(daemons):
        await stage.settle()
        for size in (2, 3):
            await stage.user.patch(Widget, KEY, MergePatch({"spec": {"size": size}}))
            await stage.settle()
        assert starts == ["a"]
        for size in (7, 3):
            await stage.user.patch(Widget, KEY, MergePatch({"spec": {"size": size}}))
            await stage.settle()
    assert starts == ["a", "a"], "selected anew, it starts again"


@staged
async def test_a_finalizer_keeps_the_object_until_its_daemon_has_ended(stage: ControllerStage) -> None:
    daemons = Daemons(stage)
    daemons.clean_up = 5.0
    await stage.user.create(widget("a"))
    async with stage.running(daemons.made(finalizer="example.dev/daemon")):
        await stage.settle()
        assert (await stage.user.get(Widget, KEY)).metadata.finalizers == ["example.dev/daemon"]
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.settle(3)
        assert await stage.user.get(Widget, KEY, missing=None) is not None
        await stage.settle(3)
        assert await stage.user.get(Widget, KEY, missing=None) is None
    assert daemons.log == ["+a", "-a"]


@staged
async def test_a_daemon_that_ignores_its_cancellation_is_reported_and_cancelled_again(stage: ControllerStage) -> None:
    cancellations = 0

    @daemon(Widget)
    async def daemons(widget: Widget, ctx: Context) -> None:
        nonlocal cancellations
        while cancellations < 3:
            try:
                await ctx.sleep(1000)
            except asyncio.CancelledError:
                cancellations += 1

    await stage.user.create(widget("a"))
    async with stage.running(daemons):
        await stage.settle()
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.settle(65)
        assert stage.log.texts() == [
            "daemon does not end after cancellation, waiting task='controller daemons: daemon of default/a'"
        ]
    assert cancellations == 3


@staged
async def test_a_daemon_has_its_own_context_and_writes(stage: ControllerStage) -> None:
    seen: list[Any] = []

    @daemon(Widget, owns=[ConfigMap])
    async def daemons(widget: Widget, ctx: Context) -> None:
        found = current_reconcile()
        assert found is not None
        seen.append((found.controller, ctx.request, ctx.object))
        while True:
            data = {"n": str(len(seen))}
            await ctx.apply(ConfigMap(metadata=ObjectMeta(name="page"), data=data), owner=widget)
            latest = await ctx.client.get(Widget, ctx.request)
            seen.append(latest.spec.size)
            await ctx.sleep(10)

    await stage.user.create(widget("a"))
    async with stage.running(daemons):
        await stage.settle(1)
        await stage.user.patch(Widget, KEY, MergePatch({"spec": {"size": 2}}))
        await stage.settle(15)
    assert seen[0][:2] == ("daemons", KEY)
    assert seen[1:] == [1, 2]
    assert (await stage.user.get(ConfigMap, "page")).data == {"n": "2"}
    assert stage.log.texts() == []


@staged
async def test_a_plain_daemon_runs_in_a_thread_and_ends_at_its_next_call(stage: ControllerStage) -> None:
    log: list[str] = []

    @daemon(Widget)
    def daemons(widget: Widget, ctx: BlockingContext) -> None:
        while True:
            try:
                log.append(f"{widget.metadata.name} {ctx.stopped}")
                ctx.sleep(10)
            except Exception:  # noqa: BLE001 - a loop that continues after errors
                log.append("error")
            finally:
                if ctx.stopped:
                    log.append("ended")

    await stage.user.create(widget("a"))
    async with stage.running(daemons):
        await stage.settle(25)
        assert log == ["a False"] * 3
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.settle(1)
        assert log == ["a False"] * 3 + ["ended"]
    assert stage.log.texts() == []


@staged
async def test_a_plain_daemon_that_fails_is_restarted(stage: ControllerStage) -> None:
    starts: list[float] = []

    @daemon(Widget)
    def daemons(widget: Widget, ctx: BlockingContext) -> None:
        starts.append(ctx.world.clock.monotonic())
        ctx.sleep(1)
        raise TemporaryError("again", delay=5)

    await stage.user.create(widget("a"))
    async with stage.running(daemons):
        await stage.settle(20)
    assert [round(each - starts[0]) for each in starts] == [0, 6, 12, 18]


def test_mistakes_are_reported_at_the_definition() -> None:
    wrong: Any = daemon
    with pytest.raises(TypeError, match=r"@daemon needs a kind; write @daemon\(Widget\) above def f"):

        @wrong
        async def f(widget: Widget, ctx: Context) -> None: ...

    with pytest.raises(TypeError, match="@daemon: unknown option 'lables'; did you mean labels"):
        wrong(Widget, lables="a=b")
    with pytest.raises(TypeError, match="daemon g takes a request; its first parameter must be the object"):

        @daemon(Widget)
        async def g(request: Request, ctx: Context) -> None: ...

    with pytest.raises(ValueError, match="'cleanup' is not a valid finalizer"):
        daemon(Widget, finalizer="cleanup")
    with pytest.raises(TypeError, match="is not a plain function of an object"):
        wrong(Widget, when="size > 5")
