"""Alarms of controllers and objects that do go wrong, in virtual time."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.unit.page.observed import Observed, observed

from ostinato.client import MergePatch
from ostinato.controllers import Context, Request
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager


def config_map(name: str, **metadata: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"some": "text"}}


class Cleaner:
    """Adds a finalizer, and never finishes its cleanup."""

    async def reconcile(self, request: Request, ctx: Context) -> None:
        found = await ctx.client.get(ConfigMap, request, missing=None)
        if found is not None and found.metadata.deletion_timestamp is None and not found.metadata.finalizers:
            patch = {"metadata": {"finalizers": ["example.dev/clean"]}}
            await ctx.client.patch(ConfigMap, request, MergePatch(patch), field_manager="cleaner")


class Flipping:
    """Writes another value into its object each time."""

    async def reconcile(self, request: Request, ctx: Context) -> None:
        found = await ctx.client.get(ConfigMap, request, missing=None)
        if found is not None and request.name == "loop":
            found.data["value"] = "b" if found.data.get("value") == "a" else "a"
            await ctx.client.update(found)


class Slow:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        await asyncio.sleep(1.0)


def build(name: str, reconciler: Any) -> Any:
    def add(manager: Manager) -> None:
        manager.build(name).watch_for(ConfigMap).complete(reconciler)

    return add


def test_a_stuck_deletion_names_the_finalizer_and_the_controller_that_removes_it() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("held"))
        await page.passes(2)
        await page.client.delete(ConfigMap, "held")
        await page.passes(10)
        assert not page.alarms("stuck-deletion"), "it may take a while"
        await page.passes(10)
        (alarm,) = page.alarms("stuck-deletion")
        assert alarm.ref is not None
        assert alarm.ref.name == "held"
        assert "held by finalizer example.dev/clean" in alarm.message
        assert alarm.detail == (
            "example.dev/clean: controller cleaner, which runs, removes it when its cleanup succeeds"
        )
        await page.client.patch(ConfigMap, "held", MergePatch({"metadata": {"finalizers": None}}))
        await page.passes(15)
        assert not page.alarms("stuck-deletion")

    observed(test, build("cleaner", Cleaner()))


def test_a_finalizer_of_a_manager_that_does_not_report_is_named() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("held", finalizers=["example.dev/hold"]))
        await page.client.delete(ConfigMap, "held")
        await page.passes(20)
        (alarm,) = page.alarms("stuck-deletion")
        assert alarm.detail == (
            "example.dev/hold: a-user added it, and no controller of that name reports to this page"
        )

    observed(test)


def test_a_hot_loop_names_the_field() -> None:
    async def test(page: Observed) -> None:
        await page.client.create(config_map("loop"))
        await page.passes(10)
        (alarm,) = page.alarms("hot-loop")
        assert (alarm.controller, alarm.ref and alarm.ref.name) == ("flipping", "loop")
        assert "flipping writes ConfigMap default/loop again and again: data.value: " in alarm.message
        await page.client.delete(ConfigMap, "loop")
        await page.passes(200)
        assert not page.alarms("hot-loop")

    observed(test, build("flipping", Flipping()))


def test_a_backlog_has_its_reason_and_ends_with_it() -> None:
    async def test(page: Observed) -> None:
        for number in range(20):
            await page.client.create(config_map(f"c{number}"))
        await page.passes(8)
        (alarm,) = page.alarms("backlog")
        assert alarm.controller == "slow"
        assert alarm.message.endswith("its one worker is busy, and a reconcile takes 1.0 s")
        await page.passes(30)
        assert not page.alarms("backlog")

    observed(test, build("slow", Slow()))
