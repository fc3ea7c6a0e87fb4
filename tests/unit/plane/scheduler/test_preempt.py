from __future__ import annotations

import pytest
from tests.unit.plane.scheduler.board import Board, Json, node, pod

from ostinato.kinds.policy_v1 import PodDisruptionBudget
from ostinato.plane.scheduler.framework.runtime import FitError


def victims(board: Board, given: Json) -> tuple[str, list[str]]:
    outcome = board.preempt(given)
    assert outcome.victims is not None, outcome.message
    return outcome.victims.node.name, [each.name for each in outcome.victims.pods]


def put(
    board: Board, where: str, name: str, priority: int = 0, cpu: str = "1", started: str = "", **given: str
) -> None:
    made = pod(name, cpu=cpu, priority=priority, labels={"app": name[:1], **given})
    if started:
        made["status"] = {"startTime": started}
    board.put(made, where)


def big(cpu: str = "2", **spec: object) -> Json:
    return pod("big", cpu=cpu, priority=1000, **spec)


def test_only_pods_of_lower_priority_go_and_no_more_than_needed() -> None:
    board = Board(node("a", cpu="4"))
    put(board, "a", "low", 1)
    put(board, "a", "lower", 0)
    put(board, "a", "higher", 2000)
    put(board, "a", "middle", 5)
    assert victims(board, big(cpu="2")) == ("a", ["low", "lower"])


def test_a_pod_displaces_nobody_of_its_own_priority() -> None:
    board = Board(node("a", cpu="1"))
    put(board, "a", "equal", 1000)
    assert board.message(big(cpu="1")) == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )


def test_a_pod_that_is_too_large_for_every_node_displaces_nobody() -> None:
    board = Board(node("a", cpu="2"), node("b", cpu="4"))
    put(board, "a", "one")
    put(board, "b", "two", 2000)
    put(board, "b", "three")
    assert board.message(big(cpu="4")) == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/2 nodes are available: 1 Insufficient cpu, 1 Preemption is not helpful for scheduling."
    )


def test_a_pod_that_must_never_preempt_does_not() -> None:
    board = Board(node("a", cpu="1"))
    put(board, "a", "low")
    assert board.message(big(cpu="1", preemptionPolicy="Never")) == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "not eligible due to preemptionPolicy=Never."
    )


@pytest.mark.parametrize(
    ("on_a", "on_b"),
    [
        ([("x", 10)], [("y", 5)]),  # the least important of the most important victims
        ([("x", 5), ("x2", 5)], [("y", 5), ("y2", 1)]),  # the smaller sum
        ([("x", 5), ("x2", 1), ("x3", -3)], [("y", 5), ("y2", -2)]),  # fewer
    ],
)
def test_the_node_is_chosen_whose_victims_matter_least(
    on_a: list[tuple[str, int]], on_b: list[tuple[str, int]]
) -> None:
    board = Board(node("a", cpu="6"), node("b", cpu="6"))
    for where, pods in (("a", on_a), ("b", on_b)):
        for name, priority in pods:
            put(board, where, name, priority, cpu=f"{6000 // len(pods)}m")
    assert victims(board, big(cpu="6"))[0] == "b"


def test_of_equals_the_node_is_chosen_whose_victims_began_last() -> None:
    board = Board(node("a", cpu="1"), node("b", cpu="1"))
    put(board, "a", "old", started="2026-01-01T00:00:00Z")
    put(board, "b", "new", started="2026-01-02T00:00:00Z")
    assert victims(board, big(cpu="1")) == ("b", ["new"])


def test_of_equals_on_a_node_those_go_that_began_last() -> None:
    board = Board(node("a", cpu="2"))
    put(board, "a", "new", started="2026-01-02T00:00:00Z")
    put(board, "a", "old", started="2026-01-01T00:00:00Z")
    assert victims(board, big(cpu="1")) == ("a", ["new"])


def budget(name: str, app: str, allowed: int) -> Json:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def test_budgets_are_respected_as_far_as_possible() -> None:
    board = Board(node("a", cpu="1"), node("b", cpu="1"))
    put(board, "a", "guarded", 0)
    put(board, "b", "free", 5)
    board.listers.put(PodDisruptionBudget, budget("g", "g", 0))
    assert victims(board, big(cpu="1")) == ("b", ["free"])
    board.listers.put(PodDisruptionBudget, budget("f", "f", 0))
    assert victims(board, big(cpu="1")) == ("a", ["guarded"])


def test_on_a_node_those_without_a_budget_go_first_though_they_are_more_important() -> None:
    board = Board(node("a", cpu="2"))
    put(board, "a", "guarded", 0)
    put(board, "a", "free", 5)
    board.listers.put(PodDisruptionBudget, budget("g", "g", 0))
    assert victims(board, big(cpu="1")) == ("a", ["free"])


def test_victims_come_in_the_order_of_their_importance_whoever_guards_them() -> None:
    board = Board(node("a", cpu="2"))
    put(board, "a", "guarded", 0)
    put(board, "a", "free", 5)
    board.listers.put(PodDisruptionBudget, budget("g", "g", 0))
    assert victims(board, big(cpu="2")) == ("a", ["free", "guarded"])


def test_a_pod_that_others_keep_out_displaces_them() -> None:
    board = Board(node("a", labels={"zone": "x"}))
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    far = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    board.put(pod("lone", affinity=far), "a")
    assert victims(board, pod("web", labels={"app": "web"}, priority=10)) == ("a", ["lone"])
    board = Board(node("a", labels={"zone": "x"}))
    board.put(pod("web", labels={"app": "web"}), "a")
    assert victims(board, pod("lone", affinity=far, priority=10)) == ("a", ["web"])


def test_a_pod_displaces_others_to_be_spread_evenly() -> None:
    board = Board(node("a", labels={"zone": "x"}), node("b", labels={"zone": "y"}, unschedulable=True))
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = {"labels": {"app": "web"}, "topologySpreadConstraints": [constraint]}
    board.put(pod("low", **web), "a")
    assert victims(board, pod("high", priority=10, **web)) == ("a", ["low"])


def test_a_pod_displaces_the_holder_of_a_port() -> None:
    board = Board(node("a"))
    ports = [{"name": "app", "ports": [{"hostPort": 80}]}]
    board.put(pod("holder", containers=ports), "a")
    board.put(pod("other"), "a")
    assert victims(board, pod("new", containers=ports, priority=10)) == ("a", ["holder"])


def test_room_that_was_made_is_kept_for_the_pod_it_was_made_for() -> None:
    board = Board(node("a", cpu="2"))
    waiting = board.read(pod("waiting", cpu="2", priority=10))
    board.nominator.add(waiting, "a")
    assert board.where(pod("lower", cpu="1", priority=1)) == ""
    assert board.where(pod("higher", cpu="1", priority=20)) == "a"
    found = board.framework.schedule(waiting)
    assert found is not None
    assert not isinstance(found, FitError)


def test_a_pod_waits_while_those_it_displaced_are_going() -> None:
    board = Board(node("a", cpu="1"))
    terminating = pod("going", cpu="1")
    terminating["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    terminating["status"] = {"conditions": [reason]}
    board.put(terminating, "a")
    info = board.read(big(cpu="1"))
    board.nominator.add(info, "a")
    found = board.framework.schedule(info)
    assert isinstance(found, FitError)
    outcome = board.preemption.find(found)
    assert outcome.victims is None
    assert outcome.keeps_nomination
    assert outcome.message.endswith("not eligible due to a terminating pod on the nominated node.")
