from __future__ import annotations

from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.api.gvk import NamespacedName
from ostinato.kinds.apps_v1 import DaemonSet
from ostinato.plane.controllers.workloads.daemonset.backoff import FailureBackoff
from ostinato.plane.controllers.workloads.daemonset.placement import NodeFit, Placement
from ostinato.plane.controllers.workloads.daemonset.pods import DaemonPod
from ostinato.plane.controllers.workloads.daemonset.rollout import (
    Changes,
    PodChecks,
    max_surge,
    max_unavailable,
    needed_on_node,
    replacement_changes,
    surge_changes,
)
from ostinato.plane.placement.taints import Taint
from ostinato.world import Simulation


def pod(text: str) -> DaemonPod:
    """Build a Pod from words: its name, and `new`, `ready`, `going`; missing words are False."""
    name, *words = text.split()
    return DaemonPod(
        key=NamespacedName("default", name),
        uid=name,
        labels={"new": str("new" in words)},
        created="",
        node="n",
        is_bound=True,
        is_terminating="going" in words,
        phase="Running",
        ready_since=None,
        is_ready="ready" in words,
    )


JUDGE = PodChecks(is_updated=lambda each: each.labels["new"] == "True", is_available=lambda each: each.is_ready)


def told(work: Changes) -> tuple[list[str], list[str]]:
    return work.nodes, [each.key.name for each in work.pods]


@pytest.mark.parametrize(
    ("fit", "pods", "surging", "expected"),
    [
        (NodeFit.SHOULD_RUN, None, False, (["n"], [])),
        (NodeFit.MAY_CONTINUE, None, False, ([], [])),
        (NodeFit.MUST_LEAVE, None, False, ([], [])),
        (NodeFit.SHOULD_RUN, ["a"], False, ([], [])),
        (NodeFit.SHOULD_RUN, ["a going"], False, ([], [])),  # its termination is awaited
        (NodeFit.SHOULD_RUN, ["a going"], True, (["n"], [])),
        (NodeFit.MAY_CONTINUE, ["a going"], True, ([], [])),
        (NodeFit.SHOULD_RUN, ["b", "a", "c"], False, ([], ["b", "c"])),
        (NodeFit.MUST_LEAVE, ["a", "b going"], False, ([], ["a"])),
        (NodeFit.SHOULD_RUN, ["a ready", "b new"], True, ([], [])),  # the old one is kept until the new one exists
        (NodeFit.SHOULD_RUN, ["a ready", "b new ready"], True, ([], ["a"])),
        (NodeFit.SHOULD_RUN, ["a", "b new"], True, ([], ["a"])),
        (NodeFit.SHOULD_RUN, ["a ready", "b ready", "c new"], True, ([], ["b"])),
    ],
)
def test_changes_needed_on_a_node(
    fit: NodeFit, pods: list[str] | None, expected: tuple[list[str], list[str]], *, surging: bool
) -> None:
    found = None if pods is None else [pod(each) for each in pods]
    assert told(needed_on_node("n", fit, found, JUDGE, surging=surging)) == expected


def placed(**nodes: list[str]) -> dict[str, list[DaemonPod]]:
    return {name: [pod(each) for each in pods] for name, pods in nodes.items()}


@pytest.mark.parametrize(
    ("on", "allowed", "expected"),
    [
        (placed(x=["a ready"], y=["b ready"], z=["c ready"]), 1, ["a"]),
        (placed(x=["a ready"], y=["b ready"], z=["c ready"]), 2, ["a", "b"]),
        (placed(x=["a ready"], y=["b new"]), 1, []),
        (placed(x=["a ready"], y=["b new ready"]), 1, ["a"]),
        (placed(x=["a ready"], y=["b"]), 1, ["b"]),  # not available anyway
        (placed(x=["a ready"], y=[]), 1, []),
        (placed(x=["a ready"], y=["b going"]), 1, []),
        (placed(x=["a ready"], y=["b ready", "c ready"]), 1, []),
        (placed(x=["a new ready"], y=["b new ready"]), 1, []),
    ],
)
def test_max_unavailable_limits_deleted_old_pods(
    on: dict[str, list[DaemonPod]], allowed: int, expected: list[str]
) -> None:
    assert told(replacement_changes(on, JUDGE, allowed)) == ([], expected)


@pytest.mark.parametrize(
    ("on", "allowed", "expected"),
    [
        (placed(x=["a ready"], y=["b ready"]), 1, (["x"], [])),
        (placed(x=["a ready"], y=["b ready"]), 2, (["x", "y"], [])),
        (placed(x=["a ready", "c new"], y=["b ready"]), 1, ([], [])),
        (placed(x=["a ready", "c new ready"], y=["b ready"]), 1, (["y"], ["a"])),
        (placed(x=["a"], y=["b ready"]), 1, (["x", "y"], [])),  # without available Pods all may be created
        (placed(x=["a ready"], away=["b ready"]), 1, (["x"], ["b"])),
        (placed(x=[], away=["b ready"]), 1, ([], [])),  # the only available one
        (placed(away=["b"]), 1, ([], ["b"])),
    ],
)
def test_max_surge_limits_additional_new_pods(
    on: dict[str, list[DaemonPod]], allowed: int, expected: tuple[list[str], list[str]]
) -> None:
    fits = {"x": NodeFit.SHOULD_RUN, "y": NodeFit.SHOULD_RUN, "away": NodeFit.MAY_CONTINUE}
    desired = sum(fits[node] is NodeFit.SHOULD_RUN for node in on)
    assert told(surge_changes(on, fits, JUDGE, allowed, desired)) == expected


def daemonset(*, strategy: dict[str, Any] | None = None, **pod_spec: Any) -> DaemonSet:
    template = {"spec": {"containers": [], **pod_spec}}
    spec = {"selector": {}, "template": template, "updateStrategy": strategy or {"type": "RollingUpdate"}}
    return from_dict(DaemonSet, {"metadata": {"name": "agent"}, "spec": spec})


@pytest.mark.parametrize(
    ("rolling", "expected"),
    [
        ({"maxUnavailable": 1}, (0, 1)),
        ({"maxUnavailable": "25%"}, (0, 3)),
        ({"maxSurge": "1%", "maxUnavailable": 0}, (1, 0)),
        ({"maxSurge": 3, "maxUnavailable": 0}, (3, 0)),
    ],
)
def test_percentages_refer_to_nodes_and_are_rounded_up(rolling: dict[str, Any], expected: tuple[int, int]) -> None:
    owner = daemonset(strategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    assert (max_surge(owner, 10), max_unavailable(owner, 10)) == expected
    assert max_surge(daemonset(strategy={"type": "OnDelete"}), 10) == 0


def _required(*expressions: dict[str, Any]) -> dict[str, Any]:
    terms = [{"matchExpressions": list(expressions)}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("spec", "taints", "expected"),
    [
        ({}, [], NodeFit.SHOULD_RUN),
        ({"nodeName": "n"}, [], NodeFit.SHOULD_RUN),
        ({"nodeName": "m"}, [], NodeFit.MUST_LEAVE),
        ({"nodeSelector": {"zone": "1"}}, [], NodeFit.SHOULD_RUN),
        ({"nodeSelector": {"zone": "2"}}, [], NodeFit.MUST_LEAVE),
        ({"affinity": _required({"key": "zone", "operator": "In", "values": ["1", "2"]})}, [], NodeFit.SHOULD_RUN),
        ({"affinity": _required({"key": "zone", "operator": "Gt", "values": ["1"]})}, [], NodeFit.MUST_LEAVE),
        ({}, [("x", "y", "NoSchedule")], NodeFit.MAY_CONTINUE),
        ({}, [("x", "y", "PreferNoSchedule")], NodeFit.SHOULD_RUN),
        ({}, [("x", "y", "NoExecute")], NodeFit.MUST_LEAVE),
        ({}, [("node.kubernetes.io/unreachable", "", "NoExecute")], NodeFit.SHOULD_RUN),
        ({}, [("node.kubernetes.io/unreachable", "", "NoSchedule")], NodeFit.MAY_CONTINUE),
        ({}, [("node.kubernetes.io/network-unavailable", "", "NoSchedule")], NodeFit.MAY_CONTINUE),
        ({"hostNetwork": True}, [("node.kubernetes.io/network-unavailable", "", "NoSchedule")], NodeFit.SHOULD_RUN),
        ({"tolerations": [{"operator": "Exists"}]}, [("x", "y", "NoExecute")], NodeFit.SHOULD_RUN),
        ({"tolerations": [{"key": "x", "value": "z"}]}, [("x", "y", "NoSchedule")], NodeFit.MAY_CONTINUE),
    ],
)
def test_eligible_nodes(spec: dict[str, Any], taints: list[tuple[str, str, str]], expected: NodeFit) -> None:
    found = [Taint(key=key, value=value, effect=effect) for key, value, effect in taints]
    assert Placement(daemonset(**spec)).fit("n", {"zone": "1"}, found) is expected


def test_failures_on_a_node_back_off_exponentially_and_expire() -> None:
    world = Simulation(seed=1)

    async def play() -> None:
        clock = world.clock
        failures = FailureBackoff(clock)
        assert failures.wait("n") == 0.0
        assert failures.wait("n") == 1.0
        assert failures.wait("m") == 0.0
        waits = []
        for _ in range(12):
            wait = failures.wait("n")
            waits.append(wait)
            await clock.sleep(wait)
            assert failures.wait("n") == 0.0
        assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 900.0, 900.0]
        await clock.sleep(1801)
        assert failures.wait("n") == 0.0
        assert failures.wait("n") == 1.0

    world.run(play())
