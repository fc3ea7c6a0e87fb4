"""Controllers that do not run for what they wrote themselves."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, config_map, widget

from ostinato.api.errors import Expired
from ostinato.client import MergePatch
from ostinato.controllers import Builder, Context, controller
from ostinato.kinds.core_v1 import ConfigMap


@staged
async def test_own_writes_trigger_no_run_if_runs_for_own_writes_is_off(stage: ControllerStage) -> None:
    runs: list[str] = []

    @controller(Widget, owns=[ConfigMap], runs_for_own_writes=False)
    async def once(each: Widget, ctx: Context) -> None:
        runs.append(each.metadata.name)
        await ctx.apply(config_map(each.metadata.name), owner=each)
        await ctx.status(note=f"run {len(runs)}")

    async with stage.running(once):
        await stage.user.create(widget("a"))
        await stage.settle(60)
        assert runs == ["a"]


class _Slow:
    """A transport on which the events of a write come before its answer, as they often do."""

    def __init__(self, inner: Any, stage: ControllerStage) -> None:
        self._inner = inner
        self._stage = stage
        self.host = inner.host

    async def request(self, request: Any) -> Any:
        answer = await self._inner.request(request)
        if request.method != "GET":
            await self._stage.settle(1)
        return answer


@staged
async def test_an_echo_before_the_response_triggers_no_run(stage: ControllerStage) -> None:
    stage.transport.inner = _Slow(stage.transport.inner, stage)
    runs: list[str] = []

    @controller(Widget, owns=[ConfigMap], runs_for_own_writes=False)
    async def once(each: Widget, ctx: Context) -> None:
        runs.append(each.metadata.name)
        await ctx.apply(config_map(each.metadata.name), owner=each)
        await ctx.status(note=f"run {len(runs)}")

    async with stage.running(once):
        await stage.user.create(widget("a"))
        await stage.settle(60)
        assert runs == ["a"]
        await stage.user.patch(ConfigMap, "a", MergePatch({"data": {"more": "1"}}))
        await stage.settle(60)
        assert runs == ["a", "a"]


@staged
async def test_changes_of_others_to_the_same_objects_trigger_a_run(stage: ControllerStage) -> None:
    runs: list[str] = []

    @controller(Widget, owns=[ConfigMap], runs_for_own_writes=False)
    async def once(each: Widget, ctx: Context) -> None:
        runs.append(each.metadata.name)
        await ctx.apply(config_map(each.metadata.name), owner=each)

    async with stage.running(once):
        await stage.user.create(widget("a"))
        await stage.settle(60)
        await stage.user.patch(ConfigMap, "a", MergePatch({"data": {"more": "1"}}))
        await stage.settle(60)
        assert len(runs) == 2
        await stage.user.delete(ConfigMap, "a")
        await stage.settle(60)
        assert len(runs) == 3, "it was deleted, which is no echo"
        assert await stage.user.get(ConfigMap, "a", missing=None) is not None


@staged
async def test_a_change_among_echoes_is_not_lost(stage: ControllerStage) -> None:
    seen: list[int] = []

    @controller(Widget, runs_for_own_writes=False)
    async def once(each: Widget, ctx: Context) -> None:
        seen.append(each.spec.size)
        if len(seen) == 1:
            await stage.user.patch(Widget, "a", MergePatch({"spec": {"size": 7}}))
        await ctx.status(note=f"run {len(seen)}")

    async with stage.running(once):
        await stage.user.create(widget("a"))
        await stage.settle(60)
        assert seen[-1] == 7


class _Deaf:
    """A transport whose watches of Widgets, when it is deaf, wait until it is told to hear, and then have to list."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.host = inner.host
        self.deaf = False
        self.hears = asyncio.Event()

    async def request(self, request: Any) -> Any:
        if self.deaf and "/widgets" in request.target and "watch=" in request.target:
            await self.hears.wait()
            self.deaf = False
            raise Expired.of("too old resource version")
        return await self._inner.request(request)


@staged
async def test_a_change_that_a_list_hides_behind_an_echo_is_not_lost(stage: ControllerStage) -> None:
    transport = stage.transport.inner = _Deaf(stage.transport.inner)
    seen: list[int] = []

    @controller(Widget, runs_for_own_writes=False)
    async def once(each: Widget, ctx: Context) -> None:
        seen.append(each.spec.size)
        if len(seen) == 1:
            transport.deaf = True
            for collection in stage.server.index._collections.values():
                collection.hub.end()
            await stage.settle(1)
            await stage.user.patch(Widget, "a", MergePatch({"spec": {"size": 7}}))
        await ctx.status(note=f"run {len(seen)}")
        transport.hears.set()

    await stage.user.create(widget("a"))
    async with stage.running(once):
        await stage.settle(60)
        assert seen == [1, 7]


@staged
async def test_writes_of_keys_that_do_not_run_again_are_not_kept(stage: ControllerStage) -> None:
    @controller(Widget, owns=[ConfigMap], runs_for_own_writes=False)
    async def once(each: Widget, ctx: Context) -> None:
        wanted = config_map(each.metadata.name)
        wanted.metadata.namespace = each.metadata.namespace
        await ctx.client.create(wanted)
        await ctx.status(note="made")

    async with stage.running(once):
        await stage.user.create(widget("a"))
        await stage.settle(60)
        gc.collect()
        assert (await stage.user.get(Widget, "a")).status.note == "made"
        assert not [each for each in gc.get_objects() if isinstance(each, ConfigMap)]


@staged
async def test_a_resync_is_not_an_echo(stage: ControllerStage) -> None:
    runs: list[str] = []

    async def once(each: Widget, ctx: Context) -> None:
        runs.append(each.metadata.name)
        await ctx.status(note="written")

    widgets = Builder("widgets").watch_for(Widget, resync=60).with_options(runs_for_own_writes=False).complete(once)
    async with stage.running(widgets):
        await stage.user.create(widget("a"))
        await stage.settle(30)
        assert runs == ["a"]
        await stage.settle(60)
        assert runs == ["a", "a"]


@staged
async def test_by_default_a_controller_may_go_step_by_step(stage: ControllerStage) -> None:
    runs: list[int] = []

    @controller(Widget)
    async def steps(each: Widget, ctx: Context) -> None:
        runs.append(1)
        if len(runs) < 4:
            await ctx.status(note=f"step {len(runs)}")

    async with stage.running(steps):
        await stage.user.create(widget("a"))
        await stage.settle(60)
        assert len(runs) == 4
