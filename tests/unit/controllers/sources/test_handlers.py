"""Handlers: with which priority, for whom, and of what they are sink."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, config_map, widget
from tests.unit.controllers.sources.test_sources import A, reference, start_source, stop

from ostinato.api.object import kind_of
from ostinato.cache import Event
from ostinato.client import MetadataOf
from ostinato.controllers import (
    Builder,
    Context,
    Dependencies,
    ForEvent,
    ForObject,
    ForOwner,
    Handler,
    KindOptions,
    KindSource,
    MapTo,
    Request,
    WatchKind,
    controller,
    having_labels,
)
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.queue import LOW_PRIORITY


def everyone(event: Event) -> list[Request]:
    return [A]


async def mapped_later(each: ConfigMap) -> Request:
    return A


HANDLERS: list[Handler] = [
    ForObject(),
    ForOwner(Widget),
    MapTo(lambda each: A),
    MapTo(mapped_later),
    ForEvent(everyone),
]


def owned_by_a(**data: str) -> ConfigMap:
    made = config_map("a", **data)
    made.metadata.owner_references = [reference("a", controller=True)]
    return made


@staged
async def test_initial_objects_and_resyncs_have_low_priority_with_every_handler(stage: ControllerStage) -> None:
    made = await stage.user.create(owned_by_a())
    for handler in HANDLERS:
        sink, task = await start_source(stage, KindSource(ConfigMap, handler, KindOptions(resync=60)))
        assert sink.take() == [(A, "ConfigMap found", LOW_PRIORITY)]
        await stage.settle(60)
        assert sink.take() == [(A, "ConfigMap resynced", LOW_PRIORITY)]
        made.data["changed"] = str(handler)
        made = await stage.user.update(made)
        await stage.settle()
        assert sink.take() == [(A, "ConfigMap updated", 0)]
        await stop(task)


@staged
async def test_a_priority_that_is_given_is_that_of_everything(stage: ControllerStage) -> None:
    made = await stage.user.create(owned_by_a())
    for handler in HANDLERS:
        sink, task = await start_source(stage, KindSource(ConfigMap, handler, KindOptions(resync=60, priority=7)))
        await stage.settle(60)
        made.data["changed"] = str(handler)
        made = await stage.user.update(made)
        await stage.settle()
        assert [priority for _, _, priority in sink.take()] == [7, 7, 7]
        await stop(task)
    nonsense: Any = "high"
    with pytest.raises(TypeError, match="priority must be an integer such as 0 or LOW_PRIORITY, not 'high'"):
        Builder().watch_for(Widget, priority=nonsense)


async def later(event: Event) -> Request:
    return A


@staged
async def test_an_event_function_returns_none_one_or_many_keys_with_or_without_delay(stage: ControllerStage) -> None:
    answers: list[Any] = [lambda event: None, everyone, lambda event: A, lambda event: (A for _ in "ab"), later]
    sink = [await start_source(stage, KindSource(ConfigMap, ForEvent(each))) for each in answers]
    await stage.user.create(config_map("x"))
    await stage.settle()
    assert [each.keys for each, _ in sink] == [[], [A], [A], [A], [A]]
    assert stage.log.texts() == []
    for _, task in sink:
        await stop(task)


@staged
async def test_an_invalid_key_is_logged_with_its_object(stage: ControllerStage) -> None:
    answers: list[Any] = [lambda event: "name", lambda event: [["a", "list"]], lambda event: 1 / 0]
    sink = [await start_source(stage, KindSource(ConfigMap, ForEvent(each))) for each in answers]
    await stage.user.create(config_map("x"))
    await stage.settle()
    assert [each.keys for each, _ in sink[::2]] == [[], []]
    texts = stage.log.texts()
    assert [text.partition(" error=")[2] for text in texts if "ConfigMap default/x" in text] == [
        "TypeError: the handler returned the string 'name'; return NamespacedName(namespace, name)",
        "ZeroDivisionError: division by zero",
    ]
    for _, task in sink:
        await stop(task)
    async with stage.running(Builder("x").watches(Secret, handler=ForEvent(answers[1])).complete(lambda request: None)):
        await stage.settle()
        await stage.user.create(Secret(metadata=config_map("y").metadata))
        await stage.settle()
    assert stage.log.texts()[-1].endswith("error=TypeError: unhashable type: 'list'")


@staged
async def test_a_handler_may_be_that_of_several_kinds(stage: ControllerStage) -> None:
    given: list[str] = []

    def keys(each: ConfigMap | Secret) -> Request:
        given.append(type(each).__name__)
        return A

    both = MapTo(keys)
    seen: list[Request] = []

    async def reconcile(request: Request) -> None:
        seen.append(request)

    build = Builder("both").watches(ConfigMap, handler=both).watches(Secret, handler=both)
    async with stage.running(build.complete(reconcile)):
        await stage.settle()
        await stage.user.create(config_map("a"))
        await stage.settle()
        await stage.user.create(Secret(metadata=config_map("b").metadata))
        await stage.settle()
    assert given == ["ConfigMap", "Secret"]
    assert seen == [A, A]
    assert stage.log.texts() == []


@staged
async def test_a_map_function_receives_the_dependencies_of_its_manager(stage: ControllerStage) -> None:
    asked: list[object] = []

    def keys(each: ConfigMap, dependencies: Dependencies) -> None:
        asked.append(dependencies.client)

    @controller(Widget, watches=[WatchKind(ConfigMap, map_to=keys)])
    async def widgets(each: Widget, ctx: Context) -> None: ...

    other = ControllerStage(stage.world, stage.server)
    async with stage.running(widgets), other.running(widgets):
        await stage.settle()
        await stage.user.create(config_map("a"))
        await stage.settle()
        await other.informers.stop()
    assert len(asked) == 2
    assert {stage.client, other.client} == set(asked)


def test_a_source_needs_a_kind_and_a_handler_and_an_owner_a_kind() -> None:
    nothing: Any = None
    with pytest.raises(TypeError, match=r"Widget: None is not an event handler; pass one such as ForObject\(\)"):
        KindSource(Widget, nothing)
    with pytest.raises(TypeError, match="None is not a kind"):
        KindSource(nothing, ForObject())
    with pytest.raises(TypeError, match="None is not a kind"):
        ForOwner(nothing)


# Metadata only


@staged
async def test_several_controllers_watch_the_metadata_of_a_kind_for_owned_or_mapped(stage: ControllerStage) -> None:
    given: dict[str, list[Any]] = {"for": [], "owner": [], "map": []}

    async def reconcile_metadata(each: Any, ctx: Context) -> None:
        given["for"].append(each)

    async def reconcile_owner(request: Request) -> None:
        given["owner"].append(request)

    async def reconcile_mapped(request: Request) -> None: ...

    def keys(each: Any) -> Request:
        given["map"].append(each)
        return A

    owner = Builder("owns").watch_for(Widget).owns(ConfigMap, metadata_only=True)
    controllers = [
        Builder("for").watch_for(ConfigMap, metadata_only=True).complete(reconcile_metadata),
        owner.complete(reconcile_owner),
        Builder("maps").watches(ConfigMap, map_to=keys, metadata_only=True).complete(reconcile_mapped),
    ]
    tasks = [asyncio.create_task(each.run(stage.dependencies)) for each in controllers]
    await stage.settle()
    await stage.user.create(owned_by_a(text="long"))
    await stage.settle()
    for task in tasks:
        await stop(task)
    for each in (*given["for"], *given["map"]):
        assert kind_of(each).gvk == kind_of(ConfigMap).gvk
        assert each.metadata.name == "a"
        assert not hasattr(each, "data")
    assert given["owner"] == [A]
    assert len(given["for"]) == len(given["map"]) == 1
    (informer,) = stage.informers.all(kind_of(ConfigMap).gvk)
    assert informer is stage.informers.of(MetadataOf(ConfigMap))
    assert informer.metadata_only


@staged
async def test_predicates_of_one_kind_do_not_filter_another(stage: ControllerStage) -> None:
    seen: list[Request] = []

    async def reconcile(request: Request) -> None:
        seen.append(request)

    built = (
        Builder("x")
        .watch_for(Widget, predicates=[having_labels("app=web")])
        .owns(ConfigMap)
        .watches(Secret, map_to=lambda each: Request("", "secret"), predicates=[having_labels("app=db")])
        .complete(reconcile)
    )
    async with stage.running(built):
        await stage.settle()
        await stage.user.create(widget("w"))
        await stage.user.create(Secret(metadata=config_map("b").metadata))
        await stage.user.create(owned_by_a())
        await stage.settle()
    assert seen == [A]
