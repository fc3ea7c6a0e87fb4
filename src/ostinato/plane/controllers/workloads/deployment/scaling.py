"""Arithmetic of rollouts: how many replicas each ReplicaSet of a Deployment should have next. Pure functions.

- `maxSurge` is rounded up and `maxUnavailable` down; if both are none, one Pod may be unavailable, or nothing would
  ever move.
- The new set grows as far as the surge allows. Old sets shrink as far as availability allows: first by Pods that are
  not available anyway, then by the others, the oldest set first.
- A Deployment that is scaled in the middle of a rollout shares what comes or goes among its sets by their sizes; what
  is left over by rounding goes to the largest.
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
"""A set, and the size that it gets."""


def spec_replicas(replica_set: ReplicaSet) -> int:
    """How many replicas it is to have."""
    return 1 if replica_set.spec.replicas is None else replica_set.spec.replicas


def desired_replicas(deployment: Deployment) -> int:
    """How many replicas it is to have in all."""
    return 1 if deployment.spec.replicas is None else deployment.spec.replicas


def available(replica_set: ReplicaSet) -> int:
    return replica_set.status.available_replicas or 0


def strategy(deployment: Deployment) -> str:
    return (deployment.spec.strategy.type if deployment.spec.strategy else None) or ROLLING


def oldest_first(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """The oldest first."""
    return sorted(sets, key=lambda each: (each.metadata.creation_timestamp or _EPOCH, each.metadata.name))


def active(sets: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """Those that have replicas, or should."""
    return [each for each in sets if spec_replicas(each) > 0]


def resolve_fenceposts(surge: int | str | None, unavailable: int | str | None, replicas: int) -> tuple[int, int]:
    """How many Pods there may be beyond what is wanted, and how many may be missing. What is no number is 0."""
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
    """The size of the new set, of that many now, while all sets together have `total`."""
    if strategy(deployment) != ROLLING:
        return desired_replicas(deployment)
    room = desired_replicas(deployment) + max_surge(deployment) - total
    if room <= 0:
        return current
    return current + min(room, desired_replicas(deployment) - current)


def old_set_sizes(deployment: Deployment, new: ReplicaSet, old: Sequence[ReplicaSet]) -> list[Step]:
    """The steps, in order, by which old sets shrink now. One set may take two."""
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
            return steps  # what it tells of is from before it shrank: wait until it tells more
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
    """The sizes of several active sets when the Deployment was scaled, in proportion to what they have."""
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
    """Whether the set has all replicas of the Deployment, knows of it, and they are available."""
    total = desired_replicas(deployment)
    return spec_replicas(replica_set) == number_in(replica_set, DESIRED) == available(replica_set) == total


def _fraction(deployment: Deployment, replica_set: ReplicaSet) -> int:
    """By how much a set changes so that its share of the whole remains."""
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
