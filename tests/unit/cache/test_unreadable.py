"""Objects that cannot be decoded as their class do not affect the others of a cache."""

from __future__ import annotations

import pytest
from tests.stage.kinds import WIDGETS, Widget
from tests.unit.cache.lagging import LaggingStage, staged

from ostinato.api.codec import ObjectError
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.meta import ObjectMeta
from ostinato.cache import CachedClient
from ostinato.client import MetadataOf, Unstructured

RAW = Unstructured.of("example.dev/v1", "Widget")
BAD = {
    "apiVersion": "example.dev/v1",
    "kind": "Widget",
    "metadata": {"name": "b", "namespace": "default"},
    "spec": {"size": "large"},
}


async def _cached(stage: LaggingStage) -> CachedClient:
    await stage.live.create(WIDGETS)
    for name in ("a", "c"):
        await stage.live.create(Widget(metadata=ObjectMeta(name=name)))
    await stage.live.create(dict(BAD))
    return await stage.watching(Widget)


@staged
async def test_a_cached_list_skips_an_unreadable_object(stage: LaggingStage) -> None:
    client = await _cached(stage)
    for _ in range(3):
        assert [each.metadata.name for each in await client.list(Widget)] == ["a", "c"]
        assert [each.metadata.name async for each in client.list(Widget)] == ["a", "c"]
    assert client.live.unreadable.counts == {GroupVersionKind("example.dev", "v1", "Widget"): 1}
    assert len(await client.list(RAW)) == len(await client.list(MetadataOf(Widget))) == 3
    with pytest.raises(ObjectError, match=r"Widget default/b: spec\.size"):
        await client.list(Widget, strict=True)
    with pytest.raises(ObjectError, match=r"Widget default/b: spec\.size"):
        await client.get(Widget, "b")


@staged
async def test_a_lister_skips_an_unreadable_object(stage: LaggingStage) -> None:
    client = await _cached(stage)
    lister = client.informers.of(Widget).lister(Widget)
    assert [each.metadata.name for each in lister.list()] == ["a", "c"]
    with pytest.raises(ObjectError, match=r"Widget default/b: spec\.size"):
        lister.list(strict=True)


@staged
async def test_a_cache_follows_changes_after_an_unreadable_object(stage: LaggingStage) -> None:
    client = await _cached(stage)
    await client.create(Widget(metadata=ObjectMeta(name="d")))
    assert [each.metadata.name for each in await client.list(Widget)] == ["a", "c", "d"]


@staged
async def test_a_list_of_whole_objects_from_a_cache_of_metadata_raises(stage: LaggingStage) -> None:
    await stage.live.create(WIDGETS)
    await stage.live.create(Widget(metadata=ObjectMeta(name="a")))
    client = await stage.watching(MetadataOf(Widget))
    with pytest.raises(ObjectError, match="metadata only"):
        client.informers.of(MetadataOf(Widget)).lister(Widget).list()
