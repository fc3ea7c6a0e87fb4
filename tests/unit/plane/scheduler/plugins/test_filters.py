from __future__ import annotations

from typing import Any

import pytest
from tests.unit.plane.scheduler.fixture import Json, SchedulerFixture, node, pod

from ostinato.kinds.core_v1 import Namespace

HARD = {"key": "hard", "value": "1", "effect": "NoSchedule"}
SOFT = {"key": "soft", "effect": "PreferNoSchedule"}
GONE = {"key": "gone", "effect": "NoExecute"}


def affinity(*terms: Json) -> Json:
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def named(operator: str, *values: str) -> Json:
    return {"matchFields": [{"key": "metadata.name", "operator": operator, "values": list(values)}]}


def near(key: str, labels: Json | None, **more: Any) -> Json:
    selector = None if labels is None else {"matchLabels": labels}
    return {"topologyKey": key, "labelSelector": selector, **more}


def must(which: str, *terms: Json) -> Json:
    return {which: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


@pytest.mark.parametrize(
    ("tolerations", "fits"),
    [
        ([], {"plain", "soft"}),
        ([{"key": "hard", "operator": "Equal", "value": "1", "effect": "NoSchedule"}], {"plain", "soft", "hard"}),
        ([{"key": "hard", "operator": "Equal", "value": "2"}], {"plain", "soft"}),
        ([{"key": "hard", "value": "1", "effect": "NoExecute"}], {"plain", "soft"}),
        ([{"key": "hard", "operator": "Exists"}], {"plain", "soft", "hard"}),
        ([{"operator": "Exists"}], {"plain", "soft", "hard", "gone", "cordoned"}),
        ([{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], {"plain", "soft", "cordoned"}),
        ([{"key": "hard", "operator": "Gt", "value": "0"}], {"plain", "soft"}),
    ],
)
def test_untolerated_taints_reject_nodes(tolerations: list[Json], fits: set[str]) -> None:
    fixture = SchedulerFixture(
        node("plain"),
        node("soft", taints=[SOFT]),
        node("hard", taints=[HARD]),
        node("gone", taints=[GONE]),
        node("cordoned", unschedulable=True),
    )
    assert fixture.fits(pod(tolerations=tolerations)) == fits


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({}, {"a", "b", "c"}),
        ({"nodeSelector": {"zone": "x"}}, {"a"}),
        ({"nodeSelector": {"zone": "x", "rank": "7"}}, set()),
        ({"affinity": affinity(expression("rank", "Gt", "5"))}, {"b"}),
        ({"affinity": affinity(expression("rank", "Lt", "5"))}, {"a"}),
        ({"affinity": affinity(expression("zone", "NotIn", "x"))}, {"b", "c"}),
        ({"affinity": affinity(expression("zone", "Exists"))}, {"a", "b"}),
        ({"affinity": affinity(expression("zone", "DoesNotExist"))}, {"c"}),
        ({"affinity": affinity(expression("zone", "In", "z"), named("In", "a"))}, {"a"}),
        ({"affinity": affinity(named("NotIn", "a"))}, {"b", "c"}),
        ({"affinity": affinity({**expression("zone", "In", "x"), **named("In", "b")})}, set()),
        ({"affinity": affinity({})}, set()),
        ({"affinity": affinity()}, set()),
        ({"nodeSelector": {"zone": "x"}, "affinity": affinity(expression("zone", "NotIn", "x"))}, set()),
    ],
)
def test_node_selectors_and_affinity_match_labels_and_name(spec: Json, fits: set[str]) -> None:
    fixture = SchedulerFixture(
        node("a", labels={"zone": "x", "rank": "1"}), node("b", labels={"zone": "y", "rank": "7"}), node("c")
    )
    assert fixture.fits(pod(**spec)) == fits


def test_conflicting_node_names_reject_the_pod() -> None:
    both = {
        "matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["a"]},
            {"key": "metadata.name", "operator": "In", "values": ["b"]},
        ]
    }
    fixture = SchedulerFixture(node("a"), node("b"))
    assert fixture.message(pod(affinity=affinity(both))) == (
        "0/2 nodes are available: pod affinity terms conflict. not found"
    )


def test_only_nodes_named_by_affinity_are_checked() -> None:
    fixture = SchedulerFixture(node("a", unschedulable=True), node("b"), node("c"))
    assert fixture.message(pod(affinity=affinity(named("In", "a")))) == (
        "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        "no new claims to deallocate, preemption: 0/3 nodes are available: "
        "3 Preemption is not helpful for scheduling."
    )


@pytest.mark.parametrize(
    ("given", "reasons"),
    [
        ({"cpu": "1"}, []),
        ({"cpu": "1500m"}, ["Insufficient cpu"]),
        ({"memory": "3Gi"}, ["Insufficient memory"]),
        ({"cpu": "3", "memory": "5Gi"}, ["Insufficient cpu", "Insufficient memory"]),
        ({"overhead": {"cpu": "1500m"}}, ["Insufficient cpu"]),
        ({"resources": {"requests": {"cpu": "1500m"}}}, ["Insufficient cpu"]),
        ({"cpu": "1500m", "resources": {"requests": {"cpu": "1"}}}, []),
        ({"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "1500m"}}}]}, ["Insufficient cpu"]),
        (
            {
                "cpu": "600m",
                "initContainers": [
                    {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}}
                ],
            },
            ["Insufficient cpu"],
        ),
    ],
)
def test_requests_must_fit_on_the_node(given: Json, reasons: list[str]) -> None:
    fixture = SchedulerFixture(node("a", cpu="2", memory="4Gi"))
    fixture.put(pod("old", cpu="1", memory="2Gi"), "a")
    assert fixture.reasons(pod(**given)).get("a", []) == reasons


def test_extended_resources_and_storage_are_counted() -> None:
    fixture = SchedulerFixture(node("a", more={"example.com/gpu": "1"}))
    gpu = {"requests": {"example.com/gpu": "1", "ephemeral-storage": "60Gi"}}
    wanted = pod(resources=None)
    wanted["spec"]["containers"][0]["resources"] = gpu
    assert fixture.reasons(wanted) == {}
    fixture.put(wanted, "a")
    assert fixture.reasons(wanted) == {"a": ["Insufficient ephemeral-storage", "Insufficient example.com/gpu"]}


def test_the_pod_capacity_of_a_node_is_respected() -> None:
    fixture = SchedulerFixture(node("a", pods="1"))
    fixture.put(pod("old"), "a")
    assert fixture.reasons(pod()) == {"a": ["Too many pods"]}


@pytest.mark.parametrize(
    ("held", "wanted", "conflict"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 81}, False),
        ({"hostPort": 80, "protocol": "UDP"}, {"hostPort": 80}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 80, "hostIP": "10.0.0.1"}, True),
        ({"containerPort": 80}, {"containerPort": 80}, False),
    ],
)
def test_host_ports_conflict(held: Json, wanted: Json, conflict: bool) -> None:
    fixture = SchedulerFixture(node("a"), node("b"))

    def with_port(port: Json) -> Json:
        return pod(containers=[{"name": "app", "ports": [port]}])

    fixture.put(with_port(held), "a")
    assert fixture.fits(with_port(wanted)) == ({"b"} if conflict else {"a", "b"})


def zones() -> SchedulerFixture:
    return SchedulerFixture(
        node("a", labels={"zone": "x"}), node("b", labels={"zone": "x"}), node("c", labels={"zone": "y"}), node("d")
    )


@pytest.mark.parametrize(
    ("term", "fits"),
    [
        (near("kubernetes.io/hostname", {"app": "db"}), {"a"}),
        (near("zone", {"app": "db"}), {"a", "b"}),
        (near("zone", {"app": "other"}), set()),
        (near("zone", None), set()),
        (near("zone", {"app": "db"}, namespaces=["elsewhere"]), set()),
        (near("zone", {"app": "db"}, namespaceSelector={}), {"a", "b"}),
        (near("zone", {"app": "db"}, namespaceSelector={"matchLabels": {"team": "one"}}), {"a", "b"}),
        (near("zone", {"app": "db"}, namespaceSelector={"matchLabels": {"team": "two"}}), set()),
        (near("zone", {}, matchLabelKeys=["app"]), {"a", "b", "c"}),  # no such Pod exists: it is the first
    ],
)
def test_required_pod_affinity(term: Json, fits: set[str]) -> None:
    fixture = zones()
    fixture.listers.put(Namespace, {"metadata": {"name": "default", "labels": {"team": "one"}}})
    fixture.put(pod("db", labels={"app": "db"}), "a")
    assert fixture.fits(pod(labels={"app": "web"}, affinity=must("podAffinity", term))) == fits


def test_a_pod_with_affinity_to_itself_may_be_the_first_but_needs_the_topology_label() -> None:
    fixture = zones()
    wanted = pod(labels={"app": "web"}, affinity=must("podAffinity", near("zone", {"app": "web"})))
    assert fixture.fits(wanted) == {"a", "b", "c"}
    fixture.put(wanted, "c")
    assert fixture.fits(wanted) == {"c"}


def test_all_affinity_terms_must_match_the_same_pod() -> None:
    fixture = zones()
    fixture.put(pod("one", labels={"app": "db"}), "a")
    fixture.put(pod("two", labels={"tier": "back"}), "a")
    terms = (near("zone", {"app": "db"}), near("zone", {"tier": "back"}))
    assert fixture.fits(pod(affinity=must("podAffinity", *terms))) == set()
    fixture.put(pod("both", labels={"app": "db", "tier": "back"}), "c")
    assert fixture.fits(pod(affinity=must("podAffinity", *terms))) == {"c"}


def test_required_anti_affinity_applies_in_both_directions() -> None:
    fixture = zones()
    far = must("podAntiAffinity", near("zone", {"app": "web"}))
    fixture.put(pod("web", labels={"app": "web"}), "a")
    assert fixture.reasons(pod("new", affinity=far)) == {
        name: ["node(s) didn't match pod anti-affinity rules"] for name in "ab"
    }
    fixture.put(pod("lone", labels={"app": "lone"}, affinity=far), "c")
    assert fixture.reasons(pod("late", labels={"app": "web"})) == {
        "c": ["node(s) didn't satisfy existing pods anti-affinity rules"]
    }
    assert fixture.fits(pod("neither")) == set("abcd")


def test_anti_affinity_of_existing_pods_uses_namespace_selectors() -> None:
    fixture = zones()
    fixture.listers.put(
        Namespace,
        {"metadata": {"name": "default", "labels": {"team": "one"}}},
        {"metadata": {"name": "other", "labels": {"team": "two"}}},
    )
    term = near("zone", {"app": "web"}, namespaceSelector={"matchLabels": {"team": "two"}})
    fixture.put(pod("lone", affinity=must("podAntiAffinity", term)), "a")
    assert fixture.fits(pod("here", labels={"app": "web"})) == set("abcd")
    assert fixture.fits(pod("there", labels={"app": "web"}, namespace="other")) == {"c", "d"}


def test_mismatch_label_keys_exclude_other_values() -> None:
    fixture = zones()
    fixture.put(pod("one", labels={"app": "web", "tenant": "red"}), "a")
    term = near("zone", {"app": "web"}, mismatchLabelKeys=["tenant"])
    assert fixture.fits(pod(labels={"app": "web", "tenant": "blue"}, affinity=must("podAntiAffinity", term))) == {
        "c",
        "d",
    }
    assert fixture.fits(pod(labels={"app": "web", "tenant": "red"}, affinity=must("podAntiAffinity", term))) == set(
        "abcd"
    )


def spread(**constraint: Any) -> Json:
    return {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
        **constraint,
    }


def test_hard_topology_spread_limits_skew() -> None:
    fixture = zones()
    web = pod(labels={"app": "web"}, topologySpreadConstraints=[spread()])
    fixture.put(web, "a")
    assert fixture.reasons(web) == {
        "a": ["node(s) didn't match pod topology spread constraints"],
        "b": ["node(s) didn't match pod topology spread constraints"],
        "d": ["node(s) didn't match pod topology spread constraints (missing required label)"],
    }
    fixture.put(web, "c")
    assert fixture.fits(web) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("constraint", "spec", "fits"),
    [
        ({"maxSkew": 2}, {}, {"a", "b", "c"}),
        ({"minDomains": 3}, {}, {"c"}),
        ({"minDomains": 3, "maxSkew": 2}, {}, {"a", "b", "c"}),
        ({"labelSelector": {"matchLabels": {"app": "other"}}}, {}, {"a", "b", "c"}),
        ({"matchLabelKeys": ["revision"]}, {}, {"a", "b", "c"}),
        ({}, {"nodeSelector": {"zone": "x"}}, {"a", "b"}),
        ({"nodeAffinityPolicy": "Ignore"}, {"nodeSelector": {"zone": "x"}}, set()),
        ({"topologyKey": "kubernetes.io/hostname"}, {}, {"b", "c", "d"}),
    ],
)
def test_pods_counted_by_topology_spread(constraint: Json, spec: Json, fits: set[str]) -> None:
    fixture = zones()
    fixture.put(pod("old", labels={"app": "web", "revision": "1"}), "a")
    labels = {"app": "web", "revision": "2"}
    assert fixture.fits(pod(labels=labels, topologySpreadConstraints=[spread(**constraint)], **spec)) == fits


def test_topology_spread_honours_node_taints_policy_and_ignores_terminating_pods() -> None:
    fixture = SchedulerFixture(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}, taints=[HARD]))
    fixture.put(pod("old", labels={"app": "web"}), "a")
    web = {"labels": {"app": "web"}}
    assert fixture.fits(pod(**web, topologySpreadConstraints=[spread()])) == set()
    assert fixture.fits(pod(**web, topologySpreadConstraints=[spread(nodeTaintsPolicy="Honor")])) == {"a"}
    terminating = pod("going", **web)
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    other = SchedulerFixture(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}))
    other.put(terminating, "a")
    assert other.fits(pod(**web, topologySpreadConstraints=[spread()])) == {"a", "b"}


def test_negative_namespace_selectors_are_resolved() -> None:
    fixture = zones()
    fixture.listers.put(
        Namespace,
        {"metadata": {"name": "default", "labels": {"team": "one"}}},
        {"metadata": {"name": "free", "labels": {}}},
    )
    fixture.put(pod("db", labels={"app": "db"}), "a")
    fixture.put(pod("db", labels={"app": "db"}, namespace="free"), "c")
    lacking = {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}
    term = near("zone", {"app": "db"}, namespaceSelector=lacking)
    assert fixture.fits(pod(affinity=must("podAffinity", term))) == {"c"}
