"""Rows of the kinds that run Pods, and of those that scale and guard them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ostinato.api.gvk import GroupVersion
from ostinato.api.time import Time
from ostinato.server.resources.strategy import Json
from ostinato.server.resources.tables.cells import (
    NONE,
    UNKNOWN,
    UNSET,
    Cells,
    age,
    condition_status,
    container_cells,
    human,
    label_text,
    name_of,
    selector_text,
    since,
)
from ostinato.server.resources.tables.pods import pod


def _parts(obj: Json) -> tuple[Json, Json]:
    return obj.get("spec") or {}, obj.get("status") or {}


def _pod_template(obj: Json, now: datetime) -> list[Any]:  # noqa: ARG001
    template = obj.get("template") or {}
    return [name_of(obj), *container_cells(template), label_text((template.get("metadata") or {}).get("labels"))]


def _replication_controller(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [*_replica_counts(obj, now), *container_cells(spec.get("template") or {}), label_text(spec.get("selector"))]


def _replica_set(obj: Json, now: datetime) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        *_replica_counts(obj, now),
        *container_cells(spec.get("template") or {}),
        selector_text(spec.get("selector")),
    ]


def _replica_counts(obj: Json, now: datetime) -> list[Any]:
    spec, status = _parts(obj)
    return [
        name_of(obj),
        spec.get("replicas", 0),
        status.get("replicas", 0),
        status.get("readyReplicas", 0),
        age(obj, now),
    ]


def _deployment(obj: Json, now: datetime) -> list[Any]:
    spec, status = _parts(obj)
    return [
        name_of(obj),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(obj, now),
        *container_cells(spec.get("template") or {}),
        selector_text(spec.get("selector"), ""),
    ]


def _stateful_set(obj: Json, now: datetime) -> list[Any]:
    spec, status = _parts(obj)
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name_of(obj), ready, age(obj, now), *container_cells(spec.get("template") or {})]


def _daemon_set(obj: Json, now: datetime) -> list[Any]:
    spec, status = _parts(obj)
    template = spec.get("template") or {}
    return [
        name_of(obj),
        status.get("desiredNumberScheduled", 0),
        status.get("currentNumberScheduled", 0),
        status.get("numberReady", 0),
        status.get("updatedNumberScheduled", 0),
        status.get("numberAvailable", 0),
        label_text((template.get("spec") or {}).get("nodeSelector")),
        age(obj, now),
        *container_cells(template),
        selector_text(spec.get("selector")),
    ]


def _controller_revision(obj: Json, now: datetime) -> list[Any]:
    controller = NONE
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            kind = GroupVersion.parse(owner["apiVersion"]).kind(owner["kind"]).group_kind
            controller = f"{str(kind).lower()}/{owner['name']}"
            break
    return [name_of(obj), controller, obj.get("revision", 0), age(obj, now)]


_JOB_STATES = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job(obj: Json, now: datetime) -> list[Any]:
    spec, status = _parts(obj)
    done = status.get("succeeded", 0)
    if "completions" in spec:
        completions = f"{done}/{spec['completions']}"
    elif spec.get("parallelism", 0) > 1:
        completions = f"{done}/1 of {spec['parallelism']}"
    else:
        completions = f"{done}/1"
    lasted = ""
    if status.get("startTime"):
        end = Time.parse(status["completionTime"]) if status.get("completionTime") else now
        lasted = human(end - Time.parse(status["startTime"]))
    return [
        name_of(obj),
        _job_state(obj),
        completions,
        lasted,
        age(obj, now),
        *container_cells(spec.get("template") or {}),
        selector_text(spec.get("selector")),
    ]


def _job_state(obj: Json) -> str:
    for condition, word in _JOB_STATES:
        if condition:
            if condition_status(obj, condition) == "True":
                return word
        elif obj["metadata"].get("deletionTimestamp"):
            return word
    return "Running"


def _cron_job(obj: Json, now: datetime) -> list[Any]:
    spec, status = _parts(obj)
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    suspended = spec.get("suspend")
    return [
        name_of(obj),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        UNSET if suspended is None else str(bool(suspended)),
        len(status.get("active") or ()),
        since(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE,
        age(obj, now),
        *container_cells(job.get("template") or {}),
        selector_text(job.get("selector")),
    ]


def _disruption_budget(obj: Json, now: datetime) -> list[Any]:
    spec, status = _parts(obj)
    return [
        name_of(obj),
        str(spec.get("minAvailable", "N/A")),
        str(spec.get("maxUnavailable", "N/A")),
        status.get("disruptionsAllowed", 0),
        age(obj, now),
    ]


def _autoscaler(obj: Json, now: datetime) -> list[Any]:
    spec, status = _parts(obj)
    target = spec.get("scaleTargetRef") or {}
    return [
        name_of(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        str(spec.get("minReplicas", UNSET)),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(obj, now),
    ]


def _metrics(specs: Any, statuses: Any) -> str:
    """The first two targets, each with its present value."""
    if not specs:
        return NONE
    texts = [_metric(spec, statuses[i] if i < len(statuses) else {}) for i, spec in enumerate(specs)]
    shown = ", ".join(texts[:2])
    return f"{shown} + {len(texts) - 2} more..." if len(texts) > 2 else shown


_METRIC_FIELDS = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(spec: Json, status: Json) -> str:
    field = _METRIC_FIELDS.get(spec.get("type", ""))
    if field is None:
        return "<unknown type>"
    source, found = spec.get(field) or {}, status.get(field)
    target, current = source.get("target") or {}, (found or {}).get("current") or {}
    if field in ("resource", "containerResource"):
        name = source.get("name", "")
        if "averageValue" in target:
            now = UNKNOWN if found is None else current.get("averageValue", "<nil>")
            return f"{name}: {now}/{target['averageValue']}"
        now, wanted = (
            f"{part['averageUtilization']}%" if "averageUtilization" in part else otherwise
            for part, otherwise in ((current, UNKNOWN), (target, "<auto>"))
        )
        return f"{name}: {now}/{wanted}"
    if field == "pods":
        now = UNKNOWN if found is None else current.get("averageValue", "<nil>")
        return f"{now}/{target.get('averageValue', '<nil>')}"
    if "averageValue" in target:
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']} (avg)"
    now = UNKNOWN if found is None else current.get("value", "<nil>")
    return f"{now}/{target.get('value', '<nil>')}"


CELLS: dict[tuple[str, str], Cells] = {
    ("", "pods"): pod,
    ("", "podtemplates"): _pod_template,
    ("", "replicationcontrollers"): _replication_controller,
    ("apps", "deployments"): _deployment,
    ("apps", "replicasets"): _replica_set,
    ("apps", "statefulsets"): _stateful_set,
    ("apps", "daemonsets"): _daemon_set,
    ("apps", "controllerrevisions"): _controller_revision,
    ("batch", "jobs"): _job,
    ("batch", "cronjobs"): _cron_job,
    ("policy", "poddisruptionbudgets"): _disruption_budget,
    ("autoscaling", "horizontalpodautoscalers"): _autoscaler,
}
