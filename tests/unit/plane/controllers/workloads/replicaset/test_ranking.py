from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.plane.controllers.workloads.replicaset.ranking import COST, Candidate, deletion_cost, ranked

NOW = datetime.fromisoformat("2026-01-01T12:00:00+00:00")


def at(seconds_ago: float) -> str:
    return (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    name: str,
    *,
    node: str = "n",
    phase: str = "Running",
    ready: float | None = 100,
    restarts: int = 0,
    sidecar_restarts: int = 0,
    age: float = 1000,
    cost: str = "",
) -> Candidate:
    """`ready` and `age`: seconds ago; `ready` None is not ready."""
    conditions = [] if ready is None else [{"type": "Ready", "status": "True", "lastTransitionTime": at(ready)}]
    document: dict[str, Any] = {
        "metadata": {
            "name": name,
            "uid": name,
            "creationTimestamp": at(age),
            "annotations": {COST: cost} if cost else {},
        },
        "spec": {
            "nodeName": node,
            "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "setup"}],
        },
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "app", "restartCount": restarts}, {"name": "quiet", "restartCount": 0}],
            "initContainerStatuses": [
                {"name": "proxy", "restartCount": sidecar_restarts},
                {"name": "setup", "restartCount": 9},
            ],
        },
    }
    return from_dict(Candidate, document)


def order(*pods: Candidate, related_pods: dict[str, int] | None = None) -> list[str]:
    """Names in deletion order, regardless of the input order."""
    found = {
        tuple(each.metadata.name for each in ranked(given, related_pods or {}, NOW)) for given in (pods, pods[::-1])
    }
    [names] = found
    return list(names)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(
            {"node": "", "phase": "Pending", "ready": None}, {"ready": None, "phase": "Pending"}, id="no node"
        ),
        pytest.param({"phase": "Pending", "ready": None}, {"phase": "Unknown", "ready": None}, id="pending"),
        pytest.param({"phase": "Unknown", "ready": None}, {"ready": None}, id="unknown"),
        pytest.param({"ready": None}, {}, id="not ready"),
        pytest.param({"cost": "-5"}, {}, id="cheaper"),
        pytest.param({"cost": "4", "node": "empty"}, {"cost": "5", "node": "full"}, id="cost before neighbours"),
        pytest.param({"node": "full", "ready": 90_000}, {"node": "empty"}, id="more neighbours"),
        pytest.param({"ready": 10}, {"ready": 10_000, "restarts": 5}, id="ready more recently"),
        pytest.param({"restarts": 3}, {"restarts": 2, "age": 1}, id="more restarts"),
        pytest.param({"sidecar_restarts": 3}, {"sidecar_restarts": 2, "age": 1}, id="more restarts of sidecars"),
        pytest.param({"restarts": 1}, {"sidecar_restarts": 2}, id="containers before sidecars"),
        pytest.param({"age": 10}, {"age": 100_000}, id="younger"),
        pytest.param({"ready": None, "age": 10}, {"ready": None, "age": 100_000}, id="younger, not ready"),
    ],
)
def test_deletion_order_of_two_pods(first: dict[str, Any], second: dict[str, Any]) -> None:
    related_pods = {"full": 5, "empty": 1}
    assert order(pod("z", **first), pod("a", **second), related_pods=related_pods) == ["z", "a"]


def test_pods_of_similar_age_are_ordered_by_uid_and_not_by_restarts() -> None:
    assert order(pod("a", ready=100, restarts=0), pod("b", ready=101, restarts=9)) == ["a", "b"]
    assert order(pod("b", ready=100, restarts=0), pod("a", ready=101, restarts=9)) == ["a", "b"]


def test_a_time_in_the_future_is_the_most_recent() -> None:
    assert order(pod("b", ready=-5), pod("a", ready=1)) == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("100", 100),
        ("-10", -10),
        ("0", 0),
        ("", 0),
        ("+5", 0),
        ("05", 0),
        ("-05", -5),
        ("1e3", 0),
        ("2147483647", 2147483647),
        ("2147483648", 0),
        ("-2147483648", -2147483648),
        ("-2147483649", 0),
        ("9" * 5000, 0),
    ],
)
def test_a_deletion_cost_is_a_plain_number_of_32_bits(text: str, cost: int) -> None:
    assert deletion_cost(pod("a", cost=text)) == cost
