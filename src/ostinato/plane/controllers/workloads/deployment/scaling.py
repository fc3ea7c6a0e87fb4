"""Replica counts of a rollout. Pure functions.

- `maxSurge` is rounded up and `maxUnavailable` down; if both are 0, maxUnavailable is 1.
- The new ReplicaSet is scaled up within the surge. Old ones are scaled down within availability: unhealthy replicas
  first, then the others, oldest ReplicaSet first.
- A Deployment that is scaled during a rollout scales its ReplicaSets proportionally; the largest gets the remainder.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ostinato.api.intstr import IntOrStringError, scaled_value
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet
from ostinato.plane.controllers.workloads.deployment.revisions import DESIRED, MAXIMUM, number_in

ROLLING: Final = "RollingUpdate"
RECREATE: Final = "Recreate"
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")

Step = tuple[ReplicaSet, int]
"""A ReplicaSet and its new replica count."""


def spec_replicas(replica_set: ReplicaSet) -> int:
    """Return spec.replicas of the ReplicaSet."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def desired_replicas(deployment: Deployment) -> int:
    """Return spec.replicas of the Deployment."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def available(replica_set: ReplicaSet) -> int:
    return replica_set.status.available_replicas or 0


def strategy(deployment: Deployment) -> str:
    return (deployment.spec.strategy.type if deployment.spec.strategy else None) or ROLLING


def oldest_first(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Sort by creation time."""
    return sorted(sets, key=lambda each: (each.metadata.creation_timestamp or _EPOCH, each.metadata.name))


def active(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Return the ReplicaSets with replicas."""
    return [each for each in sets if spec_replicas(each) > 0]


def resolve_fenceposts(surge: int | str | None, unavailable: int | str | None, replicas: int) -> tuple[int, int]:
    """Resolve maxSurge and maxUnavailable to Pod counts; invalid values are 0."""
    over = _scaled(surge, replicas, round_up=True)
    under = _scaled(unavailable, replicas, round_up=False)
    return (0, 1) if over == under == 0 else (over, under)


def max_surge(deployment: Deployment) -> int:
    rolling = deployment.spec.strategy.rolling_update if deployment.spec.strategy else None
    if strategy(deployment) != ROLLING or rolling is None:
        return 0
    return resolve_fenceposts(rolling.max_surge, rolling.max_unavailable, desired_replicas(deployment))[0]


def max_unavailable(deployment: Deployment) -> int:
    rolling = deployment.spec.strategy.rolling_update if deployment.spec.strategy else None
    if strategy(deployment) != ROLLING or rolling is None or desired_replicas(deployment) == 0:
        return 0
    return min(
        resolve_fenceposts(rolling.max_surge, rolling.max_unavailable, desired_replicas(deployment))[1],
        desired_replicas(deployment),
    )


def new_set_size(deployment: Deployment, current: int, total: int) -> int:
    """Return the replica count of the new ReplicaSet. `total`: replicas of all ReplicaSets."""
    if strategy(deployment) != ROLLING:
        return desired_replicas(deployment)
    room = desired_replicas(deployment) + max_surge(deployment) - total
    if room <= 0:
        return current
    return current + min(room, desired_replicas(deployment) - current)


def old_set_sizes(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Step]:
    """Return the scale-down steps of old ReplicaSets, in order; a ReplicaSet may occur twice."""
    sizes = {each.metadata.name: spec_replicas(each) for each in old}
    least = desired_replicas(deployment) - max_unavailable(deployment)
    budget = spec_replicas(new) + sum(sizes.values()) - least - (spec_replicas(new) - available(new))
    if budget <= 0 or not any(sizes.values()):
        return []
    steps: list[Step] = []

    def shrink(replica_set: ReplicaSet, by: int) -> None:
        sizes[replica_set.metadata.name] -= by
        steps.append((replica_set, sizes[replica_set.metadata.name]))

    for each in oldest_first(active(old)):
        unavailable = spec_replicas(each) - available(each)
        if unavailable < 0:
            return steps  # its status is from before the scale-down: wait for an update
        if budget > 0 and unavailable > 0:
            by = min(budget, unavailable)
            shrink(each, by)
            budget -= by
    spare = available(new) + sum(available(each) for each in old) - least
    for each in oldest_first(active(old)):
        by = min(sizes[each.metadata.name], spare)
        if by > 0:
            shrink(each, by)
            spare -= by
    return steps


def proportional_sizes(deployment: Deployment, sets: Sequence[ReplicaSet]) -> list[Step]:
    """Return the replica counts of active ReplicaSets after a scaling event, in proportion to their sizes."""
    allowed = desired_replicas(deployment) + max_surge(deployment) if desired_replicas(deployment) > 0 else 0
    total = sum(map(spec_replicas, sets))
    change = allowed - total
    growing = change > 0
    order = oldest_first(sets)
    order = sorted(order[::-1] if growing else order, key=spec_replicas, reverse=True)
    if change == 0:
        return [(each, spec_replicas(each)) for each in order]
    steps: list[Step] = []
    done = 0
    for each in order:
        left = change - done
        part = min(_fraction(deployment, each), left) if growing else max(_fraction(deployment, each), left)
        part = part if left else 0
        steps.append((each, spec_replicas(each) + part))
        done += part
    first, target = steps[0]
    steps[0] = (first, max(target + change - done, 0))
    return steps


def is_saturated(deployment: Deployment, replica_set: ReplicaSet) -> bool:
    """Return whether the ReplicaSet has all replicas of the Deployment, annotated and available."""
    total = desired_replicas(deployment)
    return spec_replicas(replica_set) == number_in(replica_set, DESIRED) == available(replica_set) == total


def _fraction(deployment: Deployment, replica_set: ReplicaSet) -> int:
    """Return the change of a ReplicaSet that preserves its share."""
    current = spec_replicas(replica_set)
    if desired_replicas(deployment) == 0:
        return -current
    before = number_in(replica_set, MAXIMUM) or deployment.status.replicas or 0
    if before == 0:
        return 0
    exact = current * (desired_replicas(deployment) + max_surge(deployment)) / before
    return int(exact + 0.5) - current


def _scaled(value: int | str | None, total: int, *, round_up: bool) -> int:
    try:
        return scaled_value(0 if value is None else value, total, round_up=round_up)
    except IntOrStringError:
        return 0
