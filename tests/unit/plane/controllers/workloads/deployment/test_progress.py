from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ostinato.api.codec import from_dict
from ostinato.api.time import Time
from ostinato.kinds.apps_v1 import Deployment, DeploymentStatus, ReplicaSet
from ostinato.plane.controllers.workloads.deployment import progress

THEN = Time.parse("2026-01-01T12:00:00Z")
NOW = Time.parse("2026-01-01T12:00:30Z")


def deployment(replicas: int = 3, deadline: int | None = 60) -> Deployment:
    spec: dict[str, Any] = {
        "replicas": replicas,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {}, "spec": {"containers": []}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        "progressDeadlineSeconds": deadline,
    }
    return from_dict(Deployment, {"metadata": {"name": "web", "generation": 2}, "spec": spec})


def replica_set(name: str, replicas: int, available: int | None = None, failure: str = "", **status: Any) -> ReplicaSet:
    conditions = []
    if failure:
        conditions = [{"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failure}]
    told = {
        "replicas": replicas,
        "readyReplicas": replicas,
        "availableReplicas": replicas if available is None else available,
        "observedGeneration": 1,
        "terminatingReplicas": 0,
        "conditions": conditions,
        **status,
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}}
    return from_dict(ReplicaSet, {"metadata": {"name": name}, "spec": spec, "status": told})


def before(reason: str = "", value: str = "True", **counts: int) -> DeploymentStatus:
    status = DeploymentStatus(**counts)  # type: ignore[arg-type]  # counts are numbers
    if reason:
        progress.set_condition(status, progress.condition(progress.PROGRESSING, value, reason, "so it was", THEN))
    return status


def told(status: DeploymentStatus, kind: str = progress.PROGRESSING) -> tuple[str, str]:
    found = progress.get_condition(status, kind)
    return ("", "") if found is None else (found.status, found.reason or "")


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    status = before(progress.CREATED)
    progress.set_condition(status, progress.condition(progress.PROGRESSING, "True", progress.CREATED, "again", NOW))
    [same] = status.conditions
    assert (same.message, same.last_update_time) == ("so it was", THEN)
    progress.set_condition(status, progress.condition(progress.PROGRESSING, "True", progress.COMPLETE, "done", NOW))
    [changed] = status.conditions
    assert (changed.reason, changed.last_update_time, changed.last_transition_time) == (progress.COMPLETE, NOW, THEN)
    progress.set_condition(status, progress.condition(progress.PROGRESSING, "False", progress.TIMED_OUT, "late", NOW))
    [turned] = status.conditions
    assert turned.last_transition_time == NOW


@pytest.mark.parametrize(
    ("known", "new", "old", "answer"),
    [
        pytest.param(before(progress.UPDATED), (3, 3), (0, 0), ("True", progress.COMPLETE), id="complete"),
        pytest.param(before(progress.UPDATED), (3, 2), (0, 0), ("True", progress.UPDATED), id="it moves"),
        pytest.param(
            before(progress.CREATED, replicas=3, updated_replicas=1, ready_replicas=3, available_replicas=3),
            (1, 1),
            (2, 2),
            ("True", progress.CREATED),
            id="nothing new",
        ),
        pytest.param(
            before(progress.COMPLETE, replicas=3, updated_replicas=3, ready_replicas=3, available_replicas=3),
            (3, 1),
            (0, 0),
            ("True", progress.COMPLETE),
            id="complete once, complete as long as nothing else is wanted",
        ),
        pytest.param(
            before(progress.TIMED_OUT, "False", replicas=3, updated_replicas=1, available_replicas=2, ready_replicas=3),
            (1, 1),
            (2, 2),
            ("True", progress.UPDATED),
            id="late, and yet it moves",
        ),
    ],
)
def test_progressing_condition_of_a_rollout(
    known: DeploymentStatus, new: tuple[int, int], old: tuple[int, int], answer: tuple[str, str]
) -> None:
    found = progress.with_progress(deployment(), known, replica_set("new", *new), [replica_set("old", *old)], NOW)
    assert told(found) == answer


@pytest.mark.parametrize(("seconds", "late"), [(59, False), (60, False), (60.5, True), (1000, True)])
def test_a_rollout_without_progress_exceeds_its_deadline(seconds: float, late: bool) -> None:
    known = before(progress.UPDATED, replicas=3, updated_replicas=3, ready_replicas=2, available_replicas=2)
    stuck = replica_set("new", 3, 2, readyReplicas=2)
    found = progress.with_progress(deployment(), known, stuck, [], THEN + timedelta(seconds=seconds))
    assert told(found) == (("False", progress.TIMED_OUT) if late else ("True", progress.UPDATED))


def test_time_left_until_the_progress_deadline() -> None:
    assert progress.time_left(deployment(), before(progress.UPDATED), NOW) == 31.0
    assert progress.time_left(deployment(deadline=5), before(progress.UPDATED), NOW) == 1.0
    assert progress.time_left(deployment(), before(progress.TIMED_OUT, "False"), NOW) is None
    assert progress.time_left(deployment(), before(), NOW) is None
    assert progress.time_left(deployment(deadline=2**31 - 1), before(progress.UPDATED), NOW) is None
    done = before(progress.COMPLETE, replicas=3, updated_replicas=3, available_replicas=3, observed_generation=2)
    assert progress.time_left(deployment(), done, NOW) is None


@pytest.mark.parametrize(("count", "answer"), [(3, "True"), (2, "True"), (1, "False")])
def test_available_means_at_most_max_unavailable_are_missing(count: int, answer: str) -> None:
    found = progress.calculate_status(deployment(), before(), replica_set("new", 3, count), [], NOW)
    assert told(found, progress.AVAILABLE)[0] == answer
    assert found.unavailable_replicas == ((3 - count) or None)


def test_the_failure_of_the_new_replica_set_has_precedence() -> None:
    sets = [replica_set("old", 1, failure="old trouble")]
    found = progress.with_progress(deployment(), before(), replica_set("new", 1, failure="new trouble"), sets, NOW)
    failure = progress.get_condition(found, progress.FAILURE)
    assert failure is not None
    assert failure.message == "new trouble"
    found = progress.with_progress(deployment(), found, replica_set("new", 1), [replica_set("old", 1)], NOW)
    assert progress.get_condition(found, progress.FAILURE) is None


def test_terminating_pods_are_summed_if_all_replica_sets_report_them() -> None:
    new, old = replica_set("new", 1, terminatingReplicas=1), replica_set("old", 1, terminatingReplicas=2)
    assert progress.calculate_status(deployment(), before(), new, [old], NOW).terminating_replicas == 3
    silent = replica_set("silent", 1, terminatingReplicas=None)
    assert progress.calculate_status(deployment(), before(), new, [silent], NOW).terminating_replicas is None
    fresh = replica_set("fresh", 1, terminatingReplicas=None, observedGeneration=None)
    assert progress.calculate_status(deployment(), before(), new, [fresh], NOW).terminating_replicas == 1
