"""What happens after a reconcile, by what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, ServerlessStage, staged, without_server
from tests.stage.kinds import Widget, WidgetSpec

from ostinato.api.codec import to_dict
from ostinato.api.errors import Conflict
from ostinato.api.gvk import GroupResource
from ostinato.api.meta import ObjectMeta
from ostinato.api.status import StatusCause
from ostinato.client.patching import MergePatch
from ostinato.controllers import (
    BadResult,
    Context,
    Controller,
    Reconcile,
    Request,
    Result,
    StartupSource,
    TerminalError,
    controller,
    current_reconcile,
    reconcile_id,
)
from ostinato.controllers.result import is_permanent
from ostinato.kinds.core_v1 import ConfigMap, Secret

KEY = Request("default", "a")
CONFLICT = Conflict.of(GroupResource("", "things"), "a", "the object has been modified")


class Playing:
    """A reconciler that does what a list says, one thing a run, and then succeeds; it notes when it ran."""

    def __init__(self, stage: ServerlessStage, *answers: Any) -> None:
        self._light = stage
        self._answers = list(answers)
        self.times: list[float] = []
        self.seen: list[Reconcile] = []
        self._began = stage.world.clock.monotonic()

    async def reconcile(self, request: Request) -> Any:
        self.times.append(round(self._light.world.clock.monotonic() - self._began, 4))
        found = current_reconcile()
        assert found is not None
        self.seen.append(found)
        if not self._answers:
            return None
        answer = self._answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def played(*answers: Any, seconds: float = 5.0, **options: Any) -> Callable[[Any], Any]:
    """Run a controller on one key, whose reconciles do this; then the test looks at what happened."""

    def decorate(look: Callable[[ServerlessStage, Playing, Controller], None]) -> Callable[[], None]:
        async def play(stage: ServerlessStage) -> None:
            playing = Playing(stage, *answers)
            controller = stage.controller(playing, StartupSource([KEY]), **options)
            async with stage.running(controller):
                await stage.settle(seconds)
                look(stage, playing, controller)

        play.__name__ = look.__name__
        return without_server(play)

    return decorate


@without_server
async def test_a_key_requeued_without_delay_lets_other_keys_run(stage: ServerlessStage) -> None:
    playing = Playing(stage, *[Result(requeue_after=0)] * 1000)
    turns = 0
    async with stage.running(stage.controller(playing, StartupSource([KEY]))):
        while len(playing.times) < 1000:
            await stage.world.clock.sleep(0)
            turns += 1
    assert turns > 50


@played()
def test_a_success_is_not_run_again(stage: ServerlessStage, playing: Playing, controller: Controller) -> None:
    assert playing.times == [0.0]
    assert stage.count("controller_runtime_reconcile_total", result="success") == 1
    assert stage.count("controller_runtime_reconcile_errors_total") == 0


@played(ValueError("one"), ValueError("two"))
def test_errors_back_off_exponentially_until_a_success_forgets_them(
    stage: ServerlessStage, playing: Playing, controller: Controller
) -> None:
    assert playing.times == [0.0, 0.005, 0.015]
    assert [each.attempt for each in playing.seen] == [1, 2, 3]
    assert stage.count("controller_runtime_reconcile_total", result="error") == 2
    assert stage.count("controller_runtime_reconcile_errors_total") == 2
    assert "reconcile failed controller=test object='default/a' error=ValueError: one" in stage.log.texts()[0]


@without_server
async def test_after_a_success_the_next_error_waits_as_shortly_as_the_first(stage: ServerlessStage) -> None:
    playing = Playing(stage, ValueError(), ValueError(), None, ValueError())
    async with stage.running(stage.controller(playing, StartupSource([KEY]))):
        await stage.settle(1)
        stage.channel.put(KEY)
        await stage.settle(1)
    assert playing.times == [0.0, 0.005, 0.015, 1.0, 1.005]
    assert [each.attempt for each in playing.seen] == [1, 2, 3, 1, 2]


@played(ValueError("x"), Result(requeue_after=1), ValueError("y"))
def test_requeue_after_is_not_rate_limited_and_forgets_failures(
    stage: ServerlessStage, playing: Playing, controller: Controller
) -> None:
    assert playing.times == [0.0, 0.005, 1.005, 1.01]
    assert stage.count("controller_runtime_reconcile_total", result="requeue_after") == 1
    assert playing.seen[2].why.reasons == ("requeue after",)


@played(Result(requeue_after=timedelta(milliseconds=250)), Result(requeue_after=0), Result(requeue_after=-3))
def test_requeue_after_may_be_a_timedelta_and_zero_is_immediate(
    stage: ServerlessStage, playing: Playing, controller: Controller
) -> None:
    assert playing.times == [0.0, 0.25, 0.25, 0.25]


@played(Result(retry=True), Result(retry=True), Result(retry=True))
def test_retry_backs_off_without_an_error(stage: ServerlessStage, playing: Playing, controller: Controller) -> None:
    assert playing.times == [0.0, 0.005, 0.015, 0.035]
    assert stage.count("controller_runtime_reconcile_total", result="requeue") == 3
    assert stage.count("controller_runtime_reconcile_errors_total") == 0
    assert stage.log.texts() == []


@played(Result(requeue_after=2, retry=True))
def test_requeue_after_wins_over_retry_with_a_warning(
    stage: ServerlessStage, playing: Playing, controller: Controller
) -> None:
    assert playing.times == [0.0, 2.0]
    assert "retry is ignored" in stage.log.texts()[0]


@played(TerminalError("no such size"), seconds=2000)
def test_a_terminal_error_is_counted_and_not_tried_again(
    stage: ServerlessStage, playing: Playing, controller: Controller
) -> None:
    assert playing.times == [0.0]
    assert stage.count("controller_runtime_terminal_reconcile_errors_total") == 1
    assert stage.count("controller_runtime_reconcile_errors_total") == 1
    assert stage.count("controller_runtime_reconcile_total", result="error") == 1
    assert stage.log.texts() == [
        "reconcile failed, not requeued controller=test object='default/a' error=PermanentError: no such size"
    ]


@without_server
async def test_a_terminal_error_does_not_forget_earlier_failures(stage: ServerlessStage) -> None:
    playing = Playing(stage, ValueError(), TerminalError(), ValueError())
    async with stage.running(stage.controller(playing, StartupSource([KEY]))):
        await stage.settle(1)
        stage.channel.put(KEY)
        await stage.settle(1)
    assert playing.times == [0.0, 0.005, 1.0, 1.01]
    assert [each.attempt for each in playing.seen] == [1, 2, 2, 3]


@played(CONFLICT, CONFLICT)
def test_a_conflict_is_counted_and_retried(stage: ServerlessStage, playing: Playing, controller: Controller) -> None:
    assert playing.times == [0.0, 0.005, 0.015]
    assert stage.count("ostinato_reconcile_conflicts_total") == 2
    assert stage.count("controller_runtime_reconcile_errors_total") == 0
    assert stage.count("controller_runtime_reconcile_total", result="requeue") == 2
    assert stage.log.texts() == []


@played(*[CONFLICT] * 12, seconds=60)
def test_many_conflicts_in_a_row_are_logged(stage: ServerlessStage, playing: Playing, controller: Controller) -> None:
    assert len(stage.log.texts()) == 2
    assert "conflict, requeued controller=test object='default/a' attempt=11" in stage.log.texts()[0]


FIELDS = Conflict.of_apply([StatusCause(reason="FieldManagerConflict", message="x", field=".spec")], "two managers")


@played(FIELDS)
def test_a_field_manager_conflict_is_an_error(stage: ServerlessStage, playing: Playing, controller: Controller) -> None:
    assert stage.count("ostinato_reconcile_conflicts_total") == 0
    assert stage.count("controller_runtime_reconcile_errors_total") == 1
    assert stage.log.texts() == ["reconcile failed controller=test object='default/a' error=Conflict: two managers"]


@staged
async def test_a_patch_with_the_uid_of_a_recreated_object_is_a_conflict(stage: ControllerStage) -> None:
    runs: list[str] = []

    @controller(ConfigMap, name="late")
    async def late(found: ConfigMap, ctx: Context) -> None:
        runs.append(found.metadata.uid)
        if len(runs) == 1:
            await stage.user.delete(found)
            await stage.user.create(ConfigMap(metadata=ObjectMeta(name="a")))
        change = MergePatch({"metadata": {"uid": found.metadata.uid}, "data": {"seen": "yes"}})
        await ctx.client.patch(ConfigMap, found.metadata, change)

    async with stage.running(late):
        await stage.user.create(ConfigMap(metadata=ObjectMeta(name="a")))
        await stage.settle(5)
        assert len(set(runs)) == 2
        assert stage.log.texts() == []
        assert stage.metrics.value("ostinato_reconcile_conflicts_total", controller="late") == 1
        assert (await stage.user.get(ConfigMap, "a")).data == {"seen": "yes"}


@staged
async def test_not_found_is_a_conflict_only_for_the_reconciled_object(
    stage: ControllerStage,
) -> None:
    runs: list[str] = []

    @controller(Widget, name="slow")
    async def slow(widget: Widget, ctx: Context) -> None:
        runs.append(widget.metadata.name or "")
        if widget.metadata.name == "other":
            await stage.client.get(ConfigMap, "other")
        await stage.user.delete(widget)
        await ctx.status(ready=1)

    async with stage.running(slow):
        await stage.user.create(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec()))
        await stage.settle(5)
        assert runs == ["a"]
        assert stage.log.texts() == []
        assert stage.metrics.value("ostinato_reconcile_conflicts_total", controller="slow") == 1
        await stage.user.create(Widget(metadata=ObjectMeta(name="other"), spec=WidgetSpec()))
        await stage.settle(1)
        assert 'error=NotFound: configmaps "other" not found' in stage.log.texts()[0]


@played("nonsense")
def test_an_invalid_result_is_a_terminal_error(
    stage: ServerlessStage, playing: Playing, controller: Controller
) -> None:
    assert playing.times == [0.0]
    (text,) = stage.log.texts()
    assert "returned 'nonsense' (str); return None, or Result(requeue_after=…)" in text


@played(KeyError("spec"))
def test_a_programming_error_is_contained_and_logged_with_its_traceback(
    stage: ServerlessStage, playing: Playing, controller: Controller
) -> None:
    assert len(playing.times) == 2
    assert stage.count("controller_runtime_reconcile_panics_total") == 1
    (record,) = [each for each in stage.log.records if each.levelname == "ERROR"]
    assert record.exc_info is not None


@played(SystemExit(3), asyncio.CancelledError(), RecursionError())
def test_other_keys_continue_after_any_error(stage: ServerlessStage, playing: Playing, controller: Controller) -> None:
    assert len(playing.times) == 4
    texts = stage.log.texts()
    assert "the reconciler called sys.exit(3)" in texts[0]
    assert "the reconciler was cancelled by something it awaited" in texts[1]


@played(ExceptionGroup("several", [ValueError("a"), KeyError("b")]))
def test_a_group_of_errors_is_an_error(stage: ServerlessStage, playing: Playing, controller: Controller) -> None:
    assert len(playing.times) == 2


@played(BaseExceptionGroup("odd", [asyncio.CancelledError()]))
def test_a_group_of_base_exceptions_is_an_error(
    stage: ServerlessStage, playing: Playing, controller: Controller
) -> None:
    assert len(playing.times) == 2
    assert "RuntimeError: the reconciler raised BaseExceptionGroup('odd', [CancelledError()])" in stage.log.texts()[0]


@without_server
async def test_panics_end_the_controller_if_they_are_not_to_be_contained(stage: ServerlessStage) -> None:
    playing = Playing(stage, TypeError("a bug"))
    controller = stage.controller(playing, StartupSource([KEY]), contain_panics=False)
    with pytest.raises(TypeError, match="a bug"):
        await controller.run(stage.dependencies)
    assert controller.statistics is not None
    assert controller.statistics.panics == 1


@pytest.mark.parametrize(
    ("answer", "priority"),
    [
        (ValueError(), -5),
        (Result(retry=True), -5),
        (Result(requeue_after=1), -5),
        (Result(retry=True, priority=7), 7),
        (Result(requeue_after=1, priority=7), 7),
    ],
)
def test_a_requeued_key_keeps_its_priority_unless_the_result_sets_another(answer: Any, priority: int) -> None:
    @without_server
    async def play(stage: ServerlessStage) -> None:
        playing = Playing(stage, answer)
        controller = stage.controller(playing)
        async with stage.running(controller):
            stage.channel.put(KEY, -5)
            await stage.settle(0.0001)
            assert controller._loop is not None
            assert controller._loop._queue._delayed._waits[KEY].priority == priority

    play()


@without_server
async def test_a_reconcile_has_an_id_of_its_own_and_outside_there_is_none(stage: ServerlessStage) -> None:
    playing = Playing(stage, ValueError())
    async with stage.running(stage.controller(playing, StartupSource([KEY]))):
        await stage.settle()
    first, second = playing.seen
    assert first.id
    assert first.id != second.id
    assert (first.controller, first.request, first.gvk) == ("test", KEY, None)
    assert reconcile_id() == ""
    assert current_reconcile() is None


# Timeouts


@without_server
async def test_a_reconcile_that_takes_too_long_is_cancelled_and_tried_again(stage: ServerlessStage) -> None:
    ended: list[str] = []

    async def slow(request: Request) -> None:
        try:
            await stage.world.clock.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async with stage.running(stage.controller(slow, StartupSource([KEY]), reconcile_timeout=2.0)):
        await stage.settle(3)
        assert ended == ["cancelled"]
        assert stage.count("controller_runtime_reconcile_timeouts_total") == 1
        (text,) = stage.log.texts()
        assert text.endswith("error=ReconcileTimeout: exceeded the reconcile timeout of 2 s and was cancelled")


@pytest.mark.parametrize("answer", [None, ValueError("cleaned up"), TimeoutError()])
def test_a_timeout_counts_whatever_the_reconciler_makes_of_it(answer: Exception | None) -> None:
    @without_server
    async def play(stage: ServerlessStage) -> None:
        async def stubborn(request: Request) -> None:
            try:
                await stage.world.clock.sleep(60)
            except asyncio.CancelledError:
                if answer is not None:
                    raise answer from None

        async with stage.running(stage.controller(stubborn, StartupSource([KEY]), reconcile_timeout=2.0)):
            await stage.settle(2.001)
            assert stage.count("controller_runtime_reconcile_timeouts_total") == 1
            assert stage.count("controller_runtime_reconcile_errors_total") == (0 if answer is None else 1)

    play()


@without_server
async def test_a_reconcile_that_ends_in_time_or_is_cancelled_is_not_a_timeout(stage: ServerlessStage) -> None:
    async def takes(request: Request) -> None:
        await stage.world.clock.sleep(1 if request == KEY else 60)

    made = stage.controller(takes, StartupSource([KEY, Request("", "longer")]), reconcile_timeout=5.0)
    task = asyncio.create_task(made.run(stage.dependencies))
    await stage.settle(3)
    for _ in range(2):  # to end, and to end at once
        task.cancel()
        await stage.settle(0.1)
    assert task.cancelled()
    assert made.statistics is not None
    assert (made.statistics.outcomes["success"], made.statistics.timeouts) == (1, 0)


@without_server
async def test_a_timeout_of_the_reconcilers_own_is_not_counted_as_one_of_ours(stage: ServerlessStage) -> None:
    async def impatient(request: Request) -> None:
        async with stage.world.clock.timeout(0.1):
            await stage.world.clock.sleep(1)

    async with stage.running(stage.controller(impatient, StartupSource([KEY]), reconcile_timeout=5)):
        await stage.settle(0.11)
        assert stage.count("controller_runtime_reconcile_timeouts_total") == 0
        assert stage.count("controller_runtime_reconcile_errors_total") == 1


@without_server
async def test_without_a_timeout_a_reconcile_takes_as_long_as_it_likes(stage: ServerlessStage) -> None:
    async def long(request: Request) -> None:
        await stage.world.clock.sleep(36_000)

    async with stage.running(stage.controller(long, StartupSource([KEY]))):
        await stage.settle(36_001)
        assert stage.count("controller_runtime_reconcile_total", result="success") == 1
        assert stage.count("controller_runtime_reconcile_timeouts_total") == 0


# The types


@pytest.mark.parametrize("wrong", ["5", [1], object()])
def test_requeue_after_is_seconds_or_a_timedelta(wrong: Any) -> None:
    with pytest.raises(TypeError, match="requeue_after must be a number of seconds or a timedelta"):
        Result(requeue_after=wrong)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_requeue_after_is_finite(wrong: float) -> None:
    with pytest.raises(ValueError, match="is not a finite number of seconds"):
        Result(requeue_after=wrong)


def test_a_wrapped_terminal_error_is_found() -> None:
    inner = ValueError("inner")
    error = TerminalError(inner)
    assert str(error) == "inner"
    assert str(TerminalError()) == "permanent error"
    assert is_permanent(TerminalError())
    wrapped = RuntimeError("outer")
    wrapped.__cause__ = error
    assert is_permanent(wrapped)
    assert not is_permanent(inner)
    assert is_permanent(ExceptionGroup("all", [error, wrapped]))
    assert not is_permanent(ExceptionGroup("some", [error, inner]))
    circle = ValueError()
    circle.__cause__ = circle
    assert not is_permanent(circle)


def test_an_invalid_result_object_is_logged_by_name_only() -> None:
    secret = Secret(metadata=ObjectMeta(name="a", namespace="default"), string_data={"password": "swordfish"})
    for wrong in (secret, to_dict(secret)):
        text = str(BadResult("f", wrong))
        assert text == (
            "reconciler f returned the object Secret default/a; return None, or Result(requeue_after=…) to requeue"
        )


def test_a_coroutine_that_was_not_awaited_is_named() -> None:
    async def later() -> None: ...

    coroutine = later()
    assert ".later(…), which is never awaited; return None" in str(BadResult("f", coroutine))
    coroutine.close()


def test_a_long_invalid_result_is_truncated() -> None:
    assert len(str(BadResult("f", "x" * 1000))) < 250


def test_a_priority_is_a_number() -> None:
    wrong: Any = "high"
    with pytest.raises(TypeError, match=r"priority must be an integer .* not 'high'"):
        Result(priority=wrong)
