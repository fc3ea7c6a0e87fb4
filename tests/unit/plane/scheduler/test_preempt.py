from __future__ import annotations

import pytest
from tests.unit.plane.scheduler.fixture import Json, SchedulerFixture, node, pod

from ostinato.kinds.policy_v1 import PodDisruptionBudget
from ostinato.plane.scheduler.framework.runtime import FitError


def victims(fixture: SchedulerFixture, given: Json) -> tuple[str, list[str]]:
    outcome = fixture.preempt(given)
    assert outcome.victims is not None, outcome.message
    return outcome.victims.node.name, [each.name for each in outcome.victims.pods]


def put(
    fixture: SchedulerFixture, where: str, name: str, priority: int = 0, cpu: str = "1", started: str = "", **given: str
) -> None:
    made = pod(name, cpu=cpu, priority=priority, labels={"app": name[:1], **given})
    if started:
        made["status"] = {"startTime": started}
    fixture.put(made, where)


def big(cpu: str = "2", **spec: object) -> Json:
    return pod("big", cpu=cpu, priority=1000, **spec)


def test_only_the_necessary_pods_of_lower_priority_are_victims() -> None:
    fixture = SchedulerFixture(node("a", cpu="4"))
    put(fixture, "a", "low", 1)
    put(fixture, "a", "lower", 0)
    put(fixture, "a", "higher", 2000)
    put(fixture, "a", "middle", 5)
    assert victims(fixture, big(cpu="2")) == ("a", ["low", "lower"])


def test_pods_of_equal_priority_are_not_preempted() -> None:
    fixture = SchedulerFixture(node("a", cpu="1"))
    put(fixture, "a", "equal", 1000)
    assert fixture.message(big(cpu="1")) == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_pod_too_large_for_every_node_does_not_preempt() -> None:
    fixture = SchedulerFixture(node("a", cpu="2"), node("b", cpu="4"))
    put(fixture, "a", "one")
    put(fixture, "b", "two", 2000)
    put(fixture, "b", "three")
    assert fixture.message(big(cpu="4")) == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/2 nodes are available: 1 Insufficient cpu, 1 Preemption is not helpful for scheduling."
    )


def test_preemption_policy_never() -> None:
    fixture = SchedulerFixture(node("a", cpu="1"))
    put(fixture, "a", "low")
    assert fixture.message(big(cpu="1", preemptionPolicy="Never")) == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "not eligible due to preemptionPolicy=Never."
    )


@pytest.mark.parametrize(
    ("on_a", "on_b"),
    [
        ([("x", 10)], [("y", 5)]),  # lowest highest victim priority
        ([("x", 5), ("x2", 5)], [("y", 5), ("y2", 1)]),  # lowest sum of priorities
        ([("x", 5), ("x2", 1), ("x3", -3)], [("y", 5), ("y2", -2)]),  # fewest victims
    ],
)
def test_the_candidate_with_the_least_important_victims_is_selected(
    on_a: list[tuple[str, int]], on_b: list[tuple[str, int]]
) -> None:
    fixture = SchedulerFixture(node("a", cpu="6"), node("b", cpu="6"))
    for where, pods in (("a", on_a), ("b", on_b)):
        for name, priority in pods:
            put(fixture, where, name, priority, cpu=f"{6000 // len(pods)}m")
    assert victims(fixture, big(cpu="6"))[0] == "b"


def test_of_equal_candidates_the_one_with_the_latest_start_time_is_selected() -> None:
    fixture = SchedulerFixture(node("a", cpu="1"), node("b", cpu="1"))
    put(fixture, "a", "old", started="2026-01-01T00:00:00Z")
    put(fixture, "b", "new", started="2026-01-02T00:00:00Z")
    assert victims(fixture, big(cpu="1")) == ("b", ["new"])


def test_of_equal_pods_the_latest_started_are_victims() -> None:
    fixture = SchedulerFixture(node("a", cpu="2"))
    put(fixture, "a", "new", started="2026-01-02T00:00:00Z")
    put(fixture, "a", "old", started="2026-01-01T00:00:00Z")
    assert victims(fixture, big(cpu="1")) == ("a", ["new"])


def budget(name: str, app: str, allowed: int) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def test_budgets_are_respected_as_far_as_possible() -> None:
    fixture = SchedulerFixture(node("a", cpu="1"), node("b", cpu="1"))
    put(fixture, "a", "guarded", 0)
    put(fixture, "b", "free", 5)
    fixture.listers.put(PodDisruptionBudget, budget("g", "g", 0))
    assert victims(fixture, big(cpu="1")) == ("b", ["free"])
    fixture.listers.put(PodDisruptionBudget, budget("f", "f", 0))
    assert victims(fixture, big(cpu="1")) == ("a", ["guarded"])


def test_pods_without_a_budget_are_preferred_victims() -> None:
    fixture = SchedulerFixture(node("a", cpu="2"))
    put(fixture, "a", "guarded", 0)
    put(fixture, "a", "free", 5)
    fixture.listers.put(PodDisruptionBudget, budget("g", "g", 0))
    assert victims(fixture, big(cpu="1")) == ("a", ["free"])


def test_victims_are_ordered_by_importance() -> None:
    fixture = SchedulerFixture(node("a", cpu="2"))
    put(fixture, "a", "guarded", 0)
    put(fixture, "a", "free", 5)
    fixture.listers.put(PodDisruptionBudget, budget("g", "g", 0))
    assert victims(fixture, big(cpu="2")) == ("a", ["free", "guarded"])


def test_preemption_resolves_anti_affinity() -> None:
    fixture = SchedulerFixture(node("a", labels={"zone": "x"}))
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    far = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    fixture.put(pod("lone", affinity=far), "a")
    assert victims(fixture, pod("web", labels={"app": "web"}, priority=10)) == ("a", ["lone"])
    fixture = SchedulerFixture(node("a", labels={"zone": "x"}))
    fixture.put(pod("web", labels={"app": "web"}), "a")
    assert victims(fixture, pod("lone", affinity=far, priority=10)) == ("a", ["web"])


def test_preemption_resolves_topology_spread() -> None:
    fixture = SchedulerFixture(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}, unschedulable=True))
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = {"labels": {"app": "web"}, "topologySpreadConstraints": [constraint]}
    fixture.put(pod("low", **web), "a")
    assert victims(fixture, pod("high", priority=10, **web)) == ("a", ["low"])


def test_preemption_resolves_host_port_conflicts() -> None:
    fixture = SchedulerFixture(node("a"))
    ports = [{"name": "app", "ports": [{"hostPort": 80}]}]
    fixture.put(pod("holder", containers=ports), "a")
    fixture.put(pod("other"), "a")
    assert victims(fixture, pod("new", containers=ports, priority=10)) == ("a", ["holder"])


def test_nominated_pods_count_for_pods_of_lower_priority() -> None:
    fixture = SchedulerFixture(node("a", cpu="2"))
    waiting = fixture.read(pod("waiting", cpu="2", priority=10))
    fixture.nominator.add(waiting, "a")
    assert fixture.where(pod("lower", cpu="1", priority=1)) == ""
    assert fixture.where(pod("higher", cpu="1", priority=20)) == "a"
    found = fixture.framework.schedule(waiting)
    assert found is not None
    assert not isinstance(found, FitError)


def test_a_pod_does_not_preempt_again_while_its_victims_terminate() -> None:
    fixture = SchedulerFixture(node("a", cpu="1"))
    terminating = pod("going", cpu="1")
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    terminating["status"] = {"conditions": [reason]}
    fixture.put(terminating, "a")
    info = fixture.read(big(cpu="1"))
    fixture.nominator.add(info, "a")
    found = fixture.framework.schedule(info)
    assert isinstance(found, FitError)
    outcome = fixture.preemption.find(found)
    assert outcome.victims is None
    assert outcome.keeps_nomination
    assert outcome.message.endswith("not eligible due to a terminating pod on the nominated node.")
