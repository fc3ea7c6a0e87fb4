"""Scaling behavior: how fast the replica count follows the recommendation.

- It stays between minReplicas and maxReplicas.
- It is not scaled down below the highest recommendation of the last five minutes (stabilization window).
- It is not scaled up beyond double or four, whichever is larger; `spec.behavior` overrides both.

Recent recommendations and scale events are kept in memory, in one `ScaleHistory` per autoscaler; a restart forgets
them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Final

import msgspec

from ostinato.kinds.autoscaling_v2 import HorizontalPodAutoscalerBehavior, HPAScalingPolicy, HPAScalingRules

DEFAULT_DOWNSCALE_WINDOW: Final = 300  # seconds
_MIN_SCALE_UP_LIMIT: Final = 4  # replicas to which scaling up is always allowed

_UP: Final = HPAScalingRules(
    policies=[
        HPAScalingPolicy(type="Pods", value=4, period_seconds=15),
        HPAScalingPolicy(type="Percent", value=100, period_seconds=15),
    ],
    stabilization_window_seconds=0,
)
_DOWN: Final = HPAScalingRules(policies=[HPAScalingPolicy(type="Percent", value=100, period_seconds=15)])

ConditionReason = tuple[str, str]
"""Reason and message of a condition."""

READY_FOR_NEW_SCALE: Final[ConditionReason] = "ReadyForNewScale", "recommended size matches current size"
WITHIN_RANGE: Final[ConditionReason] = "DesiredWithinRange", "the desired count is within the acceptable range"
_UP_STABILIZED: Final[ConditionReason] = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
_DOWN_STABILIZED: Final[ConditionReason] = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)
_TOO_MANY: Final[ConditionReason] = (
    "TooManyReplicas",
    "the desired replica count is more than the maximum replica count",
)
_TOO_FEW: Final[ConditionReason] = "TooFewReplicas", "the desired replica count is less than the minimum replica count"
_TOO_FAST_UP: Final[ConditionReason] = (
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_TOO_FAST_DOWN: Final[ConditionReason] = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)


class Decision(msgspec.Struct, frozen=True):
    replicas: int
    stabilized: ConditionReason
    limited: ConditionReason
    is_limited: bool


class Bounds(msgspec.Struct, frozen=True):
    least: int
    most: int
    behavior: HorizontalPodAutoscalerBehavior | None = None

    @property
    def up(self) -> HPAScalingRules:
        return _UP if self.behavior is None or self.behavior.scale_up is None else self.behavior.scale_up

    @property
    def down(self) -> HPAScalingRules:
        return _DOWN if self.behavior is None or self.behavior.scale_down is None else self.behavior.scale_down


class ScaleHistory:
    """Recent recommendations and scale events of one workload. Times are seconds of a monotonic clock."""

    def __init__(self, replicas: int, now: float) -> None:
        self._recommended: list[tuple[float, int]] = [(now, replicas)]
        self._added: list[tuple[float, int]] = []
        self._removed: list[tuple[float, int]] = []

    def decide(self, current: int, recommended: int, bounds: Bounds, now: float) -> Decision:
        """Return the replica count to apply and record the recommendation."""
        if bounds.behavior is None:
            stable = max([recommended, *self._recommendations_since(now - DEFAULT_DOWNSCALE_WINDOW)])
            stabilized = _DOWN_STABILIZED
            self._remember(recommended, now, DEFAULT_DOWNSCALE_WINDOW)
            replicas, limited = _limit_by_default_rate(current, stable, bounds)
        else:
            up_window = bounds.up.stabilization_window_seconds or 0
            given = bounds.down.stabilization_window_seconds
            down_window = DEFAULT_DOWNSCALE_WINDOW if given is None else given
            lowest = min([recommended, *self._recommendations_since(now - up_window)])
            highest = max([recommended, *self._recommendations_since(now - down_window)])
            stable = min(max(current, lowest), highest)
            stabilized = _UP_STABILIZED if recommended >= current else _DOWN_STABILIZED
            self._remember(recommended, now, max(up_window, down_window))
            replicas, limited = self._limit_by_policies(current, stable, bounds, now)
        return Decision(
            replicas=replicas,
            stabilized=stabilized if stable != recommended else READY_FOR_NEW_SCALE,
            limited=limited,
            is_limited=replicas != stable,
        )

    def record_scaled(self, before: int, after: int, bounds: Bounds, now: float) -> None:
        """Record a scale event."""
        if bounds.behavior is None:
            return
        rules, changes = (bounds.up, self._added) if after > before else (bounds.down, self._removed)
        longest = max((policy.period_seconds for policy in rules.policies), default=0)
        changes[:] = [each for each in changes if each[0] >= now - longest]
        changes.append((now, abs(after - before)))

    def _recommendations_since(self, moment: float) -> list[int]:
        return [replicas for when, replicas in self._recommended if when > moment]

    def _remember(self, recommended: int, now: float, window: float) -> None:
        self._recommended = [each for each in self._recommended if each[0] >= now - window]
        self._recommended.append((now, recommended))

    def _limit_by_policies(self, current: int, wanted: int, bounds: Bounds, now: float) -> tuple[int, ConditionReason]:
        if wanted > current:
            fastest = max(self._limit(current, bounds.up, now, upwards=True), current)
            most, why = (fastest, _TOO_FAST_UP) if fastest < bounds.most else (bounds.most, _TOO_MANY)
            if wanted > most:
                return most, why
        elif wanted < current:
            fastest = min(self._limit(current, bounds.down, now, upwards=False), current)
            least, why = (fastest, _TOO_FAST_DOWN) if fastest > bounds.least else (bounds.least, _TOO_FEW)
            if wanted < least:
                return least, why
        return wanted, WITHIN_RANGE

    def _limit(self, current: int, rules: HPAScalingRules, now: float, *, upwards: bool) -> int:
        """Return the replica count that the policies allow now."""
        if rules.select_policy == "Disabled" or not rules.policies:
            return current
        proposals = []
        for policy in rules.policies:
            added = _replicas_changed_since(self._added, now - policy.period_seconds)
            removed = _replicas_changed_since(self._removed, now - policy.period_seconds)
            proposals.append(_proposal(current - added + removed, policy, upwards=upwards))
        furthest: Callable[[Sequence[int]], int] = max if upwards else min
        nearest: Callable[[Sequence[int]], int] = min if upwards else max
        return nearest(proposals) if rules.select_policy == "Min" else furthest(proposals)


def _limit_by_default_rate(current: int, wanted: int, bounds: Bounds) -> tuple[int, ConditionReason]:
    fastest = max(2 * current, _MIN_SCALE_UP_LIMIT)
    most, why = (fastest, _TOO_FAST_UP) if bounds.most > fastest else (bounds.most, _TOO_MANY)
    if wanted < bounds.least:
        return bounds.least, _TOO_FEW
    return (most, why) if wanted > most else (wanted, WITHIN_RANGE)


def _proposal(start: int, policy: HPAScalingPolicy, *, upwards: bool) -> int:
    """Return the replica count that a policy allows, given the count at the start of its period."""
    if policy.type == "Pods":
        return start + policy.value if upwards else start - policy.value
    if upwards:
        return ceil(start * (1 + policy.value / 100))
    return int(start * (1 - policy.value / 100))


def _replicas_changed_since(changes: Sequence[tuple[float, int]], begin: float) -> int:
    return sum(change for when, change in changes if when > begin)
