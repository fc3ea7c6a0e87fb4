"""All caches of a process, and listers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.stage.kinds import Widget, config_map
from tests.unit.cache.lagging import InformerSettings, LaggingStage, staged
from tests.unit.cache.running import Recorder, key
from tests.unit.cache.store.test_store import pod

from ostinato.api.errors import NotFound
from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.api.object import kind_of
from ostinato.api.selectors.labels import nothing
from ostinato.cache import CachedClient, FeedOptions, Informers, InformerStopped, Lister, Store, SyncError, by_label
from ostinato.client import MetadataOf, NoSuchKind, Unstructured
from ostinato.kinds.core_v1 import ConfigMap, Namespace, Pod, Secret, ServiceAccount

MAPS = Unstructured.of("v1", "ConfigMap")


@staged
async def test_equal_settings_share_an_informer(stage: LaggingStage) -> None:
    informers = stage.informers
    maps = informers.of(ConfigMap)
    assert informers.of(MAPS) is maps
    assert informers.of(kind_of(ConfigMap).gvk) is maps
    assert informers.of(MetadataOf(ConfigMap)) is maps  # the whole serves those who need a part
    assert informers.of(ConfigMap, InformerSettings(namespaces=("default",))) is not maps
    one = informers.of(ConfigMap, InformerSettings(labels="a=b", namespaces=("x", "y")))
    assert informers.of(ConfigMap, InformerSettings(labels={"a": "b"}, namespaces=("y", "x"))) is one
    assert informers.of(ConfigMap, InformerSettings(fields="metadata.name=a")) is not maps
    assert len(informers.all()) == 4
    assert informers.all(kind_of(Namespace).gvk) == []


@staged
async def test_metadata_has_its_own_cache_unless_the_kind_is_cached(stage: LaggingStage) -> None:
    partial = stage.informers.of(MetadataOf(ConfigMap))
    assert partial.metadata_only
    assert stage.informers.of(MetadataOf(ConfigMap)) is partial
    assert not stage.informers.of(ConfigMap).metadata_only


@staged
async def test_settings_of_a_kind_apply_to_all_its_views(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    feed = FeedOptions(indexes=(by_label("app"),))
    informers = Informers(
        stage.live,
        settings={ConfigMap: InformerSettings(namespaces=("default",), feed=feed)},
        defaults=InformerSettings(namespaces=("kube-system", "default")),
    )
    maps, secrets = informers.of(MAPS), informers.of(Secret)
    assert maps.namespaces == ("default",)
    assert secrets.namespaces == ("kube-system", "default")
    informers.start()
    await informers.synced(timeout=5)
    assert maps.store.index_values("label:app") == []
    assert "pods" not in str(maps)
    await informers.stop()


@staged
async def test_all_namespaces_are_all_whatever_others_are_named(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    maps = stage.informers.of(ConfigMap, InformerSettings(namespaces=("default", "")))
    assert maps.namespaces == ("",)
    assert stage.informers.of(ConfigMap) is maps
    events = Recorder()
    maps.add_handler(events)
    stage.informers.start()
    await stage.informers.synced(timeout=5)
    await stage.world.clock.sleep(1)
    assert events.summaries.count("initial a") == 1
    assert [each.metadata.name for each in maps.lister(ConfigMap).list("default")] == ["a"]


@staged
async def test_where_caches_are_of_some_namespaces_lists_are_too(stage: LaggingStage) -> None:
    await stage.live.create(Namespace(metadata=ObjectMeta(name="other")))
    for namespace in ("default", "other", "kube-system"):
        await stage.live.create(ConfigMap(metadata=ObjectMeta(name=f"in-{namespace}", namespace=namespace)))
        await stage.live.create(Secret(metadata=ObjectMeta(name=f"in-{namespace}", namespace=namespace)))
    informers = Informers(
        stage.live,
        settings={Secret: InformerSettings(namespaces=("kube-system",))},
        defaults=InformerSettings(namespaces=("default", "other")),
    )
    maps = informers.of(ConfigMap)
    informers.start()
    await informers.synced(timeout=5)
    client = CachedClient(stage.live, informers)

    async def names(kind: Any, **options: Any) -> list[str]:
        items = await client.list(kind, **options)
        assert [each async for each in client.list(kind, **options)] == items
        assert items.resource_version
        return sorted(each["metadata"]["name"] if isinstance(each, dict) else each.metadata.name for each in items)

    stage.transport.requests.clear()
    assert await names(ConfigMap) == await names(MAPS) == ["in-default", "in-other"]
    assert await names(ConfigMap, namespace="other") == ["in-other"]
    assert stage.reads == []
    assert await names(ConfigMap, namespace="kube-system") == ["in-kube-system"], "who asks for another gets it"
    stage.transport.requests.clear()
    assert await names(Secret) == ["in-kube-system"], "by its own settings"
    assert await names(ServiceAccount) == []
    assert {line.partition("?")[0] for line in stage.reads} == {
        "GET /api/v1/namespaces/kube-system/secrets",
        "GET /api/v1/namespaces/default/serviceaccounts",
        "GET /api/v1/namespaces/other/serviceaccounts",
    }
    for kind in (Namespace, Unstructured.of("v1", "Namespace")):
        assert "kube-system" in await names(kind), "what is in no namespace is in all of them"
    assert maps.is_running
    await informers.stop()


@staged
async def test_shared_informers_have_all_indexes_and_equal_transforms(stage: LaggingStage) -> None:
    def slim(each: dict[str, Any]) -> dict[str, Any]:
        return {**each, "data": {}}

    await stage.live.create(config_map("a", key="value"))
    informers = Informers(
        stage.live,
        settings={Secret: InformerSettings(feed=FeedOptions(transform=slim))},
        defaults=InformerSettings(feed=FeedOptions(indexes=(by_label("tier"),))),
    )
    maps = informers.of(ConfigMap)
    assert informers.of(ConfigMap, InformerSettings(feed=FeedOptions(indexes=(by_label("app"),)))) is maps
    informers.start()
    await informers.synced(timeout=5)
    assert [maps.store.index_values(f"label:{name}") for name in ("tier", "app")] == [[], []]
    with pytest.raises(ValueError, match="configmaps has another transform already"):
        informers.of(ConfigMap, InformerSettings(feed=FeedOptions(transform=slim)))
    complete = informers.of(ConfigMap, InformerSettings(feed=FeedOptions(keep_managed_fields=True)))
    assert complete is not maps  # managedFields need a cache of their own
    assert informers.of(Secret) is informers.of(Secret)  # its own transform, in place of the default's
    with pytest.raises(ValueError, match="secrets has another transform already"):
        informers.of(Secret, InformerSettings())
    await informers.stop()


@staged
async def test_metrics_include_caches_with_their_own_settings(stage: LaggingStage) -> None:
    class Observed:
        def __init__(self) -> None:
            self.resources: set[str] = set()

        def observe(self, name: str, value: float, labels: Any) -> None:
            self.resources.add(labels["resource"])

    metrics, own = Observed(), Observed()
    settings = {
        Secret: InformerSettings(namespaces=("default",)),
        Namespace: InformerSettings(feed=FeedOptions(metrics=own)),
    }
    informers = Informers(stage.live, settings=settings, defaults=InformerSettings(feed=FeedOptions(metrics=metrics)))
    for kind in (Secret, Namespace):
        informers.of(kind)
    informers.of(ConfigMap, InformerSettings(namespaces=("default",)))
    informers.start()
    await informers.synced(timeout=5)
    await stage.world.clock.sleep(1)
    assert (metrics.resources, own.resources) == ({"secrets", "configmaps"}, {"namespaces"})
    await informers.stop()


@staged
async def test_all_reads_return_the_transformed_object(stage: LaggingStage) -> None:
    def slim(each: dict[str, Any]) -> dict[str, Any]:
        return {**each, "metadata": {**each["metadata"], "annotations": {"slim": "yes"}}, "data": {}}

    await stage.live.create(config_map("a", key="value"))
    client = await stage.watching((ConfigMap, InformerSettings(feed=FeedOptions(transform=slim))))
    typed, plain = await client.get(ConfigMap, "a"), await client.get(MAPS, "a")
    assert (typed.data, plain["data"]) == ({}, {})
    metadata = (await client.get(MetadataOf(ConfigMap), "a")).metadata
    assert typed.metadata.annotations == metadata.annotations == plain["metadata"]["annotations"] == {"slim": "yes"}
    assert stage.reads == []


@staged
async def test_start_starts_those_that_have_not_started_and_stop_ends_all(stage: LaggingStage) -> None:
    informers = stage.informers
    maps = informers.of(ConfigMap)
    informers.start()
    secrets = informers.of(Secret)
    assert maps.has_started
    assert not secrets.has_started
    await informers.synced(timeout=5)  # looks at those that were started alone
    informers.start()
    await informers.synced(timeout=5)
    assert secrets.has_synced
    before = len(asyncio.all_tasks())
    await informers.stop()
    assert len(asyncio.all_tasks()) < before
    informers.start()  # does nothing
    assert maps.has_stopped
    assert informers.of(ConfigMap) is maps
    with pytest.raises(InformerStopped, match="the informers have stopped; cannot create one of /v1, Kind=Namespace"):
        informers.of(Namespace)


@staged
async def test_an_informer_without_handlers_can_be_released(stage: LaggingStage) -> None:
    informers = stage.informers
    maps = informers.of(MetadataOf(ConfigMap))
    registration = maps.add_handler(lambda event: None)
    maps.start()
    await informers.release(maps)
    assert informers.of(MetadataOf(ConfigMap)) is maps
    registration.remove()
    await informers.release(maps)
    assert maps.has_stopped
    assert informers.of(MetadataOf(ConfigMap)) is not maps


@staged
async def test_a_kind_that_the_server_does_not_have_surfaces_by_name_within_seconds(stage: LaggingStage) -> None:
    informers = stage.informers
    informers.of(ConfigMap)
    informers.of(Widget, InformerSettings(namespaces=("default",)))
    informers.start()
    with pytest.raises(SyncError) as caught:
        await informers.synced(timeout=60)
    assert str(caught.value) == (
        "the server rejects the list: widgets.example.dev in namespace default: "
        'no matches for kind "Widget" in version "example.dev/v1"; is its definition widgets.example.dev installed?'
    )
    assert isinstance(caught.value.cause, NoSuchKind)
    assert stage.world.clock.monotonic() < 7


@staged
async def test_a_kind_without_a_class_that_the_server_does_not_have_surfaces_too(stage: LaggingStage) -> None:
    informers = stage.informers
    informers.of(Unstructured.of("example.dev/v1", "Widget"))
    informers.start()
    with pytest.raises(SyncError, match=r'Widget\.example\.dev: no matches for kind "Widget"'):
        await informers.synced()
    assert stage.world.clock.monotonic() < 10


@staged
async def test_a_sync_timeout_names_all_unsynced_informers(stage: LaggingStage) -> None:
    stage.late.lag = 60
    for kind in (Secret, ConfigMap, Namespace):
        stage.informers.of(kind)
    stage.informers.start()
    with pytest.raises(SyncError) as caught:
        await stage.informers.synced(timeout=5)
    assert str(caught.value) == "not synced after 5 s: secrets; also waiting for configmaps, namespaces"


@staged
async def test_handlers_receive_the_events_of_a_server(stage: LaggingStage) -> None:
    await stage.live.create(config_map("a"))
    events = Recorder()
    stage.informers.of(ConfigMap, InformerSettings(namespaces=("default",))).add_handler(events)
    stage.informers.start()
    await stage.informers.synced(timeout=5)
    made = await stage.live.create(config_map("b"))
    made.data["key"] = "value"
    await stage.live.update(made)
    await stage.live.delete(made)
    await stage.world.clock.sleep(1)
    assert events.summaries == ["initial a", "added b", "updated b", "deleted b"]
    maps = stage.informers.all()[0].lister(ConfigMap)
    assert [each.metadata.name for each in maps.list("default")] == ["a"]


# Listers


def lister(*names: str) -> Lister[Pod]:
    store = Store([by_label("app")])
    for name in names:
        namespace, _, rest = name.rpartition("/")
        labels = {"app": rest[0]}
        store.put(pod(rest, namespace=namespace, metadata={"labels": labels}))
    return Lister(store, Pod)


def found(pods: list[Pod]) -> list[str]:
    return [f"{each.metadata.namespace}/{each.metadata.name}" for each in pods]


def test_a_lister_lists_by_namespace_and_labels() -> None:
    pods = lister("x/a1", "x/b1", "y/a2")
    assert found(pods.list()) == ["x/a1", "x/b1", "y/a2"]
    assert found(pods.list("x")) == ["x/a1", "x/b1"]
    assert found(pods.list(labels="app=a")) == ["x/a1", "y/a2"]
    assert found(pods.list("y", {"app": "a"})) == ["y/a2"]
    assert found(pods.list(labels=LabelSelector(match_labels={"app": "b"}))) == ["x/b1"]
    assert found(pods.list(labels=LabelSelector())) == ["x/a1", "x/b1", "y/a2"]
    assert found(pods.by_index("label:app", "a")) == ["x/a1", "y/a2"]


def test_the_selector_that_selects_nothing_looks_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = lister("x/a1")
    monkeypatch.setattr(Store, "entries", lambda *_: pytest.fail("looked"))
    assert pods.list(labels=nothing()) == []


def test_a_selector_that_selects_everything_looks_at_no_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = lister("x/a1")
    monkeypatch.setattr("ostinato.cache.store.entry.labels_from", lambda *_: pytest.fail("looked"))
    assert found(pods.list(labels="")) == ["x/a1"]


def test_a_lister_returns_one_object_or_not_found() -> None:
    pods = lister("x/a1", "node")
    assert pods.get("a1", "x").metadata.name == "a1"
    assert pods.get(key("a1", "x")).metadata.name == "a1"
    assert pods.get("node").metadata.name == "node"
    assert pods.find("a2", "x") is None
    with pytest.raises(NotFound, match='pods "a2" not found') as caught:
        pods.get("a2", "x")
    assert caught.value.code == 404
    with pytest.raises(NotFound, match=r'widgets\.example\.dev "x" not found'):
        Lister(Store(), Unstructured.of("example.dev/v1", "Widget")).get("x")
