"""Readiness of objects, a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.stage.kinds import widget

from ostinato.api.meta import LabelSelector, ObjectMeta
from ostinato.controllers import Readiness, readiness_check, readiness_of, unregister_readiness_check
from ostinato.kinds.apps_v1 import Deployment, DeploymentSpec, DeploymentStatus
from ostinato.kinds.core_v1 import PodSpec, PodTemplateSpec

Json = dict[str, Any]


def condition(kind: str, status: str = "True", **given: str) -> Json:
    return {"type": kind, "status": status, **given}


def obj(kind: str, status: Json | None = None, spec: Json | None = None, **metadata: Any) -> Json:
    group, _, name = kind.rpartition("/")
    api_version = {"": "v1", "apps": "apps/v1", "batch": "batch/v1", "policy": "policy/v1"}.get(group, f"{group}/v1")
    found: Json = {"apiVersion": api_version, "kind": name, "metadata": {"name": "a", **metadata}}
    if spec is not None:
        found["spec"] = spec
    if status is not None:
        found["status"] = status
    return found


CRD = "apiextensions.k8s.io/CustomResourceDefinition"
UP = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3}
DAEMONS = {
    "observedGeneration": 1,
    "desiredNumberScheduled": 2,
    "currentNumberScheduled": 2,
    "updatedNumberScheduled": 2,
    "numberAvailable": 2,
    "numberReady": 2,
}
ROLLED = {**UP, "currentRevision": "a", "updateRevision": "a"}
ROLLING = {**UP, "currentRevision": "a", "updateRevision": "b", "updatedReplicas": 1}

API_SERVICE = "apiregistration.k8s.io/APIService"

CASES: list[tuple[Json, str]] = [
    (obj(API_SERVICE), "InProgress: not available yet"),
    (obj(API_SERVICE, {"conditions": [condition("Available", "False", message="down")]}), "InProgress: down"),
    (obj(API_SERVICE, {"conditions": [condition("Available")]}), "Current: desired state reached"),
    (obj("Service", {}, {"type": "LoadBalancer", "externalIPs": ["192.0.2.1"]}), "Current: desired state reached"),
    (obj("ConfigMap"), "Current: desired state reached"),
    (obj("ConfigMap", deletionTimestamp="2026-01-01T00:00:00Z"), "Terminating: being deleted"),
    (
        obj("example.dev/Widget", {"observedGeneration": 1}, generation=2),
        "InProgress: generation 2 is not observed yet; observedGeneration is 1",
    ),
    (obj("example.dev/Widget", {"observedGeneration": 2}, generation=2), "Current: desired state reached"),
    (obj("example.dev/Widget", {"conditions": [condition("Ready", "False", message="no")]}), "InProgress: no"),
    (obj("example.dev/Widget", {"conditions": [condition("Ready", "Unknown")]}), "InProgress: Ready is Unknown"),
    (obj("example.dev/Widget", {"conditions": [condition("Ready")]}), "Current: desired state reached"),
    (obj("example.dev/Widget", {"conditions": [condition("Stalled", reason="Bad")]}), "Failed: Bad"),
    (obj("example.dev/Widget", {"conditions": [condition("Reconciling", message="soon")]}), "InProgress: soon"),
    (obj("example.dev/Widget", {"conditions": ["odd", {"type": 3}, None]}), "Current: desired state reached"),
    ({"apiVersion": "v1", "kind": "Pod", "metadata": 3, "status": "odd"}, "InProgress: not ready yet"),
    (obj("apps/Deployment", UP, {"replicas": 3}), "Current: desired state reached"),
    (obj("apps/Deployment", {}, {}), "InProgress: 0 of 1 replicas are updated"),
    (obj("apps/Deployment", {}, {"replicas": 0}), "Current: desired state reached"),
    (
        obj("apps/Deployment", {**UP, "availableReplicas": 2}, {"replicas": 3}),
        "InProgress: 2 of 3 replicas are available",
    ),
    (
        obj("apps/Deployment", {**UP, "replicas": 4}, {"replicas": 3}),
        "InProgress: 1 old replicas are not terminated yet",
    ),
    (
        obj("apps/Deployment", {"conditions": [condition("Progressing", "False", message="too long")]}, {}),
        "Failed: too long",
    ),
    (obj("apps/Deployment", None, {"replicas": 0}, generation=1), "InProgress: not observed yet"),
    (obj("apps/StatefulSet", None, {"replicas": 0}, generation=1), "InProgress: not observed yet"),
    (obj("apps/ReplicaSet", UP, {"replicas": 3}), "Current: desired state reached"),
    (obj("apps/ReplicaSet", UP, {"replicas": 4}), "InProgress: 3 of 4 replicas are available"),
    (obj("apps/ReplicaSet", UP, {"replicas": 2}), "InProgress: 1 surplus replicas are not terminated yet"),
    (obj("apps/ReplicaSet", {"conditions": [condition("ReplicaFailure", reason="Quota")]}, {}), "Failed: Quota"),
    (obj("ReplicationController", UP, {"replicas": 3}), "Current: desired state reached"),
    (obj("apps/StatefulSet", ROLLED, {"replicas": 3}), "Current: desired state reached"),
    (obj("apps/StatefulSet", {}, {"replicas": 3}), "InProgress: 0 of 3 replicas are ready"),
    (obj("apps/StatefulSet", ROLLING, {"replicas": 3}), "InProgress: 1 of 3 replicas are updated"),
    (
        obj("apps/StatefulSet", {}, {"replicas": 3, "updateStrategy": {"type": "OnDelete"}}),
        "Current: desired state reached",
    ),
    (
        obj("apps/StatefulSet", ROLLING, {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}}),
        "Current: desired state reached",
    ),
    (
        obj("apps/StatefulSet", ROLLING, {"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 1}}}),
        "InProgress: 1 replicas are updated",
    ),
    (obj("apps/DaemonSet", DAEMONS), "Current: desired state reached"),
    (obj("apps/DaemonSet", {**DAEMONS, "numberAvailable": 1}), "InProgress: 1 of 2 Pods are available"),
    (obj("apps/DaemonSet", {}), "InProgress: not observed yet"),
    (obj("Pod", {"phase": "Running", "conditions": [condition("Ready")]}), "Current: desired state reached"),
    (obj("Pod", {"phase": "Succeeded"}), "Current: succeeded"),
    (obj("Pod", {"phase": "Failed", "reason": "Evicted"}), "Failed: Evicted"),
    (obj("Pod", {"phase": "Failed"}), "Failed: failed"),
    (
        obj("Pod", {"phase": "Pending", "conditions": [condition("Ready", "False", reason="ContainersNotReady")]}),
        "InProgress: ContainersNotReady",
    ),
    (
        obj("Pod", {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
        "Failed: container c: CrashLoopBackOff",
    ),
    (obj("batch/Job", {"conditions": [condition("Complete")]}), "Current: complete"),
    (obj("batch/Job", {"conditions": [condition("Failed", message="no")]}), "Failed: no"),
    (obj("batch/Job", {}, {"suspend": True}), "Current: suspended"),
    (obj("batch/Job", {}), "InProgress: not started yet"),
    (obj("batch/Job", {"startTime": "x"}), "Current: running"),
    (obj("PersistentVolumeClaim", {"phase": "Bound"}), "Current: desired state reached"),
    (obj("PersistentVolumeClaim", {"phase": "Pending"}), "InProgress: not bound"),
    (obj("Service", {}, {"type": "ClusterIP"}), "Current: desired state reached"),
    (obj("Service", {}, {"type": "LoadBalancer"}), "InProgress: no load balancer ingress yet"),
    (
        obj("Service", {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}, {"type": "LoadBalancer"}),
        "Current: desired state reached",
    ),
    (obj("Namespace", {"phase": "Active"}), "Current: desired state reached"),
    (obj("Namespace", {"phase": "Terminating"}), "InProgress: phase is Terminating"),
    (obj(CRD, {"conditions": [condition("Established")]}), "Current: desired state reached"),
    (obj(CRD, {"conditions": [condition("NamesAccepted", "False", message="taken")]}), "Failed: taken"),
    (
        obj(CRD, {"conditions": [condition("Established", "False", reason="Installing")]}),
        "InProgress: not established",
    ),
    (obj(CRD, {"conditions": [condition("Established", "False", reason="Broken")]}), "Failed: Broken"),
    (obj(CRD, {}), "InProgress: not established"),
    (
        obj("policy/PodDisruptionBudget", {"currentHealthy": 1, "desiredHealthy": 2}),
        "InProgress: 1 of 2 Pods are healthy",
    ),
    (obj("policy/PodDisruptionBudget", {"currentHealthy": 2, "desiredHealthy": 2}), "Current: desired state reached"),
]


@pytest.mark.parametrize(("document", "answer"), CASES)
def test_the_readiness_of_an_object(document: Json, answer: str) -> None:
    found = readiness_of(document)
    assert str(found) == answer
    assert bool(found) is answer.startswith("Current")


def test_typed_objects_are_judged_the_same() -> None:
    spec = DeploymentSpec(replicas=1, selector=LabelSelector(), template=PodTemplateSpec(spec=PodSpec(containers=[])))
    found = Deployment(metadata=ObjectMeta(name="a"), spec=spec, status=DeploymentStatus(updated_replicas=1))
    assert readiness_of(found).message == "0 of 1 replicas are available"
    assert readiness_of(widget())


@pytest.fixture
def database() -> Iterator[list[Any]]:
    """Answers of a registered check, the last for ever."""
    answers: list[Any] = []

    @readiness_check("example.dev", "Database")
    def check(_: Json) -> Any:
        return answers[0] if len(answers) == 1 else answers.pop(0)

    yield answers
    unregister_readiness_check("example.dev", "Database")


def test_a_registered_check_replaces_the_rules(database: list[Any]) -> None:
    unready = obj("example.dev/Database", {"conditions": [condition("Ready", "False", message="no")]})
    database += [True, False, Readiness("Failed", "disk"), None]
    answers = [str(readiness_of(unready)) for _ in range(4)]
    assert answers == ["Current: desired state reached", "InProgress: not ready yet", "Failed: disk", "InProgress: no"]


def test_an_object_being_deleted_is_terminating_whatever_its_check_returns(database: list[Any]) -> None:
    database.append(True)
    gone = obj("example.dev/Database", deletionTimestamp="2026-01-01T00:00:00Z")
    assert readiness_of(gone).state == "Terminating"


def test_a_kind_has_one_check(database: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"Database.example.dev has the check .*check"):
        readiness_check("example.dev", "Database")(lambda _: True)
    unregister_readiness_check("example.dev", "Database")
    readiness_check("example.dev", "Database")(lambda _: False)
    assert not readiness_of(obj("example.dev/Database"))
    assert database == []


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        ({"startTime": "2026-01-01T00:00:00Z"}, "InProgress: running"),
        ({"conditions": [condition("Complete")]}, "Current: complete"),
        ({"conditions": [condition("Failed", message="deadline")]}, "Failed: deadline"),
    ],
)
def test_a_job_must_have_completed_if_asked_for(status: Json, answer: str) -> None:
    assert str(readiness_of(obj("batch/Job", status), complete=True)) == answer
