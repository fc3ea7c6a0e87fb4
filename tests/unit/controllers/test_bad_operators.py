"""Operators that do everything wrong: each is told what, and its neighbour keeps working."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, config_map, widget

from ostinato.api.meta import Condition, ObjectMeta
from ostinato.api.object import CustomResource
from ostinato.api.struct import Struct
from ostinato.controllers import (
    BlockingContext,
    Context,
    Dependencies,
    StartupSource,
    Task,
    WatchKind,
    controller,
    on_update,
    where,
)
from ostinato.controllers.guards.steps import Measured
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.world import Clock


class Ready(Struct):
    ready: int = 0


class ConfigMapLike(CustomResource, group="example.dev", version="v1", kind="Widget"):
    status: Ready | None = None


async def writes_always(each: Widget, ctx: Context) -> None:
    await ctx.status(note=f"this is run {ctx.reconcile.id}")


async def never_removes_its_finalizer(each: Widget, ctx: Context) -> None:
    if "example.dev/mine" not in each.metadata.finalizers:
        each.metadata.finalizers.append("example.dev/mine")
        await ctx.client.update(each)


async def raises(each: Widget, ctx: Context) -> None:
    raise LookupError("no such thing")


@dataclass(frozen=True)  # so it has no hash that could be taken of it, and takes no assignments
class Overdrawn(Exception):  # noqa: N818 - reads as what happened
    accounts: list[str]

    def __str__(self) -> str:
        return f"overdrawn: {self.accounts[0]}"


async def raises_a_dataclass(each: Widget, ctx: Context) -> None:
    raise Overdrawn(["savings"])


async def returns_nonsense(each: Widget, ctx: Context) -> Any:
    return {"requeue": True}


async def exits(each: Widget, ctx: Context) -> None:
    raise SystemExit(1)


async def gives_its_status_as_a_dict(each: Widget, ctx: Context) -> None:
    await ctx.status({"ready": 3})


async def names_the_owner(each: Widget, ctx: Context) -> None:
    await ctx.apply(config_map(), owner=each.metadata.name)  # type: ignore[arg-type]


async def applies_a_class(each: Widget, ctx: Context) -> None:
    await ctx.apply(ConfigMap, owner=each)  # type: ignore[arg-type, type-var]


async def owns_itself(each: Widget, ctx: Context) -> None:
    await ctx.apply(Widget(metadata=ObjectMeta(name=each.metadata.name)), owner=each, adopt=True)


async def controls_nothing_that_it_names(each: Widget, ctx: Context) -> None: ...


async def gives_conditions_as_dicts(each: Widget, ctx: Context) -> None:
    await ctx.status(conditions=[{"type": "Ready", "status": "True"}])  # type: ignore[list-item]


async def gives_conditions_that_no_status_has(each: Widget, ctx: Context) -> None:
    await ctx.status(
        ConfigMapLike(metadata=each.metadata), conditions=[Condition(type="Ready", status="True", reason="Up")]
    )


async def gives_one_object_for_a_set(each: Widget, ctx: Context) -> None:
    await ctx.apply_set(config_map(), owner=each)  # type: ignore[arg-type]


async def never_returns(each: Widget, ctx: Context) -> None:
    await ctx.world.clock.sleep(1e9)


BAD: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (gives_its_status_as_a_dict, {}, "pass status fields by name, ctx.status(ready=3)"),
    (names_the_owner, {}, "owner: the text 'bad' is not an object; pass the owner of ConfigMap"),
    (gives_conditions_as_dicts, {}, "conditions: a dict is not a Condition; use Condition(type="),
    (gives_conditions_that_no_status_has, {}, "status has no field 'conditions'; fields are ready"),
    (gives_one_object_for_a_set, {}, "apply_set() the object ConfigMap"),
    (applies_a_class, {}, "apply() got the class ConfigMap, which is not an object; pass an instance, e.g. ConfigMap("),
    (owns_itself, {}, "Widget default/bad cannot own itself; apply it without owner="),
    (
        controls_nothing_that_it_names,
        {"sources": [StartupSource([("default", "bad")])]},
        "takes an object, but the key ('default', 'bad') does not name one; enqueue NamespacedName(",
    ),
    (writes_always, {}, "the reconcile is self-triggered"),
    (
        never_removes_its_finalizer,
        {},
        "controller=bad object=Widget default/bad finalizers=example.dev/mine",
    ),
    (raises, {}, "reconcile failed controller=bad object='Widget default/bad' error=LookupError: no such thing"),
    (raises_a_dataclass, {}, "object='Widget default/bad' error=Overdrawn: overdrawn: savings"),
    (returns_nonsense, {}, "returned {'requeue': True} (dict); return None, or Result(requeue_after=…) to requeue"),
    (exits, {}, "the reconciler called sys.exit(1)"),
    (
        never_returns,
        {"reconcile_timeout": 30.0},
        "ReconcileTimeout: exceeded the reconcile timeout of 30 s and was cancelled",
    ),
]


@pytest.mark.parametrize(("function", "options", "message"), BAD)
def test_a_bad_operator_gets_a_clear_message_and_its_neighbour_keeps_working(
    function: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        @controller(Widget, name="good")
        async def good(each: Widget, ctx: Context) -> None:
            seen.append(each.metadata.name)

        seen: list[str] = []
        await stage.user.create(widget("bad"))
        async with stage.running(controller(Widget, name="bad", **options)(function)), stage.running(good):
            await stage.settle(5)
            await stage.user.delete(Widget, "bad")
            await stage.settle(70)
            await stage.user.create(widget("later"))
            await stage.settle(1)
        assert any(message in text for text in stage.log.texts()), stage.log.texts()
        assert seen[-1] == "later"

    play()


@staged
async def test_a_deletion_that_completes_in_time_is_not_reported(stage: ControllerStage) -> None:
    @controller(Widget)
    async def slow(each: Widget, ctx: Context) -> None:
        async with ctx.finalizer(each, "example.dev/mine") as deleting:
            if deleting and ctx.world.clock.monotonic() < 30:
                raise OSError("not yet")

    await stage.user.create(widget("a"))
    async with stage.running(slow):
        await stage.settle(1)
        await stage.user.delete(Widget, "a")
        await stage.settle(300)
        assert await stage.user.get(Widget, "a", missing=None) is None
    assert not [text for text in stage.log.texts() if "deletion blocked by finalizers" in text]


@staged
async def test_a_stuck_deletion_is_reported_once_per_object(stage: ControllerStage) -> None:
    async with stage.running(controller(Widget, name="bad")(never_removes_its_finalizer)):
        for _ in range(2):
            await stage.user.create(widget("a"))
            await stage.settle(1)
            await stage.user.delete(Widget, "a")
            for _ in range(3):
                await stage.settle(50)
                held = await stage.user.get(Widget, "a")
                held.metadata.labels = {"touched": str(stage.world.clock.monotonic())}
                await stage.user.update(held)
            held = await stage.user.get(Widget, "a")
            held.metadata.finalizers = []
            await stage.user.update(held)
            await stage.settle(1)
    assert len([text for text in stage.log.texts() if "deletion blocked by finalizers" in text]) == 2


@staged
async def test_finalizers_of_the_garbage_collector_are_not_the_controllers_fault(stage: ControllerStage) -> None:
    @controller(Widget)
    async def idle(each: Widget, ctx: Context) -> None: ...

    made = widget("a")
    made.metadata.finalizers = ["foregroundDeletion"]
    await stage.user.create(made)
    async with stage.running(idle):
        await stage.user.delete(Widget, "a")
        await stage.settle(200)
    assert stage.log.texts() == []


# A blocked event loop


class SlowClock(Clock):
    """Every look at it takes as long as it is told."""

    def __init__(self) -> None:
        self.now_is = 0.0

    def monotonic(self) -> float:
        return self.now_is

    def wall(self) -> float:
        return self.now_is

    def _loop_time_at(self, at: float) -> float:
        return at


class Pause:
    def __await__(self) -> Any:
        return (yield "paused")


def drive(measured: Measured[Any], *sent: Any) -> Any:
    """Run it to its end without a loop; what is an exception is thrown in."""
    steps = measured.__await__()
    try:
        assert next(steps) == "paused"
        for each in sent:
            step = steps.throw(each) if isinstance(each, BaseException) else steps.send(each)
            assert step == "paused"
    except StopIteration as end:
        return end.value
    return None


def test_a_step_that_blocks_the_loop_is_logged_with_its_duration() -> None:
    clock, told = SlowClock(), list[float]()

    async def blocks() -> str:
        clock.now_is += 3.0
        assert await Pause() == "first"
        clock.now_is += 0.1
        await Pause()
        clock.now_is += 2.0
        return "done"

    assert drive(Measured(blocks(), clock, 0.5, told.append), "first", None) == "done"
    assert told == pytest.approx([3.0, 2.0])


def test_exceptions_pass_through_the_wrapped_coroutine() -> None:
    clock, told = SlowClock(), list[float]()

    async def catches() -> str:
        try:
            await Pause()
        except ValueError:
            clock.now_is += 1.0
        try:
            await Pause()
        except KeyError:
            raise OSError("out") from None
        return "never"

    with pytest.raises(OSError, match="out"):
        drive(Measured(catches(), clock, 0.5, told.append), ValueError(), KeyError())
    assert told == [1.0]


@staged
async def test_a_reconcile_that_blocks_the_event_loop_is_reported_and_others_continue(
    stage: ControllerStage,
) -> None:
    real = stage.world.clock.monotonic
    lost = [0.0]
    stage.world.clock.monotonic = lambda: real() + lost[0]  # type: ignore[method-assign]

    @controller(Widget)
    async def blocks(each: Widget, ctx: Context) -> None:
        if each.metadata.name == "a":
            lost[0] += 2.0  # as if it had slept

    @controller(Widget)
    async def good(each: Widget, ctx: Context) -> None:
        seen.append(each.metadata.name)

    seen: list[str] = []
    await stage.user.create(widget("a"))
    async with stage.running(blocks), stage.running(good):
        await stage.settle()
        await stage.user.create(widget("later"))
        await stage.settle()
    assert seen == ["a", "later"]
    (text,) = stage.log.texts()
    assert text.startswith(
        "reconcile blocked the event loop; await long operations, or make the reconciler a plain def"
    )
    assert text.endswith("controller=blocks object='Widget default/a' seconds=2.0")


# Tracebacks begin where the user's code does


def _frames(stage: ControllerStage) -> list[list[str]]:
    """The functions in the tracebacks that were logged, with those of causes after them."""
    shown = []
    for record in stage.log.records:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            trace = [error, error.__cause__] if error.__cause__ else [error]
            shown.append([frame.name for each in trace for frame in traceback.extract_tb(each.__traceback__)])
    return shown


@pytest.mark.parametrize("plain", [False, True])
def test_a_traceback_begins_with_the_reconciler(plain: bool) -> None:
    async def raising(each: Widget, ctx: Context) -> None:
        raise LookupError("no such thing")

    def raising_in_a_thread(each: Widget, ctx: BlockingContext) -> None:
        raise LookupError("no such thing")

    @staged
    async def play(stage: ControllerStage) -> None:
        await stage.user.create(widget("a"))
        function = raising_in_a_thread if plain else raising
        async with stage.running(controller(Widget, name="bad")(function)):
            await stage.settle(1)
        assert _frames(stage)[0] == [function.__name__]

    play()


@staged
async def test_a_cause_that_the_reconciler_caught_keeps_its_traceback(stage: ControllerStage) -> None:
    def deep() -> None:
        raise LookupError("no such thing")

    @controller(Widget)
    async def wraps(each: Widget, ctx: Context) -> None:
        try:
            deep()
        except LookupError as error:
            raise RuntimeError("it did not work") from error

    await stage.user.create(widget("a"))
    async with stage.running(wraps):
        await stage.settle(1)
    assert _frames(stage)[0] == ["wraps", "wraps", "deep"]


@staged
async def test_an_exit_in_a_reconcile_is_logged_with_its_traceback(stage: ControllerStage) -> None:
    await stage.user.create(widget("a"))
    async with stage.running(controller(Widget, name="bad")(exits)):
        await stage.settle(1)
    assert _frames(stage)[0] == ["exits"]


@staged
async def test_a_failing_map_function_is_logged_and_an_invalid_result_names_it(
    stage: ControllerStage,
) -> None:
    def fails(each: ConfigMap) -> Any:
        raise LookupError("no such thing")

    def tells_a_name(each: ConfigMap) -> Any:
        return "a"

    def tells_a_dict(each: ConfigMap) -> Any:
        return {"namespace": "default", "name": "a"}

    def tells_objects(each: ConfigMap) -> Any:
        return [each]

    for function in (fails, tells_a_name, tells_a_dict, tells_objects):

        @controller(Widget, name="bad", watches=[WatchKind(ConfigMap, map_to=function)])
        async def bad(each: Widget, ctx: Context) -> None: ...

        async with stage.running(bad):
            await stage.settle(1)
            await stage.user.create(config_map(function.__name__.replace("_", "-")))
            await stage.settle(1)
    assert _frames(stage)[0] == ["fails"]
    assert len(stage.log.records) > len(_frames(stage))  # the other has nothing to show
    for words in (
        "tells_a_name returned the string 'a'",
        "tells_a_dict returned a dict",
        "returned the object ConfigMap",
    ):
        assert any(words in text and "; return NamespacedName(" in text for text in stage.log.texts()), words
    assert {tuple(each) for each in _frames(stage)} == {("fails",)}


@staged
async def test_a_predicate_that_fails_is_named_with_its_error(stage: ControllerStage) -> None:
    def choosy(event: Any) -> bool:
        raise LookupError("no such thing")

    @controller(Widget, name="bad", predicates=[choosy])
    async def bad(each: Widget, ctx: Context) -> None:
        seen.append(each.metadata.name)

    seen: list[str] = []
    await stage.user.create(widget("a"))
    async with stage.running(bad):
        await stage.settle(1)
    assert seen == ["a"]
    (text,) = stage.log.texts()
    assert text.startswith("predicate failed; event not filtered controller=bad predicate=")
    assert text.endswith("choosy object='Widget default/a' error=LookupError: no such thing")
    assert _frames(stage) == [["choosy"]]


# What is refused where it is written


@pytest.mark.parametrize("source", [StartupSource, [StartupSource([])], "0 6 * * *"])
def test_an_invalid_source_is_rejected(source: Any) -> None:
    with pytest.raises(TypeError, match=r"controller bad: sources: .* is not a source; pass one"):

        @controller(Widget, sources=[source])
        async def bad(each: Widget, ctx: Context) -> None: ...


@staged
async def test_a_task_with_a_plain_function_is_rejected(stage: ControllerStage) -> None:
    def sweep(dependencies: Dependencies) -> None: ...

    with pytest.raises(TypeError, match="task janitor is not an async def and blocked the event loop"):
        await Task("janitor", sweep).run(stage.dependencies)  # type: ignore[arg-type]


async def _later(*_: Any) -> bool:
    return False


@pytest.mark.parametrize(
    ("predicates", "words"),
    [
        (lambda: [_later], "predicate _later is an async def; make it a plain def"),
        (lambda: [where(Widget, _later)], "predicate _later is an async def"),
        (lambda: [lambda: True], r"predicate <lambda>\(\) must take an event only"),
        (
            lambda: [where(Widget, lambda old, new: True)],
            r"predicate <lambda>\(old, new\) must take the object only",
        ),
        (
            lambda: [on_update(lambda new: True)],
            r"\(new\) must take the old state and the new state only",
        ),
        (lambda: ["generation_changed"], "'generation_changed' is not a predicate; pass a function of an event"),
        (lambda: _later, r"predicates must be a list; use predicates=\[_later\]"),
    ],
)
def test_an_invalid_predicate_is_rejected(predicates: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):

        @controller(Widget, predicates=predicates())
        async def bad(each: Widget, ctx: Context) -> None: ...
