from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.unit.plane.scheduler.fixture import Json, SchedulerFixture, node, pod

from ostinato.kinds.apps_v1 import ReplicaSet
from ostinato.kinds.core_v1 import Namespace, Service
from ostinato.plane.placement.resources import Resources
from ostinato.plane.scheduler import WeightedPlugin, score_by
from ostinato.plane.scheduler.framework.runtime import InvalidScore
from ostinato.plane.scheduler.plugins.resources.balanced_allocation import balance_score

SOFT = {"key": "soft", "effect": "PreferNoSchedule"}


def test_the_least_allocated_node_is_selected() -> None:
    fixture = SchedulerFixture(node("small", cpu="2", memory="4Gi"), node("large", cpu="16", memory="32Gi"))
    assert fixture.where(pod(cpu="1500m", memory="1Gi")) == "large"


def test_pods_without_requests_are_spread() -> None:
    fixture = SchedulerFixture(*[node(name, cpu="4", memory="8Gi") for name in "abcd"])
    assert Counter(fixture.place(pod(f"p{number}")) for number in range(8)) == dict.fromkeys("abcd", 2)


@pytest.mark.parametrize(
    ("cpu", "memory", "score"), [(0, 0, 100), (500, 500, 100), (500, 0, 75), (1000, 0, 50), (2000, 0, 50), (0, 300, 85)]
)
def test_the_balance_score_decreases_with_the_difference(cpu: int, memory: int, score: int) -> None:
    assert balance_score(cpu, memory, Resources(cpu=1000, memory=1000)) == score


def test_balanced_allocation_prefers_balanced_nodes() -> None:
    fixture = SchedulerFixture(node("cpu", cpu="10", memory="10Gi"), node("memory", cpu="10", memory="10Gi"))
    fixture.put(pod("one", cpu="4", memory="1Gi"), "cpu")
    fixture.put(pod("two", cpu="1", memory="4Gi"), "memory")
    assert fixture.where(pod(cpu="2", memory="100Mi")) == "memory"
    assert fixture.where(pod(cpu="100m", memory="2Gi")) == "cpu"


def test_prefer_no_schedule_taints_are_avoided() -> None:
    fixture = SchedulerFixture(
        node("soft", cpu="64", memory="256Gi", taints=[SOFT]), node("plain", cpu="2", memory="4Gi")
    )
    assert fixture.where(pod(cpu="1")) == "plain"
    assert fixture.where(pod(cpu="1", tolerations=[{"key": "soft", "operator": "Exists"}])) == "soft"
    assert fixture.where(pod(cpu="1", tolerations=[{"key": "soft", "operator": "Exists", "effect": "NoSchedule"}])) == (
        "plain"
    )


def test_a_later_taint_invalidates_cached_results() -> None:
    fixture = SchedulerFixture(node("a", cpu="64", memory="256Gi"), node("b", cpu="2", memory="4Gi"))
    assert fixture.where(pod(cpu="1")) == "a"
    fixture.put_nodes(node("a", cpu="64", memory="256Gi", taints=[SOFT]))
    assert fixture.where(pod(cpu="1")) == "b"


def prefer(weight: int, key: str, value: str) -> Json:
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}
    return {"weight": weight, "preference": term}


def test_preferred_node_affinity_is_weighted() -> None:
    fixture = SchedulerFixture(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}), node("c"))

    def wanted(*preferred: Json) -> Json:
        return pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": list(preferred)}})

    assert fixture.where(wanted(prefer(1, "zone", "y"))) == "b"
    assert fixture.where(wanted(prefer(1, "zone", "y"), prefer(50, "zone", "x"))) == "a"


def rather(which: str, weight: int, labels: Json) -> Json:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": labels}}
    preferred = [{"weight": weight, "podAffinityTerm": term}]
    return {which: {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}


def test_preferred_pod_affinity_and_anti_affinity() -> None:
    fixture = SchedulerFixture(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}))
    fixture.put(pod("db", labels={"app": "db"}), "a")
    assert fixture.where(pod(affinity=rather("podAffinity", 10, {"app": "db"}))) == "a"
    assert fixture.where(pod(affinity=rather("podAntiAffinity", 10, {"app": "db"}))) == "b"


def test_preferred_terms_of_existing_pods_count() -> None:
    fixture = SchedulerFixture(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}))
    fixture.listers.put(Namespace, {"metadata": {"name": "default"}})
    fixture.put(pod("shy", affinity=rather("podAntiAffinity", 10, {"app": "web"})), "a")
    assert {fixture.where(pod(labels={"app": "web"})) for _ in range(5)} == {"b"}
    fixture.put(pod("keen", affinity=rather("podAffinity", 100, {"app": "api"})), "a")
    assert {fixture.where(pod(labels={"app": "api"})) for _ in range(5)} == {"a"}


def test_image_locality_scores_by_image_size() -> None:
    large = [{"names": ["app:1"], "sizeBytes": 900 * 1024 * 1024}]
    small = [{"names": ["app:1"], "sizeBytes": 10 * 1024 * 1024}]
    assert {SchedulerFixture(node("a"), node("b", images=large)).where(pod()) for _ in range(5)} == {"b"}
    fixture = SchedulerFixture(node("a"), node("b", images=small))
    assert {fixture.where(pod()) for _ in range(20)} == {"a", "b"}


def test_a_soft_spread_prefers_domains_with_few_pods() -> None:
    fixture = SchedulerFixture(*[node(name, labels={"zone": zone}) for name, zone in ("ax", "bx", "cy")])
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = {"labels": {"app": "web"}, "topologySpreadConstraints": [constraint]}
    placed = [fixture.place(pod(f"p{number}", **web)) for number in range(4)]
    assert Counter("x" if name in "ab" else "y" for name in placed) == {"x": 2, "y": 2}


def owned() -> Json:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    return pod(labels={"app": "web"}, cpu="2", owners=[owner])


def test_pods_of_a_replica_set_are_spread_by_default() -> None:
    fixture = SchedulerFixture(node("large", cpu="32", memory="128Gi"), node("small", cpu="16", memory="64Gi"))
    fixture.listers.put(
        ReplicaSet,
        {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}},
    )
    assert [fixture.place(owned()) for _ in range(2)] == ["large", "small"]


def test_pods_of_a_service_are_spread_over_zones_by_default() -> None:
    zone = "topology.kubernetes.io/zone"
    fixture = SchedulerFixture(
        *[node(name, labels={zone: place}) for name, place in (("a", "x"), ("b", "x"), ("c", "y"))]
    )
    service: dict[str, Any] = {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}},
    }
    web = {"labels": {"app": "web"}}
    fixture.put(pod("one", **web), "a")
    fixture.listers.put(Service, service)
    assert {fixture.where(pod("two", **web)) for _ in range(5)} == {"c"}


def test_ties_are_broken_by_the_seeded_rng() -> None:
    def chosen() -> list[str]:
        fixture = SchedulerFixture(*[node(name) for name in "abcdefgh"])
        return [fixture.where(pod()) for _ in range(30)]

    assert len(set(chosen())) > 4
    assert chosen() == chosen()


def test_function_scores_are_weighted() -> None:
    def likes_b(info: Any, where: Any) -> int:
        return 100 if where.name == "b" else 0

    fixture = SchedulerFixture(node("a"), node("b"), plugins=(WeightedPlugin(score_by("likes-b", likes_b), 5),))
    assert fixture.where(pod()) == "b"


def test_a_score_out_of_bounds_is_an_error_that_names_the_plugin() -> None:
    fixture = SchedulerFixture(node("a"), node("b"), plugins=(WeightedPlugin(score_by("wild", lambda *_: 101)),))
    with pytest.raises(InvalidScore, match="plugin 'wild' returns an invalid score"):
        fixture.where(pod())
