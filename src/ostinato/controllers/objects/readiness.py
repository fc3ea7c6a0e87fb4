"""Readiness: whether an object has reached its desired state, with the states of kstatus.

    readiness = readiness_of(deployment)
    if not readiness:
        return Result(requeue_after=5)

| state | means |
|---|---|
| `Current` | the desired state is reached |
| `InProgress` | the desired state is not reached yet |
| `Failed` | the desired state will not be reached without a change |
| `Terminating` | the object is being deleted |

For every kind, `observedGeneration` and the conditions `Stalled` and `Reconciling` are checked first. Built-in kinds
have rules of their own; other kinds are ready unless their condition `Ready` is not True. A custom resource without a
status is ready; a workload is not before its controller has observed it.

A kind may have a check of its own, which replaces these rules; None falls back to them:

    @readiness_check("example.dev", "Database")
    def database(instance: dict[str, Any]) -> Readiness | bool | None:
        return instance["status"].get("phase") == "Running" if "status" in instance else False
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeVar

from ostinato.api import accessors as access
from ostinato.api.accessors import AnyObject
from ostinato.api.codec import to_dict
from ostinato.api.gvk import GroupKind
from ostinato.api.object import Object

State = Literal["Current", "InProgress", "Failed", "Terminating"]
Json = dict[str, Any]


class Readiness(NamedTuple):
    """True if the state is `Current`."""

    state: State
    message: str

    def __bool__(self) -> bool:
        return self.state == "Current"

    def __str__(self) -> str:
        return f"{self.state}: {self.message}"


Check = Callable[[Json], Readiness | bool | None]
C = TypeVar("C", bound=Check)

_checks: Final[dict[GroupKind, Check]] = {}


def readiness_check(group: str, kind: str) -> Callable[[C], C]:
    """Register the decorated function as the check of a kind. ValueError if the kind has one."""

    def register(check: C) -> C:
        registered = _checks.setdefault(GroupKind(group, kind), check)
        if registered is not check and _place(registered) != _place(check):
            raise ValueError(f"readiness_check() {GroupKind(group, kind)} has the check {'.'.join(_place(registered))}")
        _checks[GroupKind(group, kind)] = check  # the same function of a module that was loaded again
        return check

    return register


def unregister_readiness_check(group: str, kind: str) -> None:
    """Remove the check of a kind. No error if there is none."""
    _checks.pop(GroupKind(group, kind), None)


def has_readiness_check(kind: GroupKind) -> bool:
    """Return whether a kind has a check of its own."""
    return kind in _checks


def readiness_of(instance: AnyObject, *, complete: bool = False) -> Readiness:
    """Return the readiness of an object.

    - `complete`: a Job is ready when it has completed. Defaults to False: when it has started.
    """
    document = to_dict(instance) if isinstance(instance, Object) else instance
    if access.is_being_deleted(document):
        return Readiness("Terminating", "being deleted")
    check = _checks.get(access.gvk(document).group_kind)
    answer = None if check is None else check(document)
    if answer is None:
        found = _rated(document)
        return _waiting("running") if complete and found == _RUNNING else found
    if isinstance(answer, bool):
        return _CURRENT if answer else _waiting("not ready yet")
    return answer


def _rated(document: Json) -> Readiness:
    """Return the readiness by the built-in rules."""
    status = _map(document, "status")
    conditions = _conditions(status)
    observed, generation = status.get("observedGeneration"), access.generation(document)
    if isinstance(observed, int) and generation and observed != generation:
        return _waiting(f"generation {generation} is not observed yet; observedGeneration is {observed}")
    if _is(conditions, "Stalled", "True"):
        return _failed(_message(conditions["Stalled"]))
    if _is(conditions, "Reconciling", "True"):
        return _waiting(_message(conditions["Reconciling"]))
    rule = _RULES.get(access.gvk(document).group_kind)
    if rule in _WORKLOADS and generation and not isinstance(observed, int):
        return _waiting("not observed yet")
    if rule is not None:
        return rule(_map(document, "spec"), status, conditions)
    if "Ready" in conditions and not _is(conditions, "Ready", "True"):
        return _waiting(_message(conditions["Ready"]))
    return _CURRENT


_CURRENT: Final = Readiness("Current", "desired state reached")
_RUNNING: Final = Readiness("Current", "running")


def _deployment(spec: Json, status: Json, conditions: Json) -> Readiness:
    if _is(conditions, "Progressing", "False") or _reason(conditions, "Progressing") == "ProgressDeadlineExceeded":
        return _failed(_message(conditions["Progressing"]))
    wanted = spec.get("replicas", 1)
    for field, word in (("updatedReplicas", "updated"), ("availableReplicas", "available")):
        if _number(status, field) < wanted:
            return _waiting(f"{_number(status, field)} of {wanted} replicas are {word}")
    if _number(status, "replicas") > wanted:
        return _waiting(f"{_number(status, 'replicas') - wanted} old replicas are not terminated yet")
    return _CURRENT


def _replica_set(spec: Json, status: Json, conditions: Json) -> Readiness:
    if _is(conditions, "ReplicaFailure", "True"):
        return _failed(_message(conditions["ReplicaFailure"]))
    wanted = spec.get("replicas", 1)
    available = _number(status, "availableReplicas")
    if available < wanted:
        return _waiting(f"{available} of {wanted} replicas are available")
    if _number(status, "replicas") > wanted:
        return _waiting(f"{_number(status, 'replicas') - wanted} surplus replicas are not terminated yet")
    return _CURRENT


def _stateful_set(spec: Json, status: Json, _: Json) -> Readiness:
    wanted = spec.get("replicas", 1)
    strategy = _map(spec, "updateStrategy")
    if strategy.get("type") == "OnDelete":
        return _CURRENT
    if (ready := _number(status, "readyReplicas")) < wanted:
        return _waiting(f"{ready} of {wanted} replicas are ready")
    partition = _number(_map(strategy, "rollingUpdate"), "partition")
    if partition:
        updated = _number(status, "updatedReplicas")
        return _CURRENT if updated >= wanted - partition else _waiting(f"{updated} replicas are updated")
    if status.get("currentRevision") != status.get("updateRevision"):
        return _waiting(f"{_number(status, 'updatedReplicas')} of {wanted} replicas are updated")
    return _CURRENT


def _daemon_set(_: Json, status: Json, __: Json) -> Readiness:
    if "observedGeneration" not in status:
        return _waiting("not observed yet")
    wanted = _number(status, "desiredNumberScheduled")
    for field, word in (
        ("currentNumberScheduled", "scheduled"),
        ("updatedNumberScheduled", "updated"),
        ("numberAvailable", "available"),
        ("numberReady", "ready"),
    ):
        if _number(status, field) < wanted:
            return _waiting(f"{_number(status, field)} of {wanted} Pods are {word}")
    return _CURRENT


def _pod(_: Json, status: Json, conditions: Json) -> Readiness:
    phase = status.get("phase")
    if phase == "Succeeded":
        return Readiness("Current", "succeeded")
    if phase == "Failed":
        return _failed(str(status.get("message") or status.get("reason") or "failed"))
    if _is(conditions, "Ready", "True"):
        return _CURRENT
    for container in status.get("containerStatuses") or ():
        waiting = _map(_map(container, "state"), "waiting")
        if waiting.get("reason") in ("CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName"):
            return _failed(f"container {container.get('name')}: {waiting['reason']}")
    return _waiting(_message(conditions["Ready"]) if "Ready" in conditions else "not ready yet")


def _job(spec: Json, status: Json, conditions: Json) -> Readiness:
    if _is(conditions, "Failed", "True"):
        return _failed(_message(conditions["Failed"]))
    if _is(conditions, "Complete", "True"):
        return Readiness("Current", "complete")
    if spec.get("suspend"):
        return Readiness("Current", "suspended")
    if "startTime" not in status:
        return _waiting("not started yet")
    return _RUNNING


def _claim(_: Json, status: Json, __: Json) -> Readiness:
    return _CURRENT if status.get("phase") == "Bound" else _waiting("not bound")


def _service(spec: Json, status: Json, _: Json) -> Readiness:
    is_balanced = spec.get("type") == "LoadBalancer" and not spec.get("externalIPs")
    if is_balanced and not _map(status, "loadBalancer").get("ingress"):
        return _waiting("no load balancer ingress yet")
    return _CURRENT


def _api_service(_: Json, __: Json, conditions: Json) -> Readiness:
    if _is(conditions, "Available", "True"):
        return _CURRENT
    return _waiting(_message(conditions["Available"]) if "Available" in conditions else "not available yet")


def _namespace(_: Json, status: Json, __: Json) -> Readiness:
    return _CURRENT if status.get("phase") == "Active" else _waiting(f"phase is {status.get('phase')}")


def _definition(_: Json, __: Json, conditions: Json) -> Readiness:
    if _is(conditions, "NamesAccepted", "False"):
        return _failed(_message(conditions["NamesAccepted"]))
    if _is(conditions, "Established", "True"):
        return _CURRENT
    if _reason(conditions, "Established") not in ("", "Installing"):
        return _failed(_message(conditions["Established"]))
    return _waiting("not established")


def _budget(_: Json, status: Json, __: Json) -> Readiness:
    healthy, wanted = _number(status, "currentHealthy"), _number(status, "desiredHealthy")
    return _CURRENT if healthy >= wanted else _waiting(f"{healthy} of {wanted} Pods are healthy")


_RULES: Final[dict[GroupKind, Callable[[Json, Json, Json], Readiness]]] = {
    GroupKind("apps", "Deployment"): _deployment,
    GroupKind("apps", "ReplicaSet"): _replica_set,
    GroupKind("apps", "StatefulSet"): _stateful_set,
    GroupKind("apps", "DaemonSet"): _daemon_set,
    GroupKind("", "ReplicationController"): _replica_set,
    GroupKind("", "Pod"): _pod,
    GroupKind("", "PersistentVolumeClaim"): _claim,
    GroupKind("", "Service"): _service,
    GroupKind("", "Namespace"): _namespace,
    GroupKind("batch", "Job"): _job,
    GroupKind("policy", "PodDisruptionBudget"): _budget,
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    GroupKind("apiregistration.k8s.io", "APIService"): _api_service,
}
_WORKLOADS: Final = (_deployment, _replica_set, _stateful_set)  # their controllers set observedGeneration


def _place(check: Check) -> tuple[str, str]:
    return getattr(check, "__module__", ""), getattr(check, "__qualname__", "")


def _waiting(message: str) -> Readiness:
    return Readiness("InProgress", message)


def _failed(message: str) -> Readiness:
    return Readiness("Failed", message)


def _map(parent: Any, field: str) -> Json:
    value = parent.get(field) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def _number(parent: Json, field: str) -> int:
    value = parent.get(field)
    return value if isinstance(value, int) else 0


def _conditions(status: Json) -> Json:
    """Return the conditions by type."""
    found = status.get("conditions")
    return {each["type"]: each for each in found or () if isinstance(each, dict) and isinstance(each.get("type"), str)}


def _is(conditions: Json, kind: str, status: str) -> bool:
    return bool(kind in conditions and conditions[kind].get("status") == status)


def _reason(conditions: Json, kind: str) -> str:
    return str(_map(conditions, kind).get("reason") or "")


def _message(condition: Json) -> str:
    return str(
        condition.get("message") or condition.get("reason") or f"{condition['type']} is {condition.get('status')}"
    )
