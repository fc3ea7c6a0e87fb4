"""A controller from the first list to the last write, by each of its doors."""

from __future__ import annotations

from typing import Any

from tests.stage.controllers import ControllerStage, staged
from tests.stage.kinds import Widget, config_map, widget

from ostinato.controllers import Builder, Context, Request, Result, controller
from ostinato.kinds.core_v1 import ConfigMap


@controller(Widget, owns=[ConfigMap])
async def widgets(each: Widget, ctx: Context) -> None:
    made = await ctx.apply(config_map(each.metadata.name, text=each.spec.text), owner=each)
    await ctx.status(ready=len(made.data))


@staged
async def test_a_function_applies_its_child_and_writes_the_status(stage: ControllerStage) -> None:
    await stage.user.create(widget("a", text="hello"))
    async with stage.running(widgets):
        await stage.settle()
        found = await stage.user.get(ConfigMap, "a")
        assert found.data == {"text": "hello"}
        assert found.metadata.owner_references[0].name == "a"
        status = (await stage.user.get(Widget, "a")).status
        assert status is not None
        assert (status.ready, status.observed_generation) == (1, 1)


@staged
async def test_a_changed_child_is_corrected(stage: ControllerStage) -> None:
    await stage.user.create(widget("a", text="hello"))
    async with stage.running(widgets):
        await stage.settle()
        await stage.user.delete(ConfigMap, "a")
        await stage.settle()
        await stage.user.apply(config_map("a", text="changed"), force=True)
        await stage.settle()
        assert (await stage.user.get(ConfigMap, "a")).data == {"text": "hello"}


@staged
async def test_a_class_with_a_reconcile_method_is_the_same_thing(stage: ControllerStage) -> None:
    class WidgetReconciler:
        def __init__(self, client: Any) -> None:
            self.client = client
            self.missing: list[Request] = []

        async def reconcile(self, request: Request) -> Result:
            found = await self.client.get(Widget, request, missing=None)
            if found is None:
                self.missing.append(request)
                return Result()
            await self.client.apply(config_map(request.name, text=found.spec.text), force=True)
            return Result(requeue_after=30)

    reconciler = WidgetReconciler(stage.client)
    built = Builder("widgets").watch_for(Widget).owns(ConfigMap).complete(reconciler)
    async with stage.running(built):
        await stage.user.create(widget("b", text="x"))
        await stage.settle()
        assert (await stage.user.get(ConfigMap, "b")).data == {"text": "x"}
        await stage.user.delete(Widget, "b")
        await stage.settle()
        assert reconciler.missing == [Request("default", "b")]


@staged
async def test_a_function_is_not_called_for_a_deleted_object(stage: ControllerStage) -> None:
    seen: list[str] = []

    @controller(Widget)
    async def watching(each: Widget, ctx: Context) -> None:
        seen.append(each.metadata.name)

    await stage.user.create(widget("a"))
    async with stage.running(watching):
        await stage.settle()
        await stage.user.delete(Widget, "a")
        await stage.settle()
    assert seen == ["a"]
    assert stage.log.texts() == []


@staged
async def test_a_resync_of_unchanged_objects_sends_no_request(stage: ControllerStage) -> None:
    for number in range(20):
        await stage.user.create(widget(f"w{number}", text="x"))
    resyncing = Builder("widgets").watch_for(Widget, resync=60).owns(ConfigMap, resync=60).complete(widgets.function)
    async with stage.running(resyncing):
        await stage.settle()
        assert len(stage.transport.writes()) == 40
        before = resyncing.statistics.outcomes["success"]
        await stage.settle(600)
        assert resyncing.statistics.outcomes["success"] > before + 100
        assert len(stage.transport.writes()) == 40
