"""Timers: a function called for each object at intervals."""

from __future__ import annotations

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
    Result,
    TemporaryError,
    timer,
)
from ostinato.queue import ExponentialBackoff

KEY = Request("default", "a")


def widget(name: str = "a", **labels: str) -> Widget:
    return Widget(metadata=ObjectMeta(name=name, namespace="default", labels=labels), spec=WidgetSpec(size=1))


async def resize(stage: ControllerStage, size: int) -> None:
    await stage.user.patch(Widget, KEY, MergePatch({"spec": {"size": size}}))


class Calls:
    """Notes the calls of a timer, in seconds after the first event that a test marks."""

    def __init__(self, stage: ControllerStage) -> None:
        self._clock = stage.world.clock
        self.times: list[float] = []
        self.answer: Any = None
        self.took = 0.0
        self.began = self._clock.monotonic()

    def made(self, **options: Any) -> ControllerFunction:
        @timer(Widget, **options)
        async def timers(widget: Widget, ctx: Context) -> Result | None:
            self.times.append(round(ctx.world.clock.monotonic() - self.began, 1))
            await ctx.sleep(self.took)
            if isinstance(self.answer, Exception):
                raise self.answer
            result: Result | None = self.answer
            return result

        return timers


@staged
async def test_the_function_is_called_every_so_many_seconds_whatever_the_events(stage: ControllerStage) -> None:
    calls = Calls(stage)
    calls.took = 4.0
    await stage.user.create(widget())
    async with stage.running(calls.made(every=10, max_concurrent=4)):
        for size in range(2, 30):
            await resize(stage, size)
            await stage.settle(1.25)
        assert calls.times == [0.0, 10.0, 20.0, 30.0]


@staged
async def test_a_call_that_takes_longer_than_the_interval_delays_the_next(stage: ControllerStage) -> None:
    calls = Calls(stage)
    calls.took = 25.0
    await stage.user.create(widget())
    async with stage.running(calls.made(every=10, max_concurrent=4)):
        await stage.settle(70)
    assert calls.times == [0.0, 25.0, 50.0]


@staged
async def test_the_first_call_waits_for_the_initial_delay(stage: ControllerStage) -> None:
    calls = Calls(stage)
    await stage.user.create(widget())
    async with stage.running(calls.made(every=10, initial_delay=3)):
        await stage.settle(25)
    assert calls.times == [3.0, 13.0, 23.0]


@staged
async def test_jitter_prolongs_each_interval(stage: ControllerStage) -> None:
    calls = Calls(stage)
    await stage.user.create(widget())
    async with stage.running(calls.made(every=10, jitter=0.5)):
        await stage.settle(1000)
    gaps = [after - before for before, after in zip(calls.times, calls.times[1:], strict=False)]
    assert all(9.9 <= gap <= 15.1 for gap in gaps)
    assert max(gaps) - min(gaps) > 3


@staged
async def test_an_idle_timer_waits_for_the_end_of_a_storm_of_updates(stage: ControllerStage) -> None:
    calls = Calls(stage)
    await stage.user.create(widget())
    async with stage.running(calls.made(every=5, idle=10)):
        for size in range(2, 22):
            await resize(stage, size)
            await stage.settle(3)
        assert calls.times == []
        await stage.settle(20)
    assert calls.times == [67.0, 72.0, 77.0]


@staged
async def test_without_an_interval_an_idle_timer_is_called_once_after_each_change(stage: ControllerStage) -> None:
    calls = Calls(stage)
    await stage.user.create(widget())
    async with stage.running(calls.made(idle=10)):
        await stage.settle(100)
        assert calls.times == [10.0]
        await resize(stage, 2)
        await stage.settle(100)
    assert calls.times == [10.0, 110.0]


@staged
async def test_a_status_is_not_a_change(stage: ControllerStage) -> None:
    calls = 0

    @timer(Widget, every=5, idle=10)
    async def timers(widget: Widget, ctx: Context) -> None:
        nonlocal calls
        calls += 1
        await ctx.status(ready=calls, note=str(ctx.now()))

    await stage.user.create(widget())
    async with stage.running(timers):
        await stage.settle(31)
    assert calls == 5
    assert stage.log.texts() == []


@staged
async def test_a_deleted_or_deselected_object_is_not_called(stage: ControllerStage) -> None:
    calls = Calls(stage)
    await stage.user.create(widget(tier="web"))
    async with stage.running(calls.made(every=10, labels="tier=web")):
        await stage.settle(15)
        await stage.user.patch(Widget, KEY, MergePatch({"metadata": {"labels": {"tier": "db"}}}))
        await stage.settle(30)
        assert calls.times == [0.0, 10.0]
        await stage.user.patch(Widget, KEY, MergePatch({"metadata": {"labels": {"tier": "web"}}}))
        await stage.settle(5)
        assert calls.times == [0.0, 10.0, 45.0]
        await stage.user.delete(Widget, "a", namespace="default")
        await stage.settle(30)
        assert calls.times == [0.0, 10.0, 45.0]
        await stage.user.create(widget(tier="web"))
        await stage.settle(5)
    assert calls.times == [0.0, 10.0, 45.0, 80.0], "a recreated object begins anew"


@staged
async def test_a_failed_call_is_retried_and_events_do_not_undo_the_backoff(stage: ControllerStage) -> None:
    calls = Calls(stage)
    calls.answer = TemporaryError("not yet", delay=3)
    await stage.user.create(widget())
    async with stage.running(calls.made(every=60)):
        await stage.settle(1)
        for note in range(5):
            status = {"status": {"note": str(note)}}
            await stage.user.patch(Widget, KEY, MergePatch(status), subresource="status")
        await stage.settle(6)
        assert calls.times == [0.0, 3.0, 6.0]
        calls.answer = None
        await stage.settle(70)
    assert calls.times == [0.0, 3.0, 6.0, 9.0, 69.0]
    assert ("Warning", "ReconcileError", "TemporaryError: not yet") in stage.recorder.events


@pytest.mark.parametrize("options", [{}, {"max_retries": 0}])
def test_a_given_up_timer_stands_still_until_the_object_changes(options: dict[str, Any]) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        calls = Calls(stage)
        calls.answer = ValueError("no") if options else PermanentError("unknown size")
        await stage.user.create(widget())
        async with stage.running(calls.made(every=10, **options)):
            await stage.settle(50)
            await stage.user.patch(Widget, KEY, MergePatch({"status": {"note": "x"}}), subresource="status")
            await stage.settle(50)
            assert calls.times == [0.0]
            calls.answer = None
            await resize(stage, 2)
            await stage.settle(15)
            assert calls.times == [0.0, 100.0, 110.0]

    play()


@staged
async def test_a_call_that_exceeds_the_reconcile_timeout_has_failed(stage: ControllerStage) -> None:
    calls = Calls(stage)
    calls.took = 1000.0
    limiter = lambda: ExponentialBackoff[Any](base=20)  # noqa: E731
    await stage.user.create(widget())
    async with stage.running(calls.made(every=60, reconcile_timeout=5, limiter=limiter)):
        await stage.settle(10)
        await stage.user.patch(Widget, KEY, MergePatch({"status": {"note": "x"}}), subresource="status")
        await stage.settle(10)
        assert calls.times == [0.0], "an event does not undo the backoff"
        await stage.settle(10)
    assert calls.times == [0.0, 25.0]


@staged
async def test_a_result_sets_the_next_time(stage: ControllerStage) -> None:
    calls = Calls(stage)
    calls.answer = Result(requeue_after=2)
    await stage.user.create(widget())
    async with stage.running(calls.made(every=60)):
        await stage.settle(5)
        calls.answer = None
        await stage.settle(70)
    assert calls.times == [0.0, 2.0, 4.0, 6.0, 66.0]


@staged
async def test_a_plain_function_has_a_blocking_context(stage: ControllerStage) -> None:
    @timer(Widget, every=10)
    def timers(widget: Widget, ctx: BlockingContext) -> None:
        status = widget.status
        ctx.status(ready=(status.ready if status is not None else 0) + 1)

    await stage.user.create(widget())
    async with stage.running(timers):
        await stage.settle(25)
    found = await stage.user.get(Widget, KEY)
    assert found.status is not None
    assert found.status.ready == 3


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "a timer needs every=, idle=, or both, in seconds"),
        ({"every": -1}, "every: -1 is not a number of seconds"),
        ({"every": "60"}, "every: '60' is not a number of seconds"),
        ({"every": 1, "jitter": float("nan")}, "jitter: nan is not a number of seconds"),
    ],
)
def test_an_invalid_interval_is_reported(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        timer(Widget, **options)
