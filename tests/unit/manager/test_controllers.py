"""Controllers under a manager: from a change on the server to the writes that answer it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from typing import Any

from tests.stage.election import ElectionStage, staged

from ostinato.api.meta import ObjectMeta
from ostinato.cache.client import CachedClient
from ostinato.cache.informers import Informers, InformerSettings
from ostinato.client import Client
from ostinato.controllers import BlockingContext, Context, ControllerOptions, Request, Result, controller
from ostinato.kinds.core_v1 import ConfigMap, Namespace, Secret
from ostinato.manager import CacheOptions, Manager, Purpose
from ostinato.manager.logs import JsonFormatter, ReconcileFilter
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog


def manager_on(stage: ElectionStage, **options: Any) -> Manager:
    def connect(purpose: Purpose) -> InProcessTransport:
        return InProcessTransport(stage.server, deadline=purpose.deadline)

    return Manager(connect=connect, world=stage.world, **options)


async def settled(stage: ElectionStage, manager: Manager, seconds: float = 5.0) -> asyncio.Task[None]:
    serving = asyncio.create_task(manager.serve())
    await stage.clock.sleep(seconds)
    return serving


def config_map(name: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data=data)


@staged
async def test_the_managers_client_reads_before_the_start_without_leadership(stage: ElectionStage) -> None:
    await stage.client.create(config_map("a", key="value"))
    for election in (None, "widgets"):
        manager = manager_on(stage, leader_election=election)
        manager.informers.of(ConfigMap)
        assert (await manager.client.get(ConfigMap, "a", namespace="default")).data == {"key": "value"}
        assert "a" in [each.metadata.name for each in await manager.client.list(ConfigMap)]


@staged
async def test_a_function_reconciles_and_shows_metrics_and_logs(stage: ElectionStage) -> None:
    @controller(ConfigMap, owns=[Secret])
    async def copies(source: ConfigMap, ctx: Context) -> None:
        if source.metadata.namespace == "default" and source.data.get("copy"):
            logging.getLogger("user").warning("copying")
            copy = Secret(metadata=ObjectMeta(name=source.metadata.name, namespace="default"))
            await ctx.apply(copy, owner=source)

    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(ReconcileFilter())
    handler.setFormatter(JsonFormatter())
    logging.getLogger("user").addHandler(handler)
    await stage.client.create(config_map("a", copy="yes"))
    manager = manager_on(stage).add(copies)
    serving = await settled(stage, manager)
    copy = await stage.client.get(Secret, "a")
    assert copy.metadata.owner_references[0].kind == "ConfigMap"
    await stage.client.delete(copy)
    await stage.clock.sleep(5)
    assert (await stage.client.get(Secret, "a")).metadata.uid != copy.metadata.uid, "what is owned is made again"
    text = manager.metrics.text()
    assert 'controller_runtime_reconcile_total{controller="copies",result="success"}' in text
    assert "workqueue_adds_total" in text
    assert "informer_store_resource_version{" in text
    line = json.loads(stream.getvalue().splitlines()[0])
    assert (line["controller"], line["namespace"], line["name"]) == ("copies", "default", "a")
    assert line["reconcileID"]
    manager.stop()
    await serving
    assert "controller_runtime" not in manager.metrics.text(), "who has ended shows nothing"
    logging.getLogger("user").removeHandler(handler)


@staged
async def test_a_class_is_built_in_the_words_of_controller_runtime(stage: ElectionStage) -> None:
    class Reconciler:
        def __init__(self, client: CachedClient) -> None:
            self.client = client
            self.seen: list[str] = []

        async def reconcile(self, request: Request) -> Result:
            found = await self.client.get(ConfigMap, request, missing=None)
            self.seen.append(f"{request.name} {'there' if found is not None else 'gone'}")
            return Result()

    manager = manager_on(stage, leader_election="widgets", controllers=ControllerOptions(max_concurrent=2))
    reconciler = Reconciler(manager.client)
    manager.build("widgets").watch_for(ConfigMap).complete(reconciler)
    serving = await settled(stage, manager, 5)
    assert reconciler.seen == [], "it leads only after the time of a lease that was not there"
    await stage.clock.sleep(20)
    await stage.client.create(config_map("a"))
    await stage.clock.sleep(1)
    await stage.client.delete(ConfigMap, "a")
    await stage.clock.sleep(1)
    assert [seen for seen in reconciler.seen if seen.startswith("a ")] == ["a there", "a gone"]
    manager.stop()
    await serving
    assert (await stage.lease()).spec.holder_identity == ""


@staged
async def test_a_controller_watches_another_cluster_and_writes_to_its_own(stage: ElectionStage) -> None:
    elsewhere = Server(stage.world, MemoryLog())
    await elsewhere.start()
    remote = Client(InProcessTransport(elsewhere), world=stage.world, namespace="default")
    there = Informers(remote)
    reader = CachedClient(remote, there, unwatched="refuse")

    class Mirror:
        async def reconcile(self, request: Request, ctx: Context) -> None:
            source = await reader.get(Secret, request, missing=None)
            if source is not None:
                data = {"from": source.metadata.uid}
                await ctx.apply(ConfigMap(metadata=ObjectMeta(name=request.name, namespace="default"), data=data))

    def same_name(secret: Secret) -> Request:
        return Request("default", secret.metadata.name)

    first = await remote.create(Secret(metadata=ObjectMeta(name="first")))
    await stage.client.create(Secret(metadata=ObjectMeta(name="here")))
    manager = manager_on(stage).add(there)
    built = manager.build("mirror").watches(Secret, map_to=same_name, informers=there).complete(Mirror())
    serving = await settled(stage, manager)
    second = await remote.create(Secret(metadata=ObjectMeta(name="second")))
    await stage.clock.sleep(1)
    found = {each.metadata.name: each.data async for each in stage.client.list(ConfigMap, namespace="default")}
    for secret in (first, second):
        assert found[secret.metadata.name] == {"from": secret.metadata.uid}
    assert "here" not in found
    assert built.watches == (), "a role of this cluster is not about it"
    assert manager.informers.all() == []
    manager.stop()
    await serving
    assert not there.of(Secret).is_running
    await elsewhere.close()


@staged
async def test_the_same_function_runs_under_several_managers(stage: ElectionStage) -> None:
    names: list[str] = []

    @controller(ConfigMap)
    async def looks(source: ConfigMap, ctx: Context) -> None:
        names.append(source.metadata.name)

    await stage.client.create(config_map("a"))
    managers = [manager_on(stage).add(looks) for _ in range(2)]
    tasks = [await settled(stage, manager) for manager in managers]
    assert names.count("a") == 2
    for manager, task in zip(managers, tasks, strict=True):
        manager.stop()
        await task


@staged
async def test_kinds_that_are_in_no_namespace_are_followed_whatever_namespaces_are_cached(stage: ElectionStage) -> None:
    @controller(Namespace)
    async def namespaces(each: Namespace, ctx: Context) -> None:
        seen.add(each.metadata.name)
        seen.update([found.metadata.name async for found in ctx.client.list(ConfigMap, namespace="default")])

    seen: set[str] = set()
    await stage.client.create(config_map("a"))
    caches = CacheOptions(defaults=InformerSettings(namespaces=("default", "kube-system")), unwatched="refuse")
    manager = manager_on(stage, caches=caches).add(namespaces)
    manager.informers.of(ConfigMap)
    serving = await settled(stage, manager)
    assert {"default", "kube-system", "kube-public", "a"} <= seen
    assert caches.of(Namespace).namespaces == ("",)
    assert caches.of(ConfigMap).namespaces == ("default", "kube-system")
    manager.stop()
    await serving


@staged
async def test_blocked_threads_of_one_part_keep_neither_requests_nor_other_parts_waiting(stage: ElectionStage) -> None:
    workers = stage.world.executor.load().workers
    # As a client in a cluster has to read its token, now and then.
    stage.transport.before = lambda _: stage.world.executor.run(lambda: None)

    @controller(ConfigMap, name="blocked", max_concurrent=workers)
    def blocked(source: ConfigMap, ctx: BlockingContext) -> None:
        if source.data:
            ctx.apply(Secret(metadata=ObjectMeta(name=source.metadata.name)), owner=source)

    names = {f"a{number}" for number in range(workers)}
    for name in names:
        await stage.client.create(config_map(name, copy="yes"))
    manager = Manager(connect=lambda _: stage.transport, world=stage.world).add(blocked)
    serving = await settled(stage, manager)
    assert {secret.metadata.name async for secret in stage.client.list(Secret, namespace="default")} == names
    manager.stop()
    await serving
