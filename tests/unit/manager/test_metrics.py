from __future__ import annotations

from tests.stage.election import ElectionStage, staged

from ostinato.api.codec import ObjectError
from ostinato.api.meta import ObjectMeta
from ostinato.api.object import kind_of
from ostinato.cache.informers import Informers, InformerSettings
from ostinato.client.transport import metrics as names
from ostinato.client.unreadable import UnreadableObjects
from ostinato.kinds.core_v1 import ConfigMap, Namespace
from ostinato.manager.metrics import cache_families, request_metrics, unreadable_families
from ostinato.metrics import Registry


def test_requests_are_counted_and_timed_under_the_names_of_client_go() -> None:
    reported = request_metrics()
    labels = {"code": "200", "method": "GET", "host": "h"}
    reported.count(names.REQUESTS, labels)
    reported.count(names.REQUESTS, labels)
    for value in (0.005, 0.3, 100.0):
        reported.observe(names.DURATION, value, {"verb": "GET", "host": "h"})
    reported.count("undescribed_total", {})
    registry = Registry()
    registry.add(reported.families)
    text = registry.text()
    assert 'rest_client_requests_total{code="200",host="h",method="GET"} 2\n' in text
    assert "# TYPE rest_client_request_duration_seconds histogram\n" in text
    for bound, count in (("0.005", 1), ("0.25", 1), ("0.5", 2), ("60", 2), ("+Inf", 3)):
        assert f'rest_client_request_duration_seconds_bucket{{host="h",verb="GET",le="{bound}"}} {count}\n' in text
    assert 'rest_client_request_duration_seconds_count{host="h",verb="GET"} 3\n' in text
    assert "undescribed_total 1\n" in text


def test_unreadable_objects_are_counted_by_kind() -> None:
    unreadable = UnreadableObjects()
    assert list(unreadable_families(unreadable)) == []
    for version in ("1", "1", "2"):
        unreadable.report(kind_of(ConfigMap).gvk, "default/a", version, ObjectError("data: expected an object"))
    registry = Registry()
    registry.add(lambda: unreadable_families(unreadable))
    assert 'ostinato_unreadable_objects_total{group="",kind="ConfigMap",version="v1"} 2\n' in registry.text()


@staged
async def test_caches_report_their_gauges(stage: ElectionStage) -> None:
    informers = Informers(stage.client)
    assert list(cache_families(informers)) == []
    informers.of(ConfigMap)
    informers.start()
    await informers.synced()
    found = {family.name: family.samples[0] for family in cache_families(informers)}
    assert set(found) == {"informer_queued_items", "informer_store_resource_version", "ostinato_cache_objects"}
    assert found["informer_store_resource_version"].value > 0
    await informers.stop()


@staged
async def test_gauges_of_informers_of_one_kind_are_merged(stage: ElectionStage) -> None:
    for namespace in ("default", "kube-system"):
        for name in ("a", "b"):
            await stage.client.create(ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace)))
    informers = Informers(stage.client)
    informers.of(ConfigMap, InformerSettings(namespaces=("default", "kube-system")))
    informers.of(ConfigMap, InformerSettings(fields={"metadata.name": "a"}))
    informers.of(Namespace)
    informers.start()
    await informers.synced()
    await stage.client.create(ConfigMap(metadata=ObjectMeta(name="c", namespace="default")))
    await stage.clock.sleep(1)  # one of them is ahead of the others
    shown = {
        family.name: {sample.labels["resource"]: sample.value for sample in family.samples}
        for family in cache_families(informers)
    }
    assert all(len(family.samples) == 2 for family in cache_families(informers)), "a series is there once"
    assert shown["ostinato_cache_objects"]["configmaps"] == 7
    versions = {
        float(feed.store.resource_version) for each in informers.all(kind_of(ConfigMap).gvk) for feed in each.feeds
    }
    assert len(versions) == 2
    assert shown["informer_store_resource_version"]["configmaps"] == min(versions)
    await informers.stop()
