"""Sources that come and go while a controller runs: other namespaces, other kinds."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.controller.stage import Light, Stage, Widget, lightly, staged, widget

from ostinato.api.meta import ObjectMeta
from ostinato.cache import Settings
from ostinato.controller import (
    Builder,
    Channel,
    ChannelSource,
    Context,
    Controller,
    ForObject,
    KindOptions,
    KindSource,
    Request,
)
from ostinato.kinds.core_v1 import Namespace


def widgets_in(namespace: str) -> KindSource:
    return KindSource(Widget, ForObject(), KindOptions(settings=Settings(namespaces=(namespace,))))


@staged
async def test_namespaces_are_added_and_given_up_while_a_controller_runs(stage: Stage) -> None:
    seen: list[str] = []

    async def reconcile(request: Request, ctx: Context) -> None:
        found = await ctx.client.get(Widget, request)
        seen.append(f"{request}: {found.spec.size}")

    async def put(namespace: str, size: int) -> None:
        made = widget("a", size=size)
        made.metadata.namespace = namespace
        await stage.people.apply(made)
        await stage.settle()

    for name in ("one", "two"):
        await stage.people.create(Namespace(metadata=ObjectMeta(name=name)))
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
        informer = stage.informers.of(Widget, Settings(namespaces=("one",)))
        assert informer.is_running
        assert not informer.has_handlers
        await stage.informers.release(informer)
        assert informer.has_stopped
        await put("two", 3)
        assert seen == ["two/a: 2", "two/a: 3"]


@lightly
async def test_what_a_source_told_before_it_was_given_up_is_reconciled(light: Light) -> None:
    seen: list[str] = []
    gate = asyncio.Event()

    async def reconcile(request: str) -> None:
        seen.append(request)
        await gate.wait()

    channel = Channel()
    source = ChannelSource(channel)
    built = light.controller(reconcile, source)
    async with light.running(built):
        channel.put("a")
        channel.put("b")
        await light.settle()
        await built.unwatch(source)
        channel.put("c")
        gate.set()
        await light.settle()
        assert seen == ["a", "b"]
        with pytest.raises(ValueError, match="controller test does not watch a channel"):
            await built.unwatch(source)


@lightly
async def test_a_source_that_is_late_can_be_given_up_and_the_others_begin(light: Light) -> None:
    class Late:
        def __str__(self) -> str:
            return "what is late"

        async def run(self, sink: object) -> None:
            await asyncio.Event().wait()

    seen: list[str] = []

    async def reconcile(request: str) -> None:
        seen.append(request)

    late = Late()
    built = light.controller(reconcile, late)
    light.channel.put("a")
    async with light.running(built):
        await light.settle()
        assert seen == []
        await built.unwatch(late)
        await light.settle()
        assert seen == ["a"]


def test_a_source_is_given_up_before_the_start_too() -> None:
    source = widgets_in("one")
    built = Builder("x").watch_for(Widget).watches_source(source).complete(lambda request: None)
    asyncio.run(built.unwatch(source))
    assert [str(each) for each in built.sources] == ["Widget of example.dev/v1"]
