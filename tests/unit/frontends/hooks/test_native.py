"""Hooks as Python functions: bindings, contexts, operations, metrics and mistakes."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.frontends.hooks.stage import config_map

from ostinato.cache.informers import InformerSettings
from ostinato.client import Client
from ostinato.crd import Access
from ostinato.frontends.hooks import HookContext, Hooks, cron, hook, startup, watch
from ostinato.frontends.hooks.loading import Loader, LoadOptions
from ostinato.frontends.hooks.running.executable import RunFiles
from ostinato.kinds.core_v1 import ConfigMap, Secret
from ostinato.manager.connections import CacheOptions
from ostinato.testing import Cluster, ClusterManager, VirtualClock

WRITES = [Access(verbs=("get", "create", "update", "patch", "delete"), groups=("",), resources=("configmaps",))]


async def test_a_function_reads_snapshots_and_writes_with_the_derived_role(
    clock: VirtualClock, manager: ClusterManager, client: Client
) -> None:
    kept: list[Any] = []

    @hook(
        watch("maps", ConfigMap, labels="t=a", keep=lambda each: sorted(each.data)),
        watch("secrets", Secret, on_synchronization=False, events=[]),
        cron("@hourly", name="tick"),
        group="all",
        access=WRITES,
    )
    def report(ctx: HookContext) -> None:
        kept.append([(each.name, each.value) for each in ctx.snapshots["maps"]])
        ctx.create_or_update(config_map("report", found=str(len(ctx.snapshots["maps"]))))
        ctx.gauge("maps", len(ctx.snapshots["maps"]), group="maps")

    runnable = Hooks(report)
    await manager.start(runnable)
    await client.create(config_map("a", labels={"t": "a"}, y="1", x="2"))
    await clock.advance(1)
    assert kept == [[], [("a", ["x", "y"])]]
    assert (await client.get(ConfigMap, "report")).data == {"found": "1"}
    page = await runnable.metrics_handlers["/metrics/hooks"](_request("/metrics/hooks"))
    assert b'maps{hook="report"} 1' in page.body
    queues = await runnable.metrics_handlers["/debug/hooks/"](_request("/debug/hooks/queue/list.json"))
    assert queues.body == b'{"main":[]}\n'


async def test_a_manager_for_a_namespace_limits_bindings_of_all(
    clock: VirtualClock, cluster: Cluster, client: Client
) -> None:
    seen: list[str] = []

    @hook(watch("maps", ConfigMap, on_synchronization=False))
    def record(ctx: HookContext) -> None:
        seen.extend(each.event.name for each in ctx.events if each.event is not None)

    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    caches = CacheOptions(defaults=InformerSettings(namespaces=("team",)))
    await cluster.manager(rbac=False, caches=caches).start(Hooks(record))
    await client.create(config_map("elsewhere"))
    await client.create(config_map("here", "team"))
    await clock.advance(1)
    assert seen == ["here"]


async def test_a_function_alone_is_a_runnable(manager: ClusterManager, client: Client, clock: VirtualClock) -> None:
    @hook(startup(), watch("maps", ConfigMap, on_synchronization=False), access=WRITES)
    async def mark(ctx: HookContext) -> None:
        for context in ctx.events:
            assert context.event is not None
            if context.event.name == "a" and context.change == "Added":
                ctx.merge_patch(ConfigMap, "a", {"data": {"marked": "yes"}}, namespace="default")

    await manager.start(mark)
    await clock.advance(1)
    await client.create(config_map("a"))
    await clock.advance(1)
    assert (await client.get(ConfigMap, "a")).data == {"marked": "yes"}


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (hook, "needs a binding"),
        (lambda: hook("pods"), "'pods' is not a binding"),
        (lambda: watch("maps", ConfigMap, label="a=b"), "unknown option 'label'; options: keep"),
        (lambda: cron("61 * * * *"), "above maximum"),
        (lambda: hook(cron("@daily", include=["x"]))(lambda ctx: None), "no kubernetes binding has the name 'x'"),
        (Hooks, "needs a directory or a @hook function"),
        (lambda: Hooks(print), "neither a directory nor a hook"),
    ],
)
def test_a_mistake_is_named_at_the_definition(make: Any, problem: str) -> None:
    with pytest.raises((TypeError, ValueError), match=problem):
        make()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("import ostinato.frontends.hooks\nx = (", "bad.py: line 2: '(' was never closed"),
        ("from ostinato.frontends.hooks import hook\n\n1 / 0\n", "bad.py: line 3: ZeroDivisionError"),
        ("from ostinato.frontends.hooks import hook\n", "bad.py: imports the decorators, but declares no hook"),
    ],
)
async def test_a_python_file_that_cannot_be_loaded_is_named(
    text: str, problem: str, tmp_path: Path, client: Client
) -> None:
    (tmp_path / "bad.py").write_text(text)
    loader = Loader(client.world, None, logging.getLogger("hooks"), LoadOptions(RunFiles(tmp_path)))
    loaded = await loader.load(tmp_path)
    assert loaded.hooks == []
    assert problem in loaded.problems[0]


def _request(path: str) -> Any:
    return SimpleNamespace(path=path)
