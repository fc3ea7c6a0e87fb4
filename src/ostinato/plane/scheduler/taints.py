"""Taints and tolerations: which nodes a Pod keeps away from, and which it merely avoids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"


class Taint(msgspec.Struct, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def keeps_away(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> bool:
    """Whether a taint forbids a Pod with these tolerations to be put on the node."""
    return any(taint.effect in (NO_SCHEDULE, NO_EXECUTE) and not tolerated(taint, tolerations) for taint in taints)


def avoided(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> int:
    """How many taints ask a Pod with these tolerations to rather go elsewhere."""
    return sum(taint.effect == PREFER_NO_SCHEDULE and not tolerated(taint, tolerations) for taint in taints)
