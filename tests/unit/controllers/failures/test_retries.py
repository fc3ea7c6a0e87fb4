"""Retries: TemporaryError, PermanentError and the limit of retries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, ServerlessStage, staged, without_server
from tests.stage.kinds import Widget, WidgetSpec

from ostinato.api.meta import ObjectMeta
from ostinato.client.patching import MergePatch
from ostinato.controllers import (
    Builder,
    Context,
    ControllerOptions,
    PermanentError,
    Request,
    Result,
    StartupSource,
    TemporaryError,
    TerminalError,
    controller,
)
from ostinato.controllers.reasons import ERROR, REQUEUE_AFTER, Why, resynced
from ostinato.controllers.result import delay_of, is_permanent

KEY = Request("default", "a")


class Failing:
    """A reconciler that raises what a function returns, and notes when it ran."""

    def __init__(self, stage: ServerlessStage | ControllerStage, error: Callable[[], Exception | None]) -> None:
        self.error = error
        self._clock = stage.world.clock
        self._began = self._clock.monotonic()
        self.times: list[float] = []

    async def reconcile(self, request: Request) -> None:
        self.times.append(round(self._clock.monotonic() - self._began, 3))
        if (error := self.error()) is not None:
            raise error


def deep_code(delay: float | None = 30) -> None:
    raise TemporaryError("the database starts", delay=delay)


@without_server
async def test_a_temporary_error_is_retried_after_its_delay_and_counts_as_a_failure(stage: ServerlessStage) -> None:
    failing = Failing(stage, lambda: TemporaryError("the database starts", delay=30))
    async with stage.running(stage.controller(failing, StartupSource([KEY]))):
        await stage.settle(65)
        assert stage.count("controller_runtime_reconcile_errors_total") == 3
    assert failing.times == [0.0, 30.0, 60.0]
    about = "controller=test object='default/a'"
    assert stage.log.texts() == [
        f"reconcile failed {about} error=TemporaryError: the database starts",
        f"reconcile failed again {about} attempt=2 next_delay=30s error=TemporaryError: the database starts",
        f"reconcile failed again {about} attempt=3 next_delay=30s error=TemporaryError: the database starts",
    ]
    assert all(record.exc_info is None for record in stage.log.records)


@without_server
async def test_a_temporary_error_without_a_delay_takes_the_backoff(stage: ServerlessStage) -> None:
    failing = Failing(stage, lambda: TemporaryError("soon"))
    async with stage.running(stage.controller(failing, StartupSource([KEY]))):
        await stage.settle(0.03)
    assert failing.times == [0.0, 0.005, 0.015]


@without_server
async def test_a_temporary_error_from_deep_code_of_a_plain_function_is_retried(stage: ServerlessStage) -> None:
    runs: list[float] = []

    def plain(request: Request) -> None:
        runs.append(stage.clock.monotonic())
        try:
            deep_code(5)
        except TemporaryError as error:
            raise ValueError("no page") from error

    async with stage.running(stage.controller(plain, StartupSource([KEY]))):
        await stage.settle(7)
    assert [round(each - runs[0], 1) for each in runs] == [0.0, 5.0]


@without_server
async def test_after_the_limit_a_key_is_not_retried_until_something_changes(stage: ServerlessStage) -> None:
    failing = Failing(stage, lambda: ValueError("no"))
    async with stage.running(stage.controller(failing, StartupSource([KEY]), max_retries=2)):
        await stage.settle(2000)
        assert failing.times == [0.0, 0.005, 0.015]
        assert "reconcile failed again, not requeued" in stage.log.texts()[-1]
        stage.channel.put(KEY)
        await stage.settle(2000)
        assert failing.times[3:] == [2000.0, 2000.005, 2000.015], "a change makes all retries available again"
        failing.error = lambda: None
        stage.channel.put(KEY)
        await stage.settle(1)
        failing.error = lambda: ValueError("no")
        stage.channel.put(KEY)
        await stage.settle(1)
    assert failing.times[7:] == [4001.0, 4001.005, 4001.015], "a success resets the count"


@without_server
async def test_without_retries_the_first_failure_is_final(stage: ServerlessStage) -> None:
    failing = Failing(stage, lambda: TemporaryError("no", delay=1))
    async with stage.running(stage.controller(failing, StartupSource([KEY]), max_retries=0)):
        await stage.settle(2000)
    assert failing.times == [0.0]


@staged
async def test_a_permanent_error_is_not_retried_by_a_resync_or_an_earlier_requeue(stage: ControllerStage) -> None:
    answers: list[Any] = [Result(requeue_after=100), PermanentError("unknown size")]
    sizes: list[int] = []

    async def widgets(widget: Widget, ctx: Context) -> Any:
        sizes.append(widget.spec.size)
        answer = answers[min(len(sizes), 2) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer

    await stage.user.create(Widget(metadata=ObjectMeta(name="a", namespace="default"), spec=WidgetSpec(size=1)))
    async with stage.running(Builder("widgets").watch_for(Widget, resync=30).make(widgets)):
        await stage.settle(10)
        change = {"spec": {"size": 2}}
        await stage.user.patch(Widget, KEY, MergePatch(change))
        await stage.settle(1000)
        assert sizes == [1, 2]
        change = {"spec": {"size": 3}}
        await stage.user.patch(Widget, KEY, MergePatch(change))
        await stage.settle(100)
    assert sizes == [1, 2, 3]


@staged
async def test_a_change_during_the_run_that_fails_permanently_is_not_missed(stage: ControllerStage) -> None:
    sizes: list[int] = []

    @controller(Widget)
    async def widgets(widget: Widget, ctx: Context) -> None:
        sizes.append(widget.spec.size)
        if widget.spec.size == 1:
            await stage.user.patch(Widget, KEY, MergePatch({"spec": {"size": 2}}))
            await stage.settle(1)
            raise PermanentError("unknown size")

    await stage.user.create(Widget(metadata=ObjectMeta(name="a", namespace="default"), spec=WidgetSpec(size=1)))
    async with stage.running(widgets):
        await stage.settle(10)
    assert sizes == [1, 2]
    assert ("Warning", "ReconcileError", "PermanentError: unknown size") in stage.recorder.events


def test_the_nearest_cause_decides_on_the_retry() -> None:
    permanent, temporary, other = PermanentError("p"), TemporaryError("t", delay=timedelta(seconds=3)), ValueError()
    assert TerminalError is PermanentError
    assert delay_of(temporary) == 3
    assert delay_of(_raised_from(ValueError(), temporary)) == 3
    outer = _raised_from(TemporaryError("t", delay=1), permanent)
    assert (is_permanent(outer), delay_of(outer)) == (False, 1)
    outer = _raised_from(PermanentError("p"), temporary)
    assert (is_permanent(outer), delay_of(outer)) == (True, None)
    assert delay_of(ExceptionGroup("", [temporary, TemporaryError(delay=2), permanent])) == 2
    assert delay_of(ExceptionGroup("", [temporary, other])) is None
    assert str(TemporaryError()) == "temporary error"


def test_a_run_for_requeues_and_resyncs_only_is_a_repetition() -> None:
    assert Why((ERROR, REQUEUE_AFTER, resynced("Widget")), None).is_repetition
    assert not Why((ERROR, "Widget updated"), None).is_repetition


@pytest.mark.parametrize("wrong", ["5", [1]])
def test_the_delay_is_a_number(wrong: Any) -> None:
    with pytest.raises(TypeError, match="delay must be a number of seconds or a timedelta"):
        TemporaryError("x", delay=wrong)


def test_the_limit_is_an_integer() -> None:
    wrong: Any = 1.5
    with pytest.raises(ValueError, match=r"max_retries: 1.5 is not an integer"):
        ControllerOptions(max_retries=wrong)


def _raised_from(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error
