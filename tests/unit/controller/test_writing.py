"""What controllers rely on when they write: what was given stays as it was, and the server is one, not a fake."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.unit.cache.lagging import Scene, played
from tests.unit.client.stage import config_map

from ostinato.api.errors import AlreadyExists, Conflict
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import ConfigMap


@played
async def test_what_could_not_be_written_is_left_as_it_was(scene: Scene) -> None:
    client = await scene.watching(ConfigMap)
    await client.create(config_map("a", key="value"))
    second = config_map("a", key="other")
    with pytest.raises(AlreadyExists):
        await client.create(second)
    assert second == config_map("a", key="other")
    mine = await client.get(ConfigMap, "a")
    await client.live.patch(ConfigMap, "a", MergePatch({"data": {"key": "theirs"}}))
    mine.data["key"] = "mine"
    before = copy.deepcopy(mine)
    with pytest.raises(Conflict):
        await client.update(mine)
    assert mine == before


@played
async def test_a_new_object_is_not_being_deleted_whatever_it_says(scene: Scene) -> None:
    metadata: dict[str, Any] = {"name": "a", "deletionTimestamp": "2001-01-01T00:00:00Z", "finalizers": ["a.dev/b"]}
    made = await scene.live.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert "deletionTimestamp" not in made["metadata"]
