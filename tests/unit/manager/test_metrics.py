from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.manager.stage import Stage, staged

from ostinato.api.meta import ObjectMeta
from ostinato.api.object import kind_of
from ostinato.cache.informers import Informers, InformerSettings
from ostinato.client.transport import metrics as names
from ostinato.kinds.core_v1 import ConfigMap, Namespace
from ostinato.manager.metrics.exposition import number
from ostinato.manager.metrics.process import process_families
from ostinato.manager.metrics.registry import Registry, Tallies, cache_families
from ostinato.queue import Family, Sample


def gauge(name: str, value: float, **labels: str) -> Family:
    return Family(name, "gauge", "Help.", [Sample(name, labels, value)])


def test_metrics_are_shown_by_name_and_those_of_one_name_together() -> None:
    registry = Registry()
    registry.add(lambda: [gauge("b", 1, x="1"), gauge("a", 2.5)])
    registry.add(lambda: [gauge("b", 3, x="2")])
    assert registry.text() == (
        '# HELP a Help.\n# TYPE a gauge\na 2.5\n# HELP b Help.\n# TYPE b gauge\nb{x="1"} 1\nb{x="2"} 3\n'
    )
    assert registry.text() == registry.text(), "looking changes nothing"


def test_metrics_can_be_taken_away() -> None:
    registry = Registry()

    def families() -> list[Family]:
        return [gauge("a", 1)]

    registry.add(families)
    registry.add(families)
    assert registry.text().count("a 1\n") == 1
    registry.remove(families)
    registry.remove(families)
    assert registry.text() == ""


def test_metrics_that_fail_cost_only_themselves() -> None:
    def broken() -> Iterator[Family]:
        yield gauge("lost", 1)
        raise RuntimeError("broken")

    registry = Registry()
    registry.add(broken)
    registry.add(lambda: [gauge("a", 1)])
    assert registry.text().endswith("a 1\n")
    assert "lost" not in registry.text()


def test_labels_and_help_are_escaped_and_the_bound_stands_last() -> None:
    registry = Registry()
    sample = Sample("a", {"z": 'q"\\\n', "le": "+Inf", "b": "x"}, 1)
    registry.add(lambda: [Family("a", "histogram", "one\ntwo \\", [sample])])
    assert registry.text() == ('# HELP a one\\ntwo \\\\\n# TYPE a histogram\na{b="x",z="q\\"\\\\\\n",le="+Inf"} 1\n')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1.0, "1"),
        (0.005, "0.005"),
        (1e-8, "1e-08"),
        (float("inf"), "+Inf"),
        (float("-inf"), "-Inf"),
        (float("nan"), "NaN"),
        (2**40, "1099511627776"),
        (1e22, "1e+22"),
    ],
)
def test_numbers_are_written_short(value: float, text: str) -> None:
    assert number(value) == text


def test_requests_are_counted_and_timed_under_the_names_of_client_go() -> None:
    tallies = Tallies()
    labels = {"code": "200", "method": "GET", "host": "h"}
    tallies.count(names.REQUESTS, labels)
    tallies.count(names.REQUESTS, labels)
    for value in (0.005, 0.3, 100.0):
        tallies.observe(names.DURATION, value, {"verb": "GET", "host": "h"})
    tallies.count("unheard_of_total", {})
    registry = Registry()
    registry.add(tallies.families)
    text = registry.text()
    assert 'rest_client_requests_total{code="200",host="h",method="GET"} 2\n' in text
    assert "# TYPE rest_client_request_duration_seconds histogram\n" in text
    for bound, count in (("0.005", 1), ("0.25", 1), ("0.5", 2), ("60", 2), ("+Inf", 3)):
        assert f'rest_client_request_duration_seconds_bucket{{host="h",verb="GET",le="{bound}"}} {count}\n' in text
    assert 'rest_client_request_duration_seconds_count{host="h",verb="GET"} 3\n' in text
    assert "unheard_of_total 1\n" in text


@staged
async def test_caches_show_what_they_hold(stage: Stage) -> None:
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
async def test_caches_of_one_kind_are_shown_as_one(stage: Stage) -> None:
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


def test_the_process_shows_its_time_memory_and_files(tmp_path: Path) -> None:
    found = {family.name: family.samples[0].value for family in process_families()}
    assert found["process_cpu_seconds_total"] > 0
    assert found["process_max_fds"] > 0
    if Path("/proc/self/stat").exists():
        assert found["process_resident_memory_bytes"] > 1e6
        assert found["process_start_time_seconds"] > 1.6e9
        assert found["process_open_fds"] > 2
    assert {family.name for family in process_families(tmp_path)} == {"process_cpu_seconds_total", "process_max_fds"}
