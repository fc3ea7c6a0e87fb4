"""The cached client: what it reads from where, and that it reads what it wrote."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from tests.stage.kinds import WIDGETS, Widget, config_map
from tests.unit.cache.lagging import InformerSettings, LaggingStage, staged

from ostinato.api.errors import Conflict, NotFound
from ostinato.api.gvk import GroupResource, NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.cache import (
    CachedClient,
    FeedOptions,
    NoSuchIndex,
    NotWatched,
    StaleCache,
    by_field,
    by_label,
    own_writes,
)
from ostinato.cache.own_writes.expectations import Written
from ostinato.cache.own_writes.recorder import OwnWrite
from ostinato.client import Client, MergePatch, MetadataOf, Unstructured
from ostinato.client.transport.protocol import ConnectionLost, Request
from ostinato.kinds.core_v1 import ConfigMap, Namespace, Secret
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.verbs.write import MODIFIED

MAPS = Unstructured.of("v1", "ConfigMap")


class Broken:
    """A transport whose connection breaks before any answer."""

    async def request(self, request: Request) -> Any:
        raise ConnectionLost(f"{request.method} {request.path}: the connection broke")


def labelled(name: str, **labels: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, labels=labels))


# Reading


@staged
async def test_a_watched_kind_is_read_from_the_cache_in_every_form(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a", key="value"))
    client = await stage.watching(ConfigMap)
    assert (await client.get(ConfigMap, "a")).data == {"key": "value"}
    assert (await client.get(MAPS, "a"))["data"] == {"key": "value"}
    assert (await client.get(MetadataOf(ConfigMap), "a")).metadata.name == "a"
    assert (await client.get(ConfigMap, NamespacedName("default", "a"))).metadata.name == "a"
    assert (await client.get(ConfigMap, "a", namespace="default")).metadata.name == "a"
    assert stage.reads == []


@staged
async def test_a_cached_object_is_as_the_server_gives_it_but_for_managed_fields(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a", key="value"))
    client = await stage.watching(ConfigMap)
    live = await client.live.get(ConfigMap, "a")
    assert live.metadata.managed_fields
    live.metadata.managed_fields = []
    assert await client.get(ConfigMap, "a") == live


@staged
async def test_changing_a_read_object_does_not_change_the_cache(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a", key="value"))
    client = await stage.watching(ConfigMap)
    mine = await client.get(ConfigMap, "a")
    mine.data["key"] = "changed"
    mine.metadata.labels["new"] = "label"
    for listed in await client.list(ConfigMap):
        listed.data.clear()
    assert (await client.get(ConfigMap, "a")).data == {"key": "value"}
    assert (await client.get(ConfigMap, "a")).metadata.labels == {}


@staged
async def test_an_object_that_is_not_cached_is_not_found(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    with pytest.raises(NotFound, match='configmaps "x" not found'):
        await client.get(ConfigMap, "x")
    assert await client.get(ConfigMap, "x", missing=None) is None
    assert stage.reads == []


@staged
async def test_an_invalid_name_is_an_error_and_not_a_missing_object(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    with pytest.raises(ValueError, match="ConfigMap: name 'default/a': may not contain '/'"):
        await client.get(ConfigMap, "default/a", missing=None)
    wrong: Any
    for wrong, summary in (
        (None, "None"),
        (("default", "a"), "a tuple"),
        (config_map("a"), "the object ConfigMap default/a"),
    ):
        with pytest.raises(TypeError, match=f"ConfigMap: {summary} is not a key; pass a name"):
            await client.get(ConfigMap, wrong, missing=None)


@staged
async def test_an_option_that_does_not_exist_is_refused_though_the_cache_needs_none(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    with pytest.raises(TypeError, match="unknown option 'ns'; use one of namespace"):
        await client.get(ConfigMap, "a", ns="default")  # type: ignore[call-overload]


@staged
async def test_unsupported_calls_of_a_cached_client_name_the_live_client(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    with pytest.raises(
        AttributeError, match=r"a cached client has no attribute 'wait_for'; use client\.live\.wait_for"
    ):
        client.wait_for  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"a cached client has no attribute 'nonsense'$"):
        client.nonsense  # type: ignore[attr-defined]  # noqa: B018


@staged
async def test_objects_without_a_namespace_are_found_by_their_name(stage: LaggingStage) -> None:
    client = await stage.watching(Namespace)
    assert (await client.get(Namespace, "default")).metadata.name == "default"
    assert (await client.get(Unstructured.of("v1", "Namespace"), "default"))["metadata"]["name"] == "default"
    assert stage.reads == []


@staged
async def test_a_kind_that_nothing_watches_is_read_from_the_server_and_no_watch_begins(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a", key="value"))
    client = await stage.watching(Namespace)
    assert (await client.get(ConfigMap, "a")).data == {"key": "value"}
    assert await client.get(ConfigMap, "x", missing=None) is None
    assert "a" in [each.metadata.name for each in await client.list(ConfigMap)]
    assert "a" in [each.metadata.name async for each in client.list(ConfigMap)]
    assert len(stage.reads) == 4
    assert [str(each) for each in stage.informers.all()] == ["namespaces"]


@staged
async def test_an_unwatched_kind_is_rejected_with_unwatched_refuse(stage: LaggingStage) -> None:
    client = await stage.watching(Namespace, unwatched="refuse")
    with pytest.raises(NotWatched, match="ConfigMap of v1: not watched"):
        await client.get(ConfigMap, "a")
    with pytest.raises(NotWatched, match="ConfigMap of v1: not watched"):
        await client.list(ConfigMap)
    assert (await client.live.list(ConfigMap)).resource_version


@staged
async def test_a_client_that_rejects_unwatched_kinds_waits_for_a_cache_that_is_syncing(
    stage: LaggingStage,
) -> None:
    await stage.live.create(config_map("a"))
    stage.late.lag = 3
    stage.informers.of(ConfigMap, InformerSettings(namespaces=("default",)))
    stage.informers.start()
    client = CachedClient(stage.live, stage.informers, unwatched="refuse")
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert stage.world.clock.monotonic() >= 3
    assert len(await client.list(ConfigMap, namespace="default")) == 1
    for read in (client.get(ConfigMap, "b", namespace="other"), client.list(ConfigMap, namespace="other")._all()):
        with pytest.raises(NotWatched, match="ConfigMap of v1: not watched"):
            await read


@staged
async def test_an_informer_that_is_not_started_is_not_read(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    client = await stage.watching(Namespace)
    stage.informers.of(ConfigMap)
    await client.get(ConfigMap, "a")
    assert len(stage.reads) == 1


@staged
async def test_a_cache_that_is_being_filled_is_waited_for(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    stage.late.lag = 3
    stage.informers.of(ConfigMap)
    stage.informers.start()
    client = CachedClient(stage.live, stage.informers)
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert stage.world.clock.monotonic() >= 3


@staged
async def test_subresources_and_exact_resource_versions_are_read_from_the_server(stage: LaggingStage) -> None:
    await stage.live.create(WIDGETS)
    await stage.live.create(Widget(metadata=ObjectMeta(name="w")))
    client = await stage.watching(Widget)
    await client.get(Widget, "w", subresource="status")
    await client.get(Widget, "w", resource_version="0")
    assert len(stage.reads) == 2


@staged
async def test_lists_come_from_the_cache_by_namespace_labels_fields_and_indexes(stage: LaggingStage) -> None:
    await stage.live.create(Namespace(metadata=ObjectMeta(name="other")))
    await stage.live.create(labelled("a", app="web"))
    await stage.live.create(labelled("b", app="web", tier="front"))
    await stage.live.create(labelled("c", app="db"))
    await stage.other.create(ConfigMap(metadata=ObjectMeta(name="d", namespace="other", labels={"app": "web"})))
    feed = FeedOptions(indexes=(by_label("app"), by_field("metadata.labels.tier")))
    client = await stage.watching((ConfigMap, InformerSettings(feed=feed)))

    async def names(**options: Any) -> list[str]:
        return sorted(each.metadata.name for each in await client.list(ConfigMap, **options))

    assert await names() == ["a", "b", "c", "d"]
    assert await names(namespace="default") == ["a", "b", "c"]
    assert await names(labels="app=web") == ["a", "b", "d"]
    assert await names(labels={"app": "web"}, namespace="other") == ["d"]
    assert await names(labels="app=web,tier!=front") == ["a", "d"]
    assert await names(fields={"metadata.labels.tier": "front"}) == ["b"]
    assert await names(fields="metadata.name=a") == ["a"]
    assert await names(fields="metadata.name=a,metadata.namespace=other") == []
    assert await names(fields="metadata.namespace=other") == ["d"]
    assert await names(fields="metadata.namespace=") == []
    assert await names(index=("label:app", "web")) == ["a", "b", "d"]
    assert await names(index=("label:app", "web"), namespace="other") == ["d"]
    assert await names(index=("label:app", "web"), namespace="default", labels="tier") == ["b"]
    assert await names(index=("label:app", "web"), fields={"metadata.labels.tier": "front"}) == ["b"]
    assert await names(index=("label:app", "db"), fields={"metadata.labels.tier": "front"}) == []
    assert await names(index=("label:app", "web"), fields="metadata.name=a") == ["a"]
    assert [each.metadata.name async for each in client.list(ConfigMap, labels="app=db")] == ["c"]
    assert (await client.list(ConfigMap)).resource_version == stage.informers.of(ConfigMap).resource_version
    assert stage.reads == []
    with pytest.raises(ValueError, match=r"data\.x: not indexed in the cache; add the index by_field\('data\.x'\)"):
        await names(fields={"data.x": "y"})
    with pytest.raises(ValueError, match="a cache supports equality only"):
        await names(fields="metadata.name!=a")
    with pytest.raises(NoSuchIndex):
        await names(index=("missing", "x"))
    with pytest.raises(NotWatched, match="no cache with an index 'x'"):
        await client.list(Namespace, index=("x", "y"))


# Caches of a part


@staged
async def test_a_cache_of_some_namespaces_answers_for_those(stage: LaggingStage) -> None:
    await stage.live.create(Namespace(metadata=ObjectMeta(name="other")))
    await stage.live.create(config_map("a"))
    await stage.live.create(ConfigMap(metadata=ObjectMeta(name="b", namespace="other")))
    client = await stage.watching((ConfigMap, InformerSettings(namespaces=("default", "kube-system"))))
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert len(await client.list(ConfigMap, namespace="default")) == 1
    assert stage.reads == []
    assert (await client.get(ConfigMap, "b", namespace="other")).metadata.name == "b"
    assert len(await client.list(ConfigMap, namespace="other")) == 1
    assert len(await client.list(ConfigMap)) >= 2
    assert len(stage.reads) == 3


@staged
async def test_lists_wait_for_a_cache_that_is_syncing_and_accept_request_keys(
    stage: LaggingStage,
) -> None:
    class Request:
        namespace = "default"
        name = "a"

    await stage.live.create(config_map("a"))
    stage.late.lag = 3
    stage.informers.of(ConfigMap)
    stage.informers.start()
    client = CachedClient(stage.live, stage.informers)
    assert [each.metadata.name for each in await client.list(ConfigMap, namespace="default")] == ["a"]
    assert (await client.get(ConfigMap, Request())).metadata.name == "a"


@staged
async def test_a_cache_with_a_selector_serves_its_objects_and_the_server_the_rest(stage: LaggingStage) -> None:
    await stage.live.create(labelled("a", app="web"))
    await stage.live.create(labelled("b", app="db"))
    client = await stage.watching((ConfigMap, InformerSettings(labels="app=web")))
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert len(await client.list(ConfigMap, labels="app=web")) == 1
    assert len(await client.list(ConfigMap, labels="tier!=front,app=web")) == 1
    assert stage.reads == []
    assert (await client.get(ConfigMap, "b")).metadata.name == "b"
    assert await client.get(ConfigMap, "x", missing=None) is None
    assert len(await client.list(ConfigMap, labels="app=db")) == 1
    assert len(stage.reads) == 3


@staged
async def test_a_cache_of_some_fields_answers_no_list(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    client = await stage.watching((ConfigMap, InformerSettings(fields={"metadata.name": "a"})))
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"
    assert stage.reads == []
    await client.list(ConfigMap)
    assert len(stage.reads) == 1


@staged
async def test_of_several_caches_the_unrestricted_one_is_read_first(stage: LaggingStage) -> None:
    await stage.live.create(labelled("b", app="db"))
    client = await stage.watching((ConfigMap, InformerSettings(labels="app=web")), ConfigMap)
    assert (await client.get(ConfigMap, "b")).metadata.name == "b"
    assert await client.get(ConfigMap, "x", missing=None) is None
    assert stage.reads == []


@staged
async def test_a_cache_of_metadata_answers_for_metadata(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a", key="value"))
    client = await stage.watching(MetadataOf(ConfigMap))
    assert (await client.get(MetadataOf(ConfigMap), "a")).metadata.name == "a"
    assert stage.reads == []
    assert (await client.get(ConfigMap, "a")).data == {"key": "value"}
    assert len(stage.reads) == 1
    entry = stage.informers.of(MetadataOf(ConfigMap)).store.get(NamespacedName("default", "a"))
    assert entry is not None
    assert b"value" not in entry.data


@staged
async def test_metadata_that_was_read_can_be_used_to_delete(stage: LaggingStage) -> None:
    await stage.live.create(WIDGETS)
    await stage.live.create(Widget(metadata=ObjectMeta(name="w")))
    kind = MetadataOf(Unstructured.of("example.dev/v1", "Widget"))
    client = await stage.watching(kind)
    await client.delete(await client.get(kind, "w"))
    assert await client.get(kind, "w", missing=None) is None


# Own writes


@staged
async def test_a_read_after_a_write_waits_until_the_cache_has_seen_it(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    created = await client.create(config_map("a", key="1"))
    assert (await client.get(ConfigMap, "a")).metadata.resource_version == created.metadata.resource_version
    assert stage.world.clock.monotonic() == pytest.approx(2)
    created.data["key"] = "2"
    await client.update(created)
    assert (await client.get(ConfigMap, "a")).data == {"key": "2"}
    await client.patch(ConfigMap, "a", MergePatch({"data": {"key": "3"}}))
    assert (await client.get(ConfigMap, "a")).data == {"key": "3"}
    read = await client.get(ConfigMap, "a")
    read.data["key"] = "4"
    await client.patch(read)
    assert (await client.get(ConfigMap, "a")).data == {"key": "4"}
    await client.apply(config_map("a", other="5"))
    assert (await client.get(ConfigMap, "a")).data == {"key": "4", "other": "5"}
    await client.delete(ConfigMap, "a")
    assert await client.get(ConfigMap, "a", missing=None) is None
    assert all(line.startswith(("POST", "PUT", "PATCH", "DELETE")) for line in stage.reads)


class Restored:
    """A server that takes the place of another, whose history is another one and shorter."""

    def __init__(self, stage: LaggingStage) -> None:
        self._scene = stage
        self._server = Server(stage.world, MemoryLog())

    async def __aenter__(self) -> Client:
        await self._server.start()
        transport = InProcessTransport(self._server)
        self._scene.late._inner = transport
        return Client(transport, world=self._scene.world, namespace="default")

    async def __aexit__(self, *_: object) -> None:
        await self._scene.informers.stop()
        await self._server.close()


@staged
async def test_a_response_reveals_a_restored_server_before_a_bookmark(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap, Secret)
    for number in range(50):
        await client.create(config_map(f"lost-{number}"))
    await client.create(Secret(metadata=ObjectMeta(name="lost")))
    await client.fresh(ConfigMap)
    async with Restored(stage) as restored:
        await restored.create(config_map("theirs"))
        await restored.create(Secret(metadata=ObjectMeta(name="theirs")))
        await client.create(config_map("mine"))
        await stage.world.clock.sleep(5)
        names = [each.metadata.name for each in await client.list(ConfigMap, namespace="default")]
        assert sorted(names) == ["mine", "theirs"]
        assert await client.get(Secret, "theirs"), "all caches list anew"
        assert await client.get(Secret, "lost", missing=None) is None
        stage.transport.requests.clear()
        for number in range(20):
            await client.create(config_map(f"new-{number}"))
        await stage.world.clock.sleep(5)
        assert not [each for each in stage.transport.requests if each.method == "GET"], "and once is enough"


@staged
async def test_caches_relist_once_after_a_restore_even_if_another_is_slow(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap, Secret)
    for number in range(50):
        await client.create(config_map(f"lost-{number}"))
    await client.create(Secret(metadata=ObjectMeta(name="lost")))
    await client.fresh(ConfigMap)
    async with Restored(stage) as restored:
        await restored.create(Secret(metadata=ObjectMeta(name="theirs")))
        stage.late.slow = "/configmaps"
        stage.transport.requests.clear()
        for number in range(20):
            await client.create(config_map(f"mine-{number}"))
            await stage.world.clock.sleep(0.5)
        await stage.world.clock.sleep(30)
        asked = [each.path.rpartition("/")[2] for each in stage.transport.requests if each.method == "GET"]
        assert sorted(asked) == ["configmaps", "secrets"]
        assert len(await client.list(ConfigMap, namespace="default")) == 20


@staged
async def test_a_write_lost_by_a_restored_server_does_not_block_reads(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    async with Restored(stage) as restored:
        await restored.create(config_map("theirs"))
        stage.informers.of(ConfigMap).feeds[0].expectations.expect(Written(NamespacedName("default", "mine"), "99999"))
        read = None
        for _ in range(12):
            with suppress(StaleCache):
                read = await client.list(ConfigMap, namespace="default")
                break
        assert read is not None
        await stage.world.clock.sleep(5)
        assert await client.get(ConfigMap, "theirs"), "what is there is listed anew"


@staged
async def test_responses_older_than_the_cache_are_accepted_if_consistent(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    first = await client.create(config_map("a", key="1"))
    await client.create(config_map("b"))
    await client.fresh(ConfigMap)
    stage.transport.requests.clear()
    same = await client.apply(config_map("a", key="1"), force=True)
    again = await client.apply(config_map("a", key="1"), force=True)
    assert again.metadata.resource_version == same.metadata.resource_version, "nothing was to be done"
    assert (await client.patch(ConfigMap, "b", MergePatch({}))).metadata.resource_version
    stage.late.lag = 2
    other = await stage.other.patch(ConfigMap, "a", MergePatch({"data": {"key": "theirs"}}))
    await client.patch(ConfigMap, "a", MergePatch({"data": {"key": "theirs"}}))  # which it is, but the cache is late
    await stage.other.delete(ConfigMap, "a")
    await stage.world.clock.sleep(10)
    assert int(other.metadata.resource_version) > int(first.metadata.resource_version)
    assert not [each for each in stage.transport.requests if each.method == "GET"]


@staged
async def test_a_response_after_the_objects_deletion_causes_no_relist(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    await client.create(config_map("a"))
    await client.create(config_map("b"))
    await client.fresh(ConfigMap)
    stage.transport.requests.clear()
    stage.late.answers_late = 2
    answer = asyncio.create_task(client.patch(ConfigMap, "a", MergePatch({})))
    await stage.world.clock.sleep(1)
    await stage.other.delete(ConfigMap, "a")
    await answer
    await stage.world.clock.sleep(10)
    assert not [each for each in stage.transport.requests if each.method == "GET"]


@staged
async def test_a_patch_without_changes_causes_no_relist(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    await client.create(config_map("a", key="1"))
    mine = await client.get(ConfigMap, "a")
    await stage.other.patch(ConfigMap, "a", MergePatch({"data": {"key": "theirs"}}))
    await stage.world.clock.sleep(1)
    stage.transport.requests.clear()
    told: list[OwnWrite] = []
    with own_writes(told.append):
        assert await client.patch(mine) is mine, "though the cache has a later one"
    assert told == []
    await stage.world.clock.sleep(10)
    assert stage.transport.requests == []


@staged
async def test_a_response_for_an_object_that_could_not_be_cached_causes_no_relist(stage: LaggingStage) -> None:
    def strict(each: dict[str, Any]) -> dict[str, Any]:
        if each["metadata"]["name"] == "odd":
            raise ValueError("odd")
        return each

    client = await stage.watching((ConfigMap, InformerSettings(feed=FeedOptions(transform=strict))))
    await client.apply(config_map("odd"))
    await client.create(config_map("even"))
    await client.fresh(ConfigMap)
    stage.transport.requests.clear()
    await client.apply(config_map("odd"))
    await stage.world.clock.sleep(10)
    assert not [each for each in stage.transport.requests if each.method == "GET"]


@staged
async def test_a_response_of_another_kind_causes_no_relist(stage: LaggingStage) -> None:
    deployments = Unstructured.of("apps/v1", "Deployment")
    client = await stage.watching(deployments)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web"}]}}
    for name in ("a", "b"):
        spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
        await client.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})
    scaled = MergePatch({"spec": {"replicas": 1}})
    await client.patch(deployments, "a", scaled, subresource="scale")
    settled = await client.patch(deployments, "a", scaled, subresource="scale")
    await client.patch(deployments, "b", MergePatch({"metadata": {"labels": labels}}))
    await client.fresh(deployments)
    stage.transport.requests.clear()
    assert await client.patch(deployments, "a", scaled, subresource="scale") == settled
    await stage.world.clock.sleep(10)
    assert not [each for each in stage.transport.requests if each.method == "GET"]


@staged
async def test_a_list_after_a_write_waits_too(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await client.create(config_map("a"))
    assert [each.metadata.name for each in await client.list(ConfigMap, namespace="default")] == ["a"]
    await client.create(config_map("b"))
    began = stage.world.clock.monotonic()
    assert await client.list(ConfigMap, namespace="kube-system") == []  # that namespace has nothing to wait for
    assert stage.world.clock.monotonic() == began
    assert len([each async for each in client.list(ConfigMap)]) == 2


@staged
async def test_reads_with_fresh_off_do_not_wait(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await client.create(config_map("a"))
    assert await client.get(ConfigMap, "a", missing=None, fresh=False) is None
    assert await client.list(ConfigMap, fresh=False) == []
    assert stage.world.clock.monotonic() == 0


@staged
async def test_other_objects_are_read_without_waiting(stage: LaggingStage) -> None:
    await stage.live.create(config_map("b"))
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await client.create(config_map("a"))
    await client.get(ConfigMap, "b")
    assert stage.world.clock.monotonic() == 0


@staged
async def test_a_cache_that_does_not_see_a_write_in_time_is_an_error_that_names_it(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    stage.late.lag = 60
    created = await client.create(config_map("a"))
    version = created.metadata.resource_version
    with pytest.raises(StaleCache) as caught:
        await client.get(ConfigMap, "a")
    expected = f"default/a at resourceVersion {version}"
    assert str(caught.value) == f"configmaps: the cache has not observed {expected} after 10 s"
    assert stage.world.clock.monotonic() == pytest.approx(10)
    await client.delete(created)
    with pytest.raises(StaleCache, match="configmaps: the cache has not observed"):
        await client.list(ConfigMap)


@staged
async def test_a_dry_run_is_not_waited_for(stage: LaggingStage) -> None:
    await stage.live.create(config_map("b"))
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await client.create(config_map("a"), dry_run=True)
    await client.delete(ConfigMap, "b", dry_run=True)
    await client.delete_all_of(ConfigMap, namespace="default", dry_run=True)
    assert await client.get(ConfigMap, "a", missing=None) is None
    assert (await client.get(ConfigMap, "b")).metadata.name == "b"
    assert stage.world.clock.monotonic() == 0


@staged
async def test_a_dry_run_that_gets_no_answer_was_not_done(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    stage.late._inner = Broken()
    for dry_run in (True, False):
        for write in (
            lambda dry_run: client.create(config_map("a"), dry_run=dry_run),
            lambda dry_run: client.delete(ConfigMap, "a", dry_run=dry_run),
            lambda dry_run: client.delete_all_of(ConfigMap, namespace="default", dry_run=dry_run),
        ):
            with own_writes() as writes, pytest.raises(ConnectionLost):
                await write(dry_run)
            assert writes.all_seen == dry_run


@pytest.mark.filterwarnings("error")  # of a coroutine that nobody awaits
@pytest.mark.parametrize("verb", ["create", "update", "apply", "patch", "delete"])
def test_a_value_that_is_not_an_object_is_rejected(verb: str) -> None:
    @staged
    async def play(stage: LaggingStage) -> None:
        client = await stage.watching(ConfigMap)
        refused: tuple[Any, ...] = (None, "a", ConfigMap, {})
        for given in refused:
            with pytest.raises((TypeError, ValueError)) as caught:
                await getattr(client, verb)(given)
            with pytest.raises(type(caught.value)) as live:
                await getattr(client.live, verb)(given)
            assert str(caught.value) == str(live.value)

    play()


@staged
async def test_a_deletion_is_waited_for_be_it_by_object_or_by_name(stage: LaggingStage) -> None:
    for name in "abcd":
        await stage.live.create(config_map(name))
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await client.delete(await client.get(ConfigMap, "a"))
    assert await client.get(ConfigMap, "a", missing=None) is None
    await client.delete({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}})
    assert await client.get(ConfigMap, "b", missing=None) is None
    await client.delete(ConfigMap, "missing", missing_ok=True)
    assert await client.get(ConfigMap, "missing", missing=None) is None
    await client.delete_all_of(ConfigMap, namespace="default")
    assert await client.list(ConfigMap, namespace="default") == []


@staged
async def test_an_object_that_waits_for_its_finalizers_was_deleted_as_far_as_reads_go(stage: LaggingStage) -> None:
    held = ConfigMap(metadata=ObjectMeta(name="a", finalizers=["example.dev/hold"]))
    await stage.live.create(held)
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await client.delete(ConfigMap, "a")
    found = await client.get(ConfigMap, "a")
    assert found.metadata.deletion_timestamp is not None
    found.metadata.finalizers = []
    await client.update(found)
    assert await client.get(ConfigMap, "a", missing=None) is None


@staged
async def test_a_status_write_of_a_terminating_namespace_expects_no_deletion(
    stage: LaggingStage,
) -> None:
    await stage.live.create(Namespace(metadata=ObjectMeta(name="n")))
    client = await stage.watching(Namespace)
    await client.delete(Namespace, "n")
    found = await client.get(Namespace, "n")
    patch = MergePatch({"metadata": {"labels": {"a": "b"}}})
    await client.patch(Namespace, "n", patch)
    found = await client.get(Namespace, "n")
    assert found.metadata.labels["a"] == "b"
    assert found.metadata.deletion_timestamp is not None


@staged
async def test_it_is_the_same_with_dicts(stage: LaggingStage) -> None:
    metadata = {"name": "a", "namespace": "default", "finalizers": ["example.dev/hold"]}
    await stage.live.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await client.delete(MAPS, "a")
    found = await client.get(MAPS, "a")
    del found["metadata"]["finalizers"]
    await client.update(found)
    assert await client.get(MAPS, "a", missing=None) is None


@staged
async def test_a_recreated_object_is_not_mistaken_for_the_deleted_one(
    stage: LaggingStage,
) -> None:
    await stage.live.create(config_map("a", key="old"))
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await client.delete(ConfigMap, "a")
    await client.create(config_map("a", key="new"))
    assert (await client.get(ConfigMap, "a")).data == {"key": "new"}


@staged
async def test_a_write_that_the_cache_will_not_see_is_not_waited_for(stage: LaggingStage) -> None:
    await stage.live.create(labelled("a", app="web"))
    settings = InformerSettings(labels="app=web", namespaces=("default",))
    client = await stage.watching((ConfigMap, settings), (ConfigMap, InformerSettings(fields={"metadata.name": "z"})))
    stage.late.lag = 2
    await client.create(labelled("b", app="db"))
    await client.get(ConfigMap, "b")
    assert stage.world.clock.monotonic() == 0
    await client.patch(ConfigMap, "a", MergePatch({"metadata": {"labels": {"app": "db"}}}))
    assert (await client.get(ConfigMap, "a")).metadata.labels == {"app": "db"}  # it left the cache, and was asked for
    assert stage.world.clock.monotonic() == pytest.approx(2)


@staged
async def test_after_a_conflict_a_read_waits_for_the_conflicting_write(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a", count="0"))
    client = await stage.watching(ConfigMap)
    stage.late.lag = 2
    await stage.other.patch(ConfigMap, "a", MergePatch({"data": {"count": "10"}}))
    tries = 0

    async def increment() -> None:
        nonlocal tries
        tries += 1
        found = await client.get(ConfigMap, "a")
        found.data["count"] = str(int(found.data["count"]) + 1)
        await client.update(found)

    await client.retry_on_conflict(increment)
    assert tries == 2
    assert (await stage.other.get(ConfigMap, "a")).data == {"count": "11"}
    read = await client.get(ConfigMap, "a")
    await stage.other.patch(ConfigMap, "a", MergePatch({"data": {"count": "20"}}))
    read.data["count"] = "21"
    with pytest.raises(Conflict):
        await client.patch(read, optimistic_lock=True)
    read = await client.get(ConfigMap, "a")
    assert read.data == {"count": "20"}
    await stage.other.patch(ConfigMap, "a", MergePatch({"data": {"count": "30"}}))
    change = MergePatch({"metadata": {"resourceVersion": read.metadata.resource_version}, "data": {"count": "21"}})
    with pytest.raises(Conflict):
        await client.patch(ConfigMap, "a", change)
    assert (await client.get(ConfigMap, "a")).data == {"count": "30"}


@staged
async def test_a_conflict_of_another_kind_is_not_waited_for(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    client = await stage.watching(ConfigMap)
    read = await client.get(ConfigMap, "a")
    read.metadata.uid = "0f9a3b62-6f0e-4f6c-9a76-0c5a3d8f1b2e"
    with pytest.raises(Conflict):
        await client.update(read)
    await client.get(ConfigMap, "a")
    assert stage.world.clock.monotonic() == 0


@staged
async def test_a_conflict_about_another_object_is_not_waited_for(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    client = await stage.watching(ConfigMap)
    read = await client.get(ConfigMap, "a")

    async def contended(*given: Any, **options: Any) -> Any:
        raise Conflict.of(GroupResource("", "resourcequotas"), "counts", MODIFIED)

    stage.live.update = stage.live.patch = contended  # type: ignore[method-assign,assignment]
    change = MergePatch({"metadata": {"resourceVersion": read.metadata.resource_version}})
    for write in (client.update(read), client.patch(read), client.patch(ConfigMap, "a", change)):
        with pytest.raises(Conflict):
            await write
    await client.get(ConfigMap, "a")
    assert stage.world.clock.monotonic() == 0


@staged
async def test_a_caller_can_wait_for_its_writes_by_kind_and_by_object(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap, (ConfigMap, InformerSettings(namespaces=("kube-system",))))
    stage.late.lag = 2
    await client.create(config_map("a"))
    await client.fresh(ConfigMap, "a")
    assert stage.world.clock.monotonic() == pytest.approx(2)
    await client.create(config_map("b"))
    await client.fresh(ConfigMap, namespace="kube-system")
    await client.fresh(ConfigMap, "a")
    assert stage.world.clock.monotonic() == pytest.approx(2)
    await client.fresh(ConfigMap)
    assert stage.world.clock.monotonic() == pytest.approx(4)


@staged
async def test_the_writes_of_a_reconcile_are_known_and_can_be_waited_for(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap, Namespace)
    stage.late.lag = 2

    async def child() -> None:
        await client.create(config_map("b"))

    with own_writes() as writes:
        assert writes.all_seen
        await client.create(config_map("a"))
        await asyncio.create_task(child())
    await client.create(config_map("not recorded"[:3]))
    assert not writes.all_seen
    with pytest.raises(StaleCache):
        await writes.wait_seen(timeout=1)
    await writes.wait_seen(timeout=10)
    assert writes.all_seen
    store = stage.informers.of(ConfigMap).store
    assert NamespacedName("default", "a") in store
    assert NamespacedName("default", "b") in store
    await writes.wait_seen(timeout=0)


@staged
async def test_stopping_the_cache_ends_waiting_reads(stage: LaggingStage) -> None:
    client = await stage.watching(ConfigMap)
    stage.late.lag = 60
    await client.create(config_map("a"))
    reader = asyncio.ensure_future(client.get(ConfigMap, "a", missing=None))
    await stage.world.clock.sleep(1)
    await stage.informers.stop()
    assert await reader is None
    assert (await client.get(ConfigMap, "a")).metadata.name == "a"  # a cache that has stopped is not asked
