"""Sources that come and go while a controller runs, and kinds that come later: other namespaces, other kinds."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from tests.stage.controllers import ControllerStage, ServerlessStage, staged, without_server
from tests.stage.kinds import Widget, config_map, definition, widget
from tests.unit.controllers.sources.test_sources import reference

from ostinato.api.meta import ObjectMeta
from ostinato.cache import Informers, InformerSettings, SyncError
from ostinato.client import Unstructured
from ostinato.client.transport.protocol import ConnectionLost
from ostinato.controllers import (
    Builder,
    Channel,
    ChannelSource,
    Context,
    Controller,
    ForObject,
    ForOwner,
    KindOptions,
    KindSource,
    Request,
)
from ostinato.controllers.sources.sources import Sink
from ostinato.kinds.core_v1 import ConfigMap, Namespace


def widgets_in(namespace: str) -> KindSource:
    return KindSource(Widget, ForObject(), KindOptions(settings=InformerSettings(namespaces=(namespace,))))


@staged
async def test_namespaces_are_added_and_given_up_while_a_controller_runs(stage: ControllerStage) -> None:
    seen: list[str] = []

    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.client.get(Widget, request)
        seen.append(f"{request}: {found.spec.size}")

    async def put(namespace: str, size: int) -> None:
        made = widget("a", size=size)
        made.metadata.namespace = namespace
        await stage.user.apply(made)
        await stage.settle()

    for name in ("one", "two"):
        await stage.user.create(Namespace(metadata=ObjectMeta(name=name)))
        await put(name, 1)
    one, two = widgets_in("one"), widgets_in("two")
    built = Controller("namespaces", reconcile, sources=[one])
    async with stage.running(built):
        await stage.settle()
        assert seen == ["one/a: 1"]
        built.watch(two)
        await stage.settle()
        assert seen == ["one/a: 1", "two/a: 1"]
        seen.clear()
        await built.unwatch(one)
        assert built.sources == (two,)
        await put("one", 2)
        await put("two", 2)
        assert seen == ["two/a: 2"]
        informer = stage.informers.of(Widget, InformerSettings(namespaces=("one",)))
        assert informer.is_running
        assert not informer.has_handlers
        await stage.informers.release(informer)
        assert informer.has_stopped
        await put("two", 3)
        assert seen == ["two/a: 2", "two/a: 3"]


@without_server
async def test_keys_of_a_removed_source_are_still_reconciled(stage: ServerlessStage) -> None:
    seen: list[str] = []
    gate = asyncio.Event()

    async def reconcile(request: str) -> None:
        seen.append(request)
        await gate.wait()

    channel = Channel()
    source = ChannelSource(channel)
    built = stage.controller(reconcile, source)
    async with stage.running(built):
        channel.put("a")
        channel.put("b")
        await stage.settle()
        with pytest.raises(ValueError, match="controller test already watches a channel by this source object"):
            built.watch(source)
        await built.unwatch(source)
        channel.put("c")
        gate.set()
        await stage.settle()
        assert seen == ["a", "b"]
        with pytest.raises(ValueError, match="controller test does not watch a channel"):
            await built.unwatch(source)


@without_server
async def test_a_source_that_never_syncs_can_be_removed(stage: ServerlessStage) -> None:
    class Late:
        def __str__(self) -> str:
            return "what is late"

        async def run(self, sink: object) -> None:
            await asyncio.Event().wait()

    seen: list[str] = []

    async def reconcile(request: str) -> None:
        seen.append(request)

    late = Late()
    built = stage.controller(reconcile, late)
    stage.channel.put("a")
    async with stage.running(built):
        await stage.settle()
        assert seen == []
        await built.unwatch(late)
        await stage.settle()
        assert seen == ["a"]


class Slow:
    """A source that takes a second to end, and fails the next time."""

    def __init__(self) -> None:
        self.runs = 0

    def __str__(self) -> str:
        return "what is slow"

    async def run(self, sink: Sink) -> None:
        self.runs += 1
        sink.ready()
        clock = sink.dependencies.world.clock
        try:
            await clock.sleep(5)
        finally:
            await clock.sleep(1)
        raise OSError("it broke")


@without_server
async def test_a_source_added_again_while_it_stops_reports_its_failure(stage: ServerlessStage) -> None:
    slow = Slow()
    built = stage.controller(lambda request: None, slow)
    running = asyncio.create_task(built.run(stage.dependencies))
    await stage.settle()
    leaving = asyncio.create_task(built.unwatch(slow))
    await stage.settle()
    built.watch(slow)
    await leaving
    assert slow.runs == 2
    await stage.settle(10)
    with pytest.raises(OSError, match="it broke"):
        await running


@without_server
async def test_a_source_added_to_a_stopped_controller_is_not_started(stage: ServerlessStage) -> None:
    slow = Slow()
    built = stage.controller(lambda request: None)
    async with stage.running(built):
        await stage.settle()
    built.watch(slow)
    await stage.settle()
    assert slow.runs == 0


def test_a_source_is_given_up_before_the_start_too() -> None:
    source = widgets_in("one")
    built = Builder("x").watch_for(Widget).watches_source(source).complete(lambda request: None)
    asyncio.run(built.unwatch(source))
    assert [str(each) for each in built.sources] == ["Widget of example.dev/v1"]


# Kinds without a class

GADGETS = Unstructured.of("example.dev/v1", "Gadget")


@staged
async def test_an_owner_kind_without_a_class_may_be_defined_later(stage: ControllerStage) -> None:
    seen: list[Request] = []

    async def reconcile(request: Request) -> None:
        seen.append(request)

    def owned(name: str) -> ConfigMap:
        made = config_map(name)
        made.metadata.owner_references = [reference("g", kind="Gadget", controller=True)]
        return made

    await stage.user.create(owned("before"))
    built = Builder("gadgets").watch_for(GADGETS).owns(ConfigMap).complete(reconcile)
    async with stage.running(built) as task:
        await stage.settle(20)
        assert not task.done()
        waiting = "kind not watched yet, retrying controller=gadgets source='ConfigMap of v1' error=no matches for kind"
        assert [waiting in text for text in stage.log.texts()].count(True) == 1
        await stage.user.create(definition("Gadget", "gadgets", "Cluster"))
        await stage.settle(40)
        assert seen == [Request("", "g")], "it is in no namespace"
        await stage.user.create(owned("after"))
        await stage.settle()
        assert seen == [Request("", "g")] * 2


@staged
async def test_an_owner_kind_that_stays_missing_is_an_error_with_the_controller(stage: ControllerStage) -> None:
    handler = ForOwner(GADGETS)
    built = Builder("late").watches(ConfigMap, handler=handler).with_options(sync_timeout=30)
    task = asyncio.create_task(built.complete(lambda request: None).run(stage.dependencies))
    with pytest.raises(SyncError, match="controller late: ConfigMap of v1 is not watched after 30 s: no matches for"):
        await task
    assert stage.world.clock.monotonic() == pytest.approx(30, abs=2)


@pytest.mark.parametrize("metadata_only", [False, True])
def test_where_namespaces_are_named_a_kind_that_has_none_is_watched_whole(metadata_only: bool) -> None:
    @staged
    async def play(stage: ControllerStage) -> None:
        seen: set[Request] = set()

        async def reconcile(request: Request) -> None:
            seen.add(request)

        informers = Informers(stage.client.live, defaults=InformerSettings(namespaces=("default", "kube-system")))
        dependencies = dataclasses.replace(stage.dependencies, informers=informers)
        namespaces = Unstructured.of("v1", "Namespace")
        built = Builder("all").watch_for(namespaces, metadata_only=metadata_only).complete(reconcile)
        task = asyncio.create_task(built.run(dependencies))
        await stage.settle(5)
        assert Request("", "kube-public") in seen
        assert [each.namespaces for each in informers.all()] == [("",)]
        task.cancel()
        await asyncio.wait([task])
        await informers.stop()

    play()


@staged
async def test_where_namespaces_are_named_a_kind_that_has_none_may_be_defined_later(stage: ControllerStage) -> None:
    seen: list[Request] = []

    async def reconcile(request: Request) -> None:
        seen.append(request)

    informers = Informers(stage.client.live, defaults=InformerSettings(namespaces=("default",)))
    dependencies = dataclasses.replace(stage.dependencies, informers=informers)
    task = asyncio.create_task(Builder("late").watch_for(GADGETS).complete(reconcile).run(dependencies))
    await stage.settle(5)
    await stage.user.create(definition("Gadget", "gadgets", "Cluster"))
    await stage.settle(30)
    await stage.user.create({"apiVersion": "example.dev/v1", "kind": "Gadget", "metadata": {"name": "a"}})
    await stage.settle(5)
    assert seen == [Request("", "a")]
    (text,) = stage.log.texts()
    assert text.startswith(
        "kind not watched yet, retrying controller=late source='Gadget of example.dev/v1' error=no matches for kind"
    )
    task.cancel()
    await asyncio.wait([task])
    await informers.stop()


@staged
async def test_a_controller_that_cannot_sync_reports_the_unreachable_server(
    stage: ControllerStage,
) -> None:
    class Unplugged:
        async def request(self, request: Request) -> None:
            raise ConnectionLost("no route to host")

    stage.transport.inner = Unplugged()
    built = Builder("alone").watch_for(Widget).complete(lambda request: None)
    said = "controller alone: Widget of example.dev/v1 is not synced after 120 s: no route to host"
    with pytest.raises(SyncError, match=said):
        await built.run(stage.dependencies)
