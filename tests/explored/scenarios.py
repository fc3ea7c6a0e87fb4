"""Scenarios of the control plane: what users do with the built-in kinds, and the controllers that this concerns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ostinato.testing.explore import Step, create, delete, edit, patch, wait
from ostinato.testing.explore.faults.catalogue import KINDS

Json = dict[str, Any]

# Where a Pod runs, and its address: any node and any free address will do.
PLACES = (
    "Pod:spec.nodeName",
    *(f"Pod:status.{field}" for field in ("podIP", "podIPs", "hostIP", "hostIPs")),
    *(f"EndpointSlice:endpoints.{field}" for field in ("addresses", "nodeName")),
    *(f"Endpoints:subsets.addresses.{field}" for field in ("ip", "nodeName")),
)


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """
    - `controllers`: those that run, besides the scheduler and the nodes. Without the garbage collector, which
      watches all kinds, a simple one of the world does its work.
    - `steps`: what users do.
    - `given`: objects that exist before.
    - `free`: what may differ from the run without faults.
    - `without`: kinds of faults after which Kubernetes has another state, too.
    """

    controllers: Sequence[str]
    steps: Sequence[Step]
    given: Sequence[Json] = ()
    free: Sequence[str] = ()
    without: Sequence[str] = ()


def _meta(name: str, **more: Any) -> Json:
    return {"name": name, **more}


def _pods(app: str, **spec: Any) -> Json:
    containers = [{"name": "main", "image": "nginx", "resources": {"requests": {"cpu": "100m"}}}]
    return {"metadata": {"labels": {"app": app}}, "spec": {"containers": containers, **spec}}


def _workload(kind: str, **spec: Any) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    whole = {"selector": selector, "template": _pods("web"), **spec}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": _meta("web"), "spec": whole}


_DEPLOYMENT = _workload("Deployment", replicas=2)
# Of the same name with another template: with the same one, its ReplicaSet would have the name of its predecessor's, if
# the collector is late, which is counted as a collision, as in kube-controller-manager.
_NEXT_DEPLOYMENT = _workload("Deployment", replicas=2, template=_pods("web", terminationGracePeriodSeconds=5))
# Without a history: templates that were replaced before the controller saw them have no ReplicaSet.
_ROLLED_DEPLOYMENT = _workload("Deployment", replicas=2, revisionHistoryLimit=0)
_STATEFUL_SET = _workload("StatefulSet", replicas=2, serviceName="web")
_DAEMON_SET = _workload("DaemonSet")
_REPLICA_SET = _workload("ReplicaSet", replicas=2)
_JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": _meta("sum"),
    "spec": {"completions": 3, "parallelism": 2, "template": _pods("sum", restartPolicy="Never")},
}
_FINALIZED_JOB = {**_JOB, "metadata": _meta("sum", finalizers=["foregroundDeletion"])}
_CRON_JOB: Json = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": _meta("nightly"),
    "spec": {
        "suspend": True,
        "schedule": "30 0 * * *",
        "jobTemplate": {"spec": {"template": _pods("nightly", restartPolicy="Never")}},
    },
}
# Not suspended at the end: whether there is a Job would depend on when that is. The wait ends far from the next report
# of a node's status, one in 300 s, which a pause delays: it would be a write while nothing is left to do.
_SCHEDULED = (create(_CRON_JOB), edit(_CRON_JOB, suspend=False), wait(2000.0), delete(_CRON_JOB))
_SERVICE: Json = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": _meta("web"),
    "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
}
_BUDGET: Json = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": _meta("web"),
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}
_QUOTA: Json = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": _meta("small"),
    "spec": {"hard": {"pods": "3", "configmaps": "5"}},
}
_NAMESPACE: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": _meta("shop")}
_AUTOSCALER: Json = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": _meta("web"),
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 3,
        "maxReplicas": 4,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}],
    },
}
_AUTOSCALER["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] = 50

# Templates that were replaced before the controller saw them, or whose revision was deleted, have none.
_HISTORY = ("ControllerRevision",)

# A deleted Pod of a Job counts as failed; a deleted Job of a CronJob has been run.
_DELETED = ("child-deleted",)

# Set the clocks of all processes.
_CLOCKS = ("clock-forward", "clock-back", "midnight")

_GARBAGE = "garbage-collector-controller"
_OF_DEPLOYMENTS = ("deployment-controller", "replicaset-controller")


def _config_map(name: str, **metadata: Any) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta(name, **metadata), "data": {"a": "b"}}


def _image(workload: Json, image: str) -> Step:
    template = _pods(workload["spec"]["template"]["metadata"]["labels"]["app"])
    template["spec"]["containers"][0]["image"] = image
    return patch(workload, {"spec": {"template": template}})


SCENARIOS: dict[str, Scenario] = {
    "deployment": Scenario(
        controllers=(*_OF_DEPLOYMENTS, _GARBAGE),
        steps=[create(_DEPLOYMENT), edit(_DEPLOYMENT, replicas=3), delete(_DEPLOYMENT), create(_NEXT_DEPLOYMENT)],
    ),
    "rollout": Scenario(
        controllers=_OF_DEPLOYMENTS,
        # How many templates the controller has seen.
        free=[f"{kind}:metadata.annotations" for kind in ("Deployment", "ReplicaSet")],
        steps=[
            create(_ROLLED_DEPLOYMENT),
            _image(_ROLLED_DEPLOYMENT, "nginx:2"),
            _image(_ROLLED_DEPLOYMENT, "nginx"),
            delete(_ROLLED_DEPLOYMENT),
        ],
    ),
    "replicaset": Scenario(
        controllers=("replicaset-controller",),
        steps=[create(_REPLICA_SET), edit(_REPLICA_SET, replicas=1), delete(_REPLICA_SET)],
    ),
    "statefulset": Scenario(
        controllers=("statefulset-controller",),
        free=_HISTORY,
        steps=[
            create(_STATEFUL_SET),
            edit(_STATEFUL_SET, replicas=3),
            _image(_STATEFUL_SET, "nginx:2"),
            edit(_STATEFUL_SET, replicas=1),
            delete(_STATEFUL_SET),
        ],
    ),
    "daemonset": Scenario(
        controllers=("daemonset-controller",),
        free=_HISTORY,
        steps=[create(_DAEMON_SET), _image(_DAEMON_SET, "nginx:2"), delete(_DAEMON_SET)],
    ),
    "job": Scenario(
        controllers=("job-controller", _GARBAGE),
        without=_DELETED,
        # With a finalizer, as Pods of a deleted Job are orphans by default: as many as there were then.
        steps=[create(_FINALIZED_JOB), delete(_FINALIZED_JOB), create(_FINALIZED_JOB)],
    ),
    "cronjob": Scenario(
        controllers=("cronjob-controller", "job-controller"),
        # Which Jobs there are depends on the clock: that has a scenario of its own.
        without=(*_DELETED, *_CLOCKS),
        steps=_SCHEDULED,
    ),
    "clock": Scenario(
        controllers=("cronjob-controller", "job-controller"),
        without=tuple(kind for kind in KINDS if kind not in _CLOCKS),
        free=["Job", "Pod", "CronJob:status"],
        steps=_SCHEDULED,
    ),
    "service": Scenario(
        controllers=(
            *_OF_DEPLOYMENTS,
            "endpoints-controller",
            "endpointslice-controller",
            "endpointslice-mirroring-controller",
        ),
        # The time of the change that caused the last write: a process knows it of changes that it has seen.
        free=["EndpointSlice:metadata.annotations", "Endpoints:metadata.annotations"],
        steps=[
            create(_SERVICE),
            create(_DEPLOYMENT),
            patch(_SERVICE, {"spec": {"ports": [{"port": 81}]}}),
            delete(_DEPLOYMENT),
            delete(_SERVICE),
        ],
    ),
    "budget": Scenario(
        controllers=("replicaset-controller", "disruption-controller"),
        steps=[create(_BUDGET), create(_REPLICA_SET), edit(_REPLICA_SET, replicas=1), delete(_REPLICA_SET)],
    ),
    "quota": Scenario(
        controllers=("replicaset-controller", "resourcequota-controller"),
        steps=[create(_QUOTA), create(_REPLICA_SET), create(_config_map("one")), delete(_REPLICA_SET)],
    ),
    "autoscaler": Scenario(
        controllers=(*_OF_DEPLOYMENTS, "horizontal-pod-autoscaler-controller"),
        # The Deployment goes first: how far it was scaled before its autoscaler was deleted depends on when that was.
        steps=[create(_DEPLOYMENT), create(_AUTOSCALER), delete(_DEPLOYMENT), delete(_AUTOSCALER)],
        # What it has done last: kube-controller-manager does not repair these after a crash either.
        free=[
            f"HorizontalPodAutoscaler:status.{field}"
            for field in ("currentMetrics", "currentReplicas", "desiredReplicas", "lastScaleTime", "conditions")
        ],
    ),
    "garbage": Scenario(
        controllers=("replicaset-controller", _GARBAGE),
        steps=[
            create(_REPLICA_SET),
            patch(_REPLICA_SET, {"metadata": {"finalizers": ["orphan"]}}),
            delete(_REPLICA_SET),
            create(_REPLICA_SET),
            patch(_REPLICA_SET, {"metadata": {"finalizers": ["foregroundDeletion"]}}),
            delete(_REPLICA_SET),
        ],
    ),
    "namespace": Scenario(
        controllers=("namespace-controller", "serviceaccount-controller", "replicaset-controller", _GARBAGE),
        steps=[
            create(_NAMESPACE),
            create(_config_map("one", namespace="shop")),
            create({**_REPLICA_SET, "metadata": _meta("web", namespace="shop")}),
            delete(_NAMESPACE),
            create(_NAMESPACE),
        ],
    ),
}
