"""What controllers rely on when they read: caches answer as the server would, and nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest
from tests.unit.cache.lagging import Scene, played
from tests.unit.client.stage import config_map

from ostinato.api.gvk import NamespacedName
from ostinato.cache import CachedClient, SyncError
from ostinato.client import Unstructured
from ostinato.kinds.core_v1 import ConfigMap, Namespace


@played
async def test_a_namespace_for_what_has_none_is_refused_as_the_server_would(scene: Scene) -> None:
    client = await scene.watching(Namespace)
    for name, options in (("default", {"namespace": "x"}), (NamespacedName("x", "default"), {})):
        for reader in (client, client.live):
            with pytest.raises(ValueError, match="Namespace: the kind is cluster-scoped; omit namespace 'x'"):
                await reader.get(Namespace, name, missing=None, **options)  # type: ignore[call-overload]
    for reader in (client, client.live):
        with pytest.raises(ValueError, match="Namespace: the kind is cluster-scoped; omit namespace 'x'"):
            await reader.list(Namespace, namespace="x")


@played
async def test_a_read_of_a_cache_that_is_never_filled_ends_by_itself_or_when_it_is_cancelled(scene: Scene) -> None:
    clock = scene.world.clock
    scene.late.lag = 1000
    scene.informers.of(ConfigMap)
    scene.informers.start()
    client = CachedClient(scene.live, scene.informers, read_timeout=5)
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


@played
async def test_what_comes_from_a_cache_says_its_kind(scene: Scene) -> None:
    await scene.live.create(config_map("a"))
    client = await scene.watching(ConfigMap)
    maps = Unstructured.of("v1", "ConfigMap")
    for found in (await client.get(maps, "a"), *await client.list(maps), await client.live.get(maps, "a")):
        assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")


@played
async def test_an_informer_that_was_released_is_made_again_when_it_is_asked_for(scene: Scene) -> None:
    client = await scene.watching(ConfigMap)
    first = scene.informers.of(ConfigMap)
    registration = first.add_handler(lambda _: None)
    await scene.informers.release(first)
    assert first.is_running, "somebody listens"
    first.remove_handler(registration)
    await scene.informers.release(first)
    assert first.has_stopped
    await scene.live.create(config_map("a"))
    asked = len(scene.reads)
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert len(scene.reads) == asked + 1, "nothing watches it any more"
    again = scene.informers.of(ConfigMap)
    assert again is not first
    scene.informers.start()
    await again.synced(5)
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert len(scene.reads) == asked + 1
