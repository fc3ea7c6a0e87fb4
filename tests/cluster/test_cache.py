"""Our cache against any API server: over HTTP, in one process with it, or against a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from ostinato import CustomResource, ObjectMeta, Struct
from ostinato.cache import Added, CachedClient, Deleted, Informers, SyncError, Updated, by_label
from ostinato.client import Client
from ostinato.kinds.core_v1 import ConfigMap
from tests.cluster.conftest import Play


def test_an_informer_follows_the_server(run: Callable[[Play], None]) -> None:
    async def body(client: Client) -> None:
        await client.create(ConfigMap(metadata=ObjectMeta(name="before"), data={"k": "1"}))
        informers = Informers(client)
        informer = informers.of(ConfigMap)
        informer.add_index(by_label("color"))
        events: asyncio.Queue[object] = asyncio.Queue()
        registration = informer.add_handler(events.put_nowait)
        informers.start()
        await informers.synced(timeout=30)
        await registration.synced(timeout=30)
        cached = CachedClient(client, informers)
        assert (await cached.get(ConfigMap, "before")).data == {"k": "1"}
        labelled = ConfigMap(metadata=ObjectMeta(name="after", labels={"color": "red"}))
        created = await cached.create(labelled)
        mine = await cached.get(ConfigMap, "after")  # its own write, from the cache
        assert mine.metadata.resource_version == created.metadata.resource_version
        mine.data["k"] = "changed here alone"
        assert (await cached.get(ConfigMap, "after")).data == {}
        await cached.delete(ConfigMap, "after")
        assert await cached.get(ConfigMap, "after", missing=None) is None
        kinds = []
        while not (kinds and kinds[-1] is Deleted):
            event = await events.get()
            assert isinstance(event, Added | Updated | Deleted)
            if event.key.name == "after":
                kinds.append(type(event))
        assert kinds[0] is Added
        await informers.stop()

    run(body)


class Nowhere(CustomResource, group="nowhere.example.dev", version="v1"):
    spec: Struct


def test_a_kind_that_is_not_there_is_named_in_the_error(run: Callable[[Play], None]) -> None:
    async def body(client: Client) -> None:
        informers = Informers(client)
        informers.of(Nowhere)
        informers.start()
        with pytest.raises(SyncError, match="Nowhere"):
            await informers.synced(timeout=5)
        await informers.stop()

    run(body)
