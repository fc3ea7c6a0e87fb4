"""Building controllers: what is refused, and what is inherited."""

from __future__ import annotations

import functools
from typing import Any

import msgspec
import pytest
from tests.stage.controllers import ControllerStage, ServerlessStage, staged, without_server
from tests.stage.kinds import Widget, config_map, widget

from ostinato.api.gvk import GroupVersionKind
from ostinato.client import Unstructured
from ostinato.controllers import (
    Builder,
    Channel,
    ChannelSource,
    Context,
    Controller,
    ControllerError,
    ControllerOptions,
    ForObject,
    Request,
    Result,
    WatchKind,
    controller,
    generation_changed,
    in_namespaces,
)
from ostinato.controllers.options import OptionKeywords
from ostinato.controllers.sources.kind import KindKeywords, KindOptions
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.queue import ExponentialBackoff


async def reconcile(request: Request) -> None: ...


class Called:
    async def __call__(self, request: Request) -> None: ...


SOURCE = ChannelSource(Channel())


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda: Builder("x").owns(ConfigMap), r"owns\(\) needs a parent kind; call watch_for\(\) first"),
        (lambda: Builder("x").complete(reconcile), "controller x has no sources"),
        (
            lambda: Builder().watch_for(Widget).watch_for(ConfigMap),
            r"controller widget: watch_for\(\) may be called once",
        ),
        (lambda: Builder().watches_source(SOURCE).complete(reconcile), "a controller without a kind needs a name"),
        (lambda: Builder("x").watches(ConfigMap), r"watches\(\) needs either map_to or handler"),
        (
            lambda: Builder("x").watches(ConfigMap, map_to=lambda each: None, handler=ForObject()),
            r"watches\(\) needs either map_to or handler",
        ),
        (lambda: Builder("x").watch_for(Widget, informers=object()), r"are supported by watches\(\) only"),
        (
            lambda: Builder("x").watch_for(Widget).owns(ConfigMap, informers=object()),
            r"are supported by watches\(\) only",
        ),
        (lambda: Builder("x").watch_for(Widget).complete(None), r"complete\(\) needs a reconciler"),
        (lambda: Builder("my name").watch_for(Widget).complete(reconcile), "is not a valid controller name"),
    ],
)
def test_invalid_declarations_are_rejected_with_a_reason(build: Any, problem: str) -> None:
    with pytest.raises(ControllerError, match=problem):
        build()


def test_a_builder_is_completed_once() -> None:
    builder = Builder().watch_for(Widget)
    builder.complete(reconcile)
    with pytest.raises(ControllerError, match=r"complete\(\) may be called once"):
        builder.complete(reconcile)


def test_the_name_is_the_kind_unless_one_is_given() -> None:
    assert Builder().watch_for(Widget).complete(reconcile).name == "widget"
    assert Builder().watch_for(Widget).named("other").complete(reconcile).name == "other"


def test_the_built_controller_is_passed_to_the_callback() -> None:
    added: list[Controller] = []
    built = Builder("x", add=added.append).watch_for(Widget).complete(reconcile)
    assert added == [built]


def test_options_add_up_and_the_later_win() -> None:
    builder = Builder().watch_for(Widget).with_options(max_concurrent=2, warm_up=True)
    builder.with_options(ControllerOptions(max_concurrent=5))
    assert builder.options == ControllerOptions(max_concurrent=5, warm_up=True)
    assert builder.complete(reconcile).options.max_concurrent == 5


@staged
async def test_event_filters_apply_to_all_kinds_and_not_to_other_sources(stage: ControllerStage) -> None:
    seen: list[Request] = []

    async def note(request: Request) -> None:
        seen.append(request)

    channel = Channel()
    built = (
        Builder("x")
        .watch_for(Widget)
        .watches(ConfigMap, map_to=lambda each: Request("", "mapped"))
        .watches_source(ChannelSource(channel))
        .with_event_filter(in_namespaces("nowhere"))
        .with_event_filter(generation_changed)
        .complete(note)
    )
    async with stage.running(built):
        await stage.user.create(widget("a"))
        await stage.user.create(config_map("b"))
        channel.put(Request("", "c"))
        await stage.settle()
    assert seen == [Request("", "c")]


# Options


def test_an_option_is_inherited_only_if_it_is_not_given() -> None:
    manager = ControllerOptions(max_concurrent=7, warm_up=True, contain_panics=True, reconcile_timeout=5.0)
    mine = ControllerOptions(warm_up=False, reconcile_timeout=0.0)
    whole = mine.complete(manager)
    assert (whole.warm_up, whole.contain_panics, whole.max_concurrent) == (False, True, 7)
    assert whole.reconcile_timeout == 0.0


def test_every_option_takes_part_in_inheritance_and_has_a_default() -> None:
    given: dict[str, Any] = {
        "max_concurrent": 3,
        "concurrency_of": {"Widget": 2},
        "reconcile_timeout": 1.0,
        "sync_timeout": 2.0,
        "needs_leader_election": False,
        "warm_up": True,
        "contain_panics": False,
        "limiter": ExponentialBackoff,
        "max_retries": 3,
        "namespaces": "team-*",
        "wait_for_own_writes": False,
        "runs_for_own_writes": False,
        "hot_loop_guard": False,
        "error_events": False,
        "error_conditions": False,
        "changes_annotation": True,
        "slow_step": 3.0,
    }
    assert set(given) == set(ControllerOptions.__struct_fields__), "an option was forgotten here"
    assert ControllerOptions().inheriting(ControllerOptions(**given)) == ControllerOptions(**given)
    assert None not in msgspec.structs.astuple(ControllerOptions().complete())


@pytest.mark.parametrize(
    ("mine", "kinds", "managers", "kind", "wanted"),
    [
        (4, {"Widget.example.dev": 9}, 7, "Widget", 4),
        (None, {"Widget.example.dev": 9}, None, "Widget", 9),
        (None, {"Widget.example.dev": 9}, 7, "Widget", 9),
        (None, {"Widget.example.dev": 9}, 7, "Gadget", 7),
        (None, {"Widget.example.dev": 9}, None, "Gadget", 1),
        (None, {"Widget.example.dev": 0}, 7, "Widget", 7),
        (None, {}, None, "Widget", 1),
        (None, {}, 7, "Widget", 7),
        (0, {}, None, "Widget", 1),
        (0, {}, 7, "Widget", 7),
        (0, {}, -7, "Widget", 1),
        (-3, {"Widget.example.dev": 9}, 7, "Widget", 9),
    ],
)
def test_concurrency_is_the_controllers_then_the_kinds_then_the_managers_then_one(
    mine: int | None, kinds: dict[str, int], managers: int | None, kind: str, wanted: int
) -> None:
    options = ControllerOptions(max_concurrent=mine)
    manager = ControllerOptions(concurrency_of=kinds, max_concurrent=managers)
    assert options.complete(manager, GroupVersionKind("example.dev", "v1", kind)).max_concurrent == wanted


def test_the_defaults_are_those_of_controller_runtime() -> None:
    options = ControllerOptions().complete()
    assert (options.max_concurrent, options.sync_timeout, options.reconcile_timeout) == (1, 120.0, 0.0)
    assert (options.needs_leader_election, options.warm_up, options.contain_panics) == (True, False, True)
    assert options.limiter is not None
    limiter = options.limiter()
    assert [limiter.when("x") for _ in range(3)] == [0.005, 0.01, 0.02]
    for _ in range(40):
        longest = limiter.when("x")
    assert longest == 1000


@pytest.mark.parametrize("name", ["reconcile_timeout", "sync_timeout", "slow_step"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), "30"])
def test_times_are_numbers_of_seconds(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}: .* is not a number of seconds"):
        ControllerOptions(**{name: value})


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"owns": ConfigMap}, r"owns must be a list; use owns=\[ConfigMap\]"),
        ({"watches": Secret}, r"watches must be a list; use watches=\[Secret\]"),
        ({"watches": [Secret]}, r"watches: Secret is not a WatchKind; use WatchKind\(Secret, map_to=…\)"),
        ({"max_concurrent": "4"}, "max_concurrent: '4' is not an integer"),
        (
            {"max_concurent": 4},
            "@controller: unknown option 'max_concurent'; did you mean max_concurrent\\? options are name, owns, ",
        ),
        (
            {"ownz": [ConfigMap]},
            "unknown option 'ownz'; did you mean owns\\? options are name, owns, watches, sources, .*, slow_step$",
        ),
        ({"xyz": 1}, "unknown option 'xyz'; options are name, "),
    ],
)
def test_misspelt_options_are_rejected_with_the_correct_name(given: dict[str, Any], problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        controller(Widget, **given)(reconcile)


def test_misspelt_options_of_a_watch_are_rejected_with_the_correct_name() -> None:
    given: Any = {"metadata_olny": True}
    problem = (
        r"controller x: owns\(\): unknown option 'metadata_olny'; did you mean metadata_only\? options are priority,"
    )
    with pytest.raises(TypeError, match=problem):
        Builder("x").watch_for(Widget).owns(ConfigMap, **given)
    given = {"owns": [ConfigMap]}
    with pytest.raises(TypeError, match=r"with_options\(\): unknown option 'owns'; options are max_concurrent, "):
        Builder("x").with_options(**given)


def test_type_checkers_know_every_option() -> None:
    assert tuple(OptionKeywords.__annotations__) == ControllerOptions.__struct_fields__
    assert ("predicates", *KindKeywords.__annotations__) == KindOptions.__struct_fields__


# The decorator


@controller(Widget, owns=[ConfigMap], watches=[WatchKind(Secret, map_to=lambda secret: None)], max_concurrent=2)
async def widgets(each: Widget, ctx: Context) -> Result | None:
    """Makes widgets."""
    return Result(requeue_after=each.spec.size)


def test_a_decorated_function_stays_callable_and_has_a_repr() -> None:
    assert widgets.name == "widgets"
    assert widgets.__doc__ == "Makes widgets."
    assert widgets.needs_leader_election is None, "that is for the manager to say"
    assert (widgets.reconciles, widgets.owns, widgets.watches) == ((Widget,), (ConfigMap,), (Secret,))
    assert repr(widgets) == "<controller widgets>"
    coroutine = widgets(widget("a", size=7), None)
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    assert stopped.value.value == Result(requeue_after=7)


def test_kinds_without_a_class_are_watched_all_the_same() -> None:
    @controller(Unstructured.of("example.dev/v1", "Widget"), name="dicts", access=["x"], needs_leader_election=False)
    async def dicts(each: dict[str, Any], ctx: Context) -> None: ...

    assert [each.gvk.kind for each in dicts.reconciles] == ["Widget"]
    assert dicts.access == ("x",)
    assert dicts.needs_leader_election is False
    assert str(dicts.make().sources[0]) == "Widget of example.dev/v1"


def test_a_built_controller_lists_its_kinds() -> None:
    built = (
        Builder("widgets")
        .watch_for(Widget)
        .owns(ConfigMap)
        .watches(Secret, map_to=lambda secret: None)
        .watches(ConfigMap, map_to=lambda each: None)
        .needs("x")
        .complete(widgets.function)
    )
    assert (built.reconciles, built.owns, built.watches) == ((Widget,), (ConfigMap,), (Secret,))
    assert built.access == ("x",)


def test_a_controller_without_a_kind_has_sources() -> None:
    @controller(sources=[SOURCE])
    async def keys(request: Request, ctx: Context) -> None: ...

    assert keys.make().view is None


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda: None, "takes 0 arguments"),
        (lambda a, b, c: None, "takes 3 arguments"),
        (42, "is not a reconciler"),
        (type("Reconciler", (), {"reconcile": reconcile}), "is a class; pass an instance"),
    ],
)
def test_an_object_that_is_not_a_reconciler_is_rejected(function: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        Builder("x").watch_for(Widget).complete(function)


def test_async_functions_are_known_in_all_their_forms() -> None:
    for function in (reconcile, functools.partial(functools.partial(reconcile)), Called()):
        assert Builder("x").watch_for(Widget).complete(function).reconciler.is_async
    assert not Builder("x").watch_for(Widget).complete(lambda request: None).reconciler.is_async


def test_a_generator_is_refused() -> None:
    def yielding(each: Widget, ctx: Context) -> Any:
        yield each

    async def yielding_too(each: Widget, ctx: Context) -> Any:
        yield each

    for function in (yielding, yielding_too):
        with pytest.raises(TypeError, match="is a generator"):
            controller(Widget)(function)


@without_server
async def test_the_same_function_runs_in_several_managers(stage: ServerlessStage) -> None:
    ran: list[str] = []
    channel = Channel()

    @controller(sources=[ChannelSource(channel)])
    async def noting(request: Request, ctx: Context) -> None:
        ran.append(ctx.name)

    other = ServerlessStage(stage.world, controllers=ControllerOptions(concurrency_of={"Widget.example.dev": 3}))
    async with stage.running(noting), other.running(noting):
        await stage.settle()
        channel.put("x")
        await stage.settle()
    assert ran == ["noting", "noting"]
    async with stage.running(noting):
        await stage.settle()


@staged
async def test_the_first_parameter_decides_between_object_and_request(stage: ControllerStage) -> None:
    given: dict[str, type] = {}

    async def named(request: Any) -> None:
        given["named"] = type(request)

    async def hinted(what: Request, ctx: Context) -> None:
        given["hinted"] = type(what)

    async def unresolvable(what: "Nowhere", ctx: Context) -> None:  # type: ignore[name-defined]  # noqa: F821, UP037
        given["unresolvable"] = type(what)

    async def other(each: Any, ctx: Context) -> None:
        given["other"] = type(each)

    await stage.user.create(widget("a"))
    for function in (named, hinted, unresolvable, other):
        async with stage.running(Builder(function.__name__).watch_for(Widget).complete(function)):
            await stage.settle()
    assert given == {"named": Request, "hinted": Request, "unresolvable": Widget, "other": Widget}


def test_a_decorator_without_a_kind_is_rejected() -> None:
    with pytest.raises(TypeError, match=r"@controller\(Widget\) above def widgets"):

        @controller  # type: ignore[arg-type]
        async def widgets(each: Widget, ctx: Context) -> None: ...
