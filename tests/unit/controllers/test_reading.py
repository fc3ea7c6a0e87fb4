"""What controllers rely on when they read: caches answer as the server would, and nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest
from tests.stage.kinds import config_map
from tests.unit.cache.lagging import LaggingStage, staged

from ostinato.api.gvk import NamespacedName
from ostinato.cache import CachedClient, SyncError
from ostinato.client import Unstructured
from ostinato.kinds.core_v1 import ConfigMap, Namespace


@staged
async def test_a_namespace_for_a_cluster_scoped_kind_is_rejected(stage: LaggingStage) -> None:
    client = await stage.watching(Namespace)
    for name, options in (("default", {"namespace": "x"}), (NamespacedName("x", "default"), {})):
        for reader in (client, client.live):
            with pytest.raises(ValueError, match="Namespace: the kind is cluster-scoped; omit namespace 'x'"):
                await reader.get(Namespace, name, missing=None, **options)  # type: ignore[call-overload]
    for reader in (client, client.live):
        with pytest.raises(ValueError, match="Namespace: the kind is cluster-scoped; omit namespace 'x'"):
            await reader.list(Namespace, namespace="x")


@staged
async def test_a_read_of_a_cache_that_never_syncs_times_out_or_is_cancelled(
    stage: LaggingStage,
) -> None:
    clock = stage.world.clock
    stage.late.lag = 1000
    stage.informers.of(ConfigMap)
    stage.informers.start()
    client = CachedClient(stage.live, stage.informers, read_timeout=5)
    with pytest.raises(SyncError, match="configmaps"):
        await client.get(ConfigMap, "a")
    assert clock.monotonic() == pytest.approx(5)
    reading = asyncio.create_task(client.list(ConfigMap)._all())
    await clock.sleep(1)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    with pytest.raises(TimeoutError):
        async with clock.timeout(1):
            await client.get(ConfigMap, "a")
    assert clock.monotonic() == pytest.approx(7)


@staged
async def test_cached_objects_have_api_version_and_kind(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    client = await stage.watching(ConfigMap)
    maps = Unstructured.of("v1", "ConfigMap")
    for found in (await client.get(maps, "a"), *await client.list(maps), await client.live.get(maps, "a")):
        assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")


@staged
async def test_a_released_informer_is_recreated_on_demand(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    first = stage.informers.of(ConfigMap)
    registration = first.add_handler(lambda _: None)
    await stage.informers.release(first)
    assert first.is_running, "somebody listens"
    first.remove_handler(registration)
    await stage.informers.release(first)
    assert first.has_stopped
    await stage.live.create(config_map("a"))
    asked = len(stage.reads)
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert len(stage.reads) == asked + 1, "nothing watches it any more"
    again = stage.informers.of(ConfigMap)
    assert again is not first
    stage.informers.start()
    await again.synced(5)
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert len(stage.reads) == asked + 1
