"""Failed reconciles in the log, as Events and in the Ready condition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, WidgetStatus, widget

from ostinato.api.conditions import find_condition
from ostinato.api.meta import Condition, ObjectMeta
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, Request, TerminalError, controller
from ostinato.kinds.core_v1 import ConfigMap, Namespace

BOOM = "ValueError: no size 3"


class Failing:
    """A reconciler of Widgets that fails while `error` is set, and counts its runs."""

    def __init__(self, error: Callable[[], Exception] | None = lambda: ValueError("no size 3")) -> None:
        self.error = error
        self.runs = 0
        self.before: Callable[[Widget, Context], Any] | None = None

    def numbered(self) -> Exception:
        return ValueError(f"no size {self.runs}")

    async def __call__(self, each: Widget, ctx: Context) -> None:
        self.runs += 1
        if self.before is not None:
            await self.before(each, ctx)
        if self.error is not None:
            raise self.error()


def widgets(failing: Failing, **options: Any) -> Any:
    async def reconcile(each: Widget, ctx: Context) -> None:
        await failing(each, ctx)

    return controller(Widget, name="widgets", **options)(reconcile)


async def ready(stage: ControllerStage, name: str = "a") -> Condition | None:
    return find_condition(await stage.user.get(Widget, name), "Ready")


async def touch(stage: ControllerStage) -> None:
    await stage.user.patch(Widget, "a", MergePatch({"spec": {"text": str(stage.clock.monotonic())}}))


def errors(stage: ControllerStage) -> list[tuple[str, bool]]:
    """Return the error messages that were logged, and whether with a traceback."""
    return [
        (record.getMessage(), record.exc_info is not None)
        for record in stage.log.records
        if record.levelname == "ERROR"
    ]


@staged
async def test_identical_failures_are_one_line_each_after_the_first(stage: ControllerStage) -> None:
    failing = Failing()
    failing.error = failing.numbered
    await stage.user.create(widget("a"))
    async with stage.running(widgets(failing)):
        await stage.settle(0.5)
    about = "controller=widgets object='Widget default/a'"
    assert errors(stage)[:3] == [
        (f"reconcile failed {about} error=ValueError: no size 1", True),
        (f"reconcile failed again {about} attempt=2 next_delay=0.01s error=ValueError: no size 2", False),
        (f"reconcile failed again {about} attempt=3 next_delay=0.02s error=ValueError: no size 3", False),
    ]


@staged
async def test_another_error_and_one_after_a_success_are_logged_in_full(stage: ControllerStage) -> None:
    failing = Failing()
    failing.error = lambda: LookupError("other") if failing.runs == 3 else ValueError("no size 3")
    await stage.user.create(widget("a"))
    async with stage.running(widgets(failing)):
        await stage.settle(0.5)
        assert [trace for _, trace in errors(stage)][:4] == [True, False, True, True]
        failing.error = None
        await stage.settle(5)
        logged = len(errors(stage))
        failing.error = lambda: ValueError("no size 3")
        await touch(stage)
        await stage.settle()
        assert errors(stage)[logged] == (
            f"reconcile failed controller=widgets object='Widget default/a' error={BOOM}",
            True,
        )


@staged
async def test_a_terminal_error_has_no_next_delay(stage: ControllerStage) -> None:
    failing = Failing(lambda: TerminalError("no such size"))
    await stage.user.create(widget("a"))
    async with stage.running(widgets(failing)):
        await stage.settle()
        await touch(stage)
        await stage.settle()
    about = "controller=widgets object='Widget default/a'"
    assert [text for text, _ in errors(stage)] == [
        f"reconcile failed, not requeued {about} error=PermanentError: no such size",
        f"reconcile failed again, not requeued {about} attempt=1 error=PermanentError: no such size",
    ]


@staged
async def test_a_failing_object_gets_a_warning_event_and_ready_false_until_it_succeeds(stage: ControllerStage) -> None:
    failing = Failing()
    await stage.user.create(widget("a"))
    async with stage.running(widgets(failing)):
        await stage.settle()
        assert set(stage.recorder.events) == {("Warning", "ReconcileError", BOOM)}
        found = await ready(stage)
        assert found is not None
        assert (found.status, found.reason, found.message) == ("False", "ReconcileError", f"widgets: {BOOM}")
        assert found.observed_generation == 1
        failing.error = None
        await stage.settle(60)
        assert await ready(stage) is None


@staged
async def test_a_reconciler_of_requests_is_reported_as_well(stage: ControllerStage) -> None:
    failing = True

    @controller(Widget, name="widgets")
    async def reconcile(request: Request, ctx: Context) -> None:
        if failing:
            raise ValueError("no size 3")

    await stage.user.create(widget("a"))
    async with stage.running(reconcile):
        await stage.settle()
        assert stage.recorder.events[0] == ("Warning", "ReconcileError", BOOM)
        assert await ready(stage) is not None
        failing = False
        await stage.settle(60)
        assert await ready(stage) is None


@staged
async def test_the_condition_is_written_once_and_does_not_reconcile_the_object(stage: ControllerStage) -> None:
    runs = []
    for conditions in (False, True):
        failing = Failing()
        failing.error = failing.numbered
        await stage.user.create(widget("a"))
        before = (await stage.user.get(Widget, "a")).metadata.resource_version
        async with stage.running(widgets(failing, error_conditions=conditions)):
            await stage.settle(20)
        after = (await stage.user.get(Widget, "a")).metadata.resource_version
        assert (before != after) is conditions
        runs.append(failing.runs)
        await stage.user.delete(Widget, "a")
        await stage.settle()
    assert runs[0] == runs[1]


@staged
async def test_events_and_conditions_can_be_turned_off(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    async with stage.running(widgets(Failing(), error_events=False, error_conditions=False)):
        await stage.settle()
    assert not stage.recorder.events
    assert await ready(stage) is None


@staged
async def test_a_ready_condition_that_the_reconcile_sets_is_not_replaced(stage: ControllerStage) -> None:
    failing = Failing()

    async def waits(each: Widget, ctx: Context) -> None:
        await ctx.status(conditions=[Condition(type="Ready", status="True", reason="Mine", message="still")])

    async def updates(each: Widget, ctx: Context) -> None:
        each.status = WidgetStatus(conditions=[Condition(type="Ready", status="True", reason="Updated", message="x")])
        if failing.runs == 1:
            await ctx.client.update(each, subresource="status")

    for failing.before, reason in ((waits, "Mine"), (updates, "Updated")):
        failing.runs = 0
        await stage.user.create(widget("a"))
        async with stage.running(widgets(failing)):
            await stage.settle(5)
        found = await ready(stage)
        assert found is not None
        assert found.reason == reason
        await stage.user.delete(Widget, "a")
        await stage.settle()


@staged
async def test_a_ready_condition_of_an_earlier_success_is_replaced(stage: ControllerStage) -> None:
    failing = Failing(None)

    async def succeeds(each: Widget, ctx: Context) -> None:
        if failing.error is None:
            await ctx.status(conditions=[Condition(type="Ready", status="True", reason="AllUp", message="up")])

    failing.before = succeeds
    await stage.user.create(widget("a", size=3))
    async with stage.running(widgets(failing)):
        for error, expected in ((None, "AllUp"), (lambda: ValueError("x"), "ReconcileError"), (None, "AllUp")):
            failing.error = error
            await touch(stage)
            await stage.settle(60)
            found = await ready(stage)
            assert found is not None
            assert found.reason == expected


@staged
async def test_a_ready_condition_of_another_manager_is_neither_replaced_nor_removed(stage: ControllerStage) -> None:
    failing = Failing()
    for reason, message in (("Issued", "by another"), ("ReconcileError", "other: of another controller")):
        found = await stage.user.create(widget("a"))
        condition = Condition(type="Ready", status="True", reason=reason, message=message)
        condition.last_transition_time = found.metadata.creation_timestamp
        found.status = WidgetStatus(conditions=[condition])
        await stage.user.update(found, subresource="status")
        for failing.error in (lambda: ValueError("x"), None):
            async with stage.running(widgets(failing)):
                await stage.settle(5)
            now = await ready(stage)
            assert now is not None
            assert now.message == message
        await stage.user.delete(Widget, "a")
        await stage.settle()


@staged
async def test_a_condition_set_before_a_restart_is_removed(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    failing = Failing()
    async with stage.running(widgets(failing)):
        await stage.settle()
    assert await ready(stage) is not None
    failing.error = None
    async with stage.running(widgets(failing)):
        await stage.settle()
    assert await ready(stage) is None


@staged
async def test_conditions_of_built_in_kinds_and_kinds_without_any_are_left_alone(stage: ControllerStage) -> None:
    @controller(Namespace)
    async def namespaces(each: Namespace, ctx: Context) -> None:
        raise ValueError("no")

    @controller(ConfigMap)
    async def maps(each: ConfigMap, ctx: Context) -> None:
        raise ValueError("no")

    await stage.user.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
    before = [await stage.user.get(Namespace, "default"), await stage.user.get(ConfigMap, "a")]
    async with stage.running(namespaces), stage.running(maps):
        await stage.settle()
    assert stage.recorder.events
    assert [await stage.user.get(Namespace, "default"), await stage.user.get(ConfigMap, "a")] == before
