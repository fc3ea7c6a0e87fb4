"""Status and conditions of a Deployment. Pure functions.

- Available: the minimum number of Pods is available.
- Progressing: True while a rollout progresses or is complete, False after `progressDeadlineSeconds` without progress,
  Unknown while paused. Without a deadline the condition is absent.
- ReplicaFailure: copied from a ReplicaSet; the new one has precedence.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.apps_v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from ostinato.plane.controllers.workloads.deployment.scaling import (
    available,
    desired_replicas,
    max_unavailable,
    spec_replicas,
)

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
FAILURE: Final = "ReplicaFailure"

COMPLETE: Final = "NewReplicaSetAvailable"
CREATED: Final = "NewReplicaSetCreated"
CREATE_FAILED: Final = "ReplicaSetCreateError"
FOUND: Final = "FoundNewReplicaSet"
UPDATED: Final = "ReplicaSetUpdated"
PAUSED: Final = "DeploymentPaused"
RESUMED: Final = "DeploymentResumed"
TIMED_OUT: Final = "ProgressDeadlineExceeded"

_NEVER: Final = 2**31 - 1


def deadline(deployment: Deployment) -> int | None:
    """Return progressDeadlineSeconds; None if there is no deadline."""
    seconds = deployment.spec.progress_deadline_seconds
    return None if seconds is None or seconds == _NEVER else seconds


def get_condition(status: DeploymentStatus, kind: str) -> DeploymentCondition | None:
    return next((each for each in status.conditions if each.type == kind), None)


def set_condition(status: DeploymentStatus, condition: DeploymentCondition) -> None:
    """Set a condition unless status and reason are unchanged; lastTransitionTime changes with the status only."""
    current = get_condition(status, condition.type)
    if current is not None and current.status == condition.status:
        if current.reason == condition.reason:
            return
        condition = msgspec.structs.replace(condition, last_transition_time=current.last_transition_time)
    status.conditions = [*_without(status, condition.type), condition]


def condition(kind: str, value: str, reason: str, message: str, now: Time) -> DeploymentCondition:
    return DeploymentCondition(
        type=kind, status=value, reason=reason, message=message, last_update_time=now, last_transition_time=now
    )


def calculate_status(
    deployment: Deployment, before: DeploymentStatus, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: Time
) -> DeploymentStatus:
    """Return the status with current counts and the condition Available."""
    sets = [*old] if new is None else [*old, new]
    are_available = sum(map(available, sets))
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.status.replicas for each in sets) or None,
        updated_replicas=(0 if new is None else new.status.replicas) or None,
        ready_replicas=sum(each.status.ready_replicas or 0 for each in sets) or None,
        available_replicas=are_available or None,
        unavailable_replicas=max(sum(map(spec_replicas, sets)) - are_available, 0) or None,
        terminating_replicas=_terminating(sets),
        collision_count=before.collision_count,
        conditions=list(before.conditions),
    )
    if are_available >= desired_replicas(deployment) - max_unavailable(deployment):
        text = "Deployment has minimum availability."
        set_condition(status, condition(AVAILABLE, "True", "MinimumReplicasAvailable", text, now))
    else:
        text = "Deployment does not have minimum availability."
        set_condition(status, condition(AVAILABLE, "False", "MinimumReplicasUnavailable", text, now))
    return status


def with_progress(
    deployment: Deployment, before: DeploymentStatus, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: Time
) -> DeploymentStatus:
    """Return the status with the conditions Progressing and ReplicaFailure as well."""
    status = calculate_status(deployment, before, new, old, now)
    if deadline(deployment) is None:
        status.conditions = _without(status, PROGRESSING)
    else:
        _judge(deployment, before, status, new, now)
    sets = [*old] if new is None else [new, *old]
    failure = next((found for each in sets if (found := _failure_of(each)) is not None), None)
    if failure is None:
        status.conditions = _without(status, FAILURE)
    else:
        set_condition(status, failure)
    return status


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Return whether all replicas have the new template and are available, and no old ones remain."""
    total = desired_replicas(deployment)
    return (
        (status.updated_replicas or 0) == total
        and (status.replicas or 0) == total
        and (status.available_replicas or 0) == total
        and (status.observed_generation or 0) >= deployment.metadata.generation
    )


def time_left(deployment: Deployment, status: DeploymentStatus, now: Time) -> float | None:
    """Return the seconds until the progress deadline must be checked; None if it does not apply."""
    seconds, current = deadline(deployment), get_condition(status, PROGRESSING)
    if seconds is None or current is None or current.last_update_time is None:
        return None
    if is_complete(deployment, status) or current.reason == TIMED_OUT:
        return None
    # One second more: times have a resolution of one second.
    return max((current.last_update_time + timedelta(seconds=seconds) - now).total_seconds(), 0.0) + 1.0


def _judge(
    deployment: Deployment, before: DeploymentStatus, status: DeploymentStatus, new: ReplicaSet | None, now: Time
) -> None:
    current = get_condition(before, PROGRESSING)
    who = f'Deployment "{deployment.metadata.name}"' if new is None else f'ReplicaSet "{new.metadata.name}"'
    if current is not None and current.reason == COMPLETE and status.replicas == status.updated_replicas:
        return
    if is_complete(deployment, status):
        set_condition(status, condition(PROGRESSING, "True", COMPLETE, f"{who} has successfully progressed.", now))
    elif _has_moved(before, status):
        moved = condition(PROGRESSING, "True", UPDATED, f"{who} is progressing.", now)
        if current is not None and current.status == "True":
            moved.last_transition_time = current.last_transition_time
        status.conditions = [*_without(status, PROGRESSING), moved]
    elif _has_timed_out(deployment, current, now):
        set_condition(status, condition(PROGRESSING, "False", TIMED_OUT, f"{who} has timed out progressing.", now))


def _has_moved(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    def old(status: DeploymentStatus) -> int:
        return (status.replicas or 0) - (status.updated_replicas or 0)

    return (
        (after.updated_replicas or 0) > (before.updated_replicas or 0)
        or old(after) < old(before)
        or (after.ready_replicas or 0) > (before.ready_replicas or 0)
        or (after.available_replicas or 0) > (before.available_replicas or 0)
    )


def _has_timed_out(deployment: Deployment, current: DeploymentCondition | None, now: Time) -> bool:
    seconds = deadline(deployment)
    if seconds is None or current is None or current.reason == COMPLETE:
        return False
    if current.reason == TIMED_OUT:
        return True
    return current.last_update_time is not None and current.last_update_time + timedelta(seconds=seconds) < now


def _failure_of(replica_set: ReplicaSet) -> DeploymentCondition | None:
    found = next((each for each in replica_set.status.conditions if each.type == FAILURE), None)
    if found is None:
        return None
    return DeploymentCondition(
        type=found.type,
        status=found.status,
        reason=found.reason,
        message=found.message,
        last_transition_time=found.last_transition_time,
        last_update_time=found.last_transition_time,
    )


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """Return the number of terminating Pods; None if a ReplicaSet does not report it."""
    terminating = [each.status.terminating_replicas for each in sets if each.status.observed_generation]
    return None if None in terminating else sum(each or 0 for each in terminating)


def _without(status: DeploymentStatus, kind: str) -> list[DeploymentCondition]:
    return [each for each in status.conditions if each.type != kind]
