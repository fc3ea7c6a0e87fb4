"""Taints and tolerations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from ostinato.kinds import core_v1

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    """Hashable form of a taint; `Toleration` likewise."""

    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


AnyTaint = Taint | core_v1.Taint
AnyToleration = Toleration | core_v1.Toleration

UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


def tolerates(toleration: AnyToleration, taint: AnyTaint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Exists":
        return True
    return (toleration.operator or "Equal") == "Equal" and (toleration.value or "") == (taint.value or "")


def tolerated(taint: AnyTaint, tolerations: Iterable[AnyToleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def has_blocking_taint(taints: Iterable[AnyTaint], tolerations: Sequence[AnyToleration]) -> bool:
    """Return whether a NoSchedule or NoExecute taint is not tolerated."""
    return any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not tolerated(taint, tolerations) for taint in taints)


def count_untolerated_preferences(taints: Iterable[AnyTaint], tolerations: Sequence[AnyToleration]) -> int:
    """Return the number of PreferNoSchedule taints that are not tolerated."""
    return sum(taint.effect == PREFER_NO_SCHEDULE and not tolerated(taint, tolerations) for taint in taints)
