"""The roles that `ostinato manifests` derives suffice for daemons, timers, records of changes and many kinds."""

from __future__ import annotations

from typing import Any

from tests.stage.kinds import Widget, WidgetSpec

from ostinato.api.meta import ObjectMeta
from ostinato.client.patching import MergePatch
from ostinato.client.views import Unstructured
from ostinato.controllers import Context, KindsOf, controller, daemon, timer
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.testing import Cluster
from ostinato.world import Simulation


@daemon(Widget, finalizer="example.dev/daemon", owns=[ConfigMap])
async def follow(widget: Widget, ctx: Context) -> None:
    while True:
        await ctx.apply(ConfigMap(metadata=ObjectMeta(name="page"), data={"a": "b"}), owner=widget)
        await ctx.sleep(10)


@timer(Widget, every=60)
async def tick(widget: Widget, ctx: Context) -> None:
    await ctx.status(ready=1 if widget.status is None else widget.status.ready + 1)


@controller(Widget, changes_annotation=True)
async def compare(widget: Widget, ctx: Context) -> None:
    ctx.changed("spec.size", int)


@controller(KindsOf(group="example.dev"))
async def inventory(thing: dict[str, Any], ctx: Context) -> None:
    label = MergePatch({"metadata": {"labels": {"listed": "yes"}}})
    await ctx.client.patch(Unstructured.of(thing["apiVersion"], thing["kind"]), ctx.request, label)
    await ctx.status(thing, note="listed")


def test_derived_roles_suffice() -> None:
    async def play(world: Simulation) -> None:
        async with Cluster(world=world) as cluster:
            manager = await cluster.manager().start(follow, tick, compare, inventory)
            await cluster.client.create(Widget(metadata=ObjectMeta(name="a"), spec=WidgetSpec(size=1)))
            await cluster.clock.advance(190)
            found = await cluster.client.get(Widget, "a")
            assert found.status is not None
            assert (found.status.ready, found.status.note) == (4, "listed")
            assert found.metadata.finalizers == ["example.dev/daemon"]
            assert "changes.ostinato.dev/compare" in found.metadata.annotations
            assert found.metadata.labels == {"listed": "yes"}
            assert (await cluster.client.get(ConfigMap, "page")).data == {"a": "b"}
            await cluster.client.delete(Widget, "a")
            await cluster.clock.advance(10)
            assert await cluster.client.get(Widget, "a", missing=None) is None
            assert manager.errors == []

    world = Simulation(seed=1)
    world.run(play(world))
