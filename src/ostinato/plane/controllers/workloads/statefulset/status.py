"""Status of a StatefulSet, counted from its Pods."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ostinato.kinds.apps_v1 import StatefulSet, StatefulSetStatus
from ostinato.plane.controllers.workloads.statefulset.pods import Member, replicas
from ostinato.plane.objects.pod_state import is_available, is_ready


def counted(
    pods: Sequence[Member], current: str, update: str, min_ready_seconds: int, now: datetime
) -> StatefulSetStatus:
    """Count Pods by state. Zero counts are omitted, except the two that the API requires."""
    ready = [pod for pod in pods if pod.status.phase == "Running" and is_ready(pod)]
    staying = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    return StatefulSetStatus(
        replicas=len(pods),
        ready_replicas=len(ready) or None,
        available_replicas=sum(is_available(pod, min_ready_seconds, now) for pod in ready),
        current_replicas=sum(pod.revision == current for pod in staying) or None,
        updated_replicas=sum(pod.revision == update for pod in staying) or None,
        current_revision=current or None,
        update_revision=update or None,
    )


def is_complete(owner: StatefulSet, status: StatefulSetStatus) -> bool:
    """Return whether all Pods have the update revision."""
    strategy = owner.spec.update_strategy
    if strategy is not None and strategy.type == "OnDelete":
        return False
    wanted = replicas(owner)
    return (status.updated_replicas or 0) == (status.ready_replicas or 0) == status.replicas == wanted
