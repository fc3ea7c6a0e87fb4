"""TaintToleration: rejects nodes with untolerated taints, and prefers nodes without PreferNoSchedule taints."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from ostinato.plane.placement.taints import Taint, Toleration, count_untolerated_preferences, has_blocking_taint
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer, normalize_scores
from ostinato.plane.scheduler.framework.status import Status, unresolvable

_NAME: Final = "TaintToleration"
_UNTOLERATED: Final = unresolvable(_NAME, "node(s) had untolerated taint(s)")


class TaintToleration(Plugin):
    name = _NAME
    local = True

    def local_key(self, shape: Shape) -> Hashable:
        return tuple(shape.spec.tolerations)

    def filter(self, cycle: Cycle) -> Filter:
        return _Filter(cycle.pod.spec.tolerations)

    def score(self, cycle: Cycle) -> Scorer | None:
        return _Scorer(cycle.pod.spec.tolerations) if cycle.snapshot.prefer_no_schedule_nodes else None

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(NODE, Action.ADD | Action.NODE_TAINT, _is_tolerated_now),
            QueueingHint(POD, Action.POD_TOLERATION, lambda pod, event: bool(event.new.uid == pod.uid)),
        )


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = tolerations
        self._known: dict[tuple[Taint, ...], Status | None] = {}  # most nodes have the same taints

    def check(self, node: NodeInfo) -> Status | None:
        taints = node.facts.taints
        if not taints:
            return None
        if taints not in self._known:
            self._known[taints] = _UNTOLERATED if has_blocking_taint(taints, self._tolerations) else None
        return self._known[taints]


class _Scorer(Scorer):
    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = [each for each in tolerations if each.effect in ("", "PreferNoSchedule")]

    def score(self, node: NodeInfo) -> int:
        taints = node.facts.taints
        return count_untolerated_preferences(taints, self._tolerations) if taints else 0

    def normalize(self, scores: list[int]) -> list[int]:
        return normalize_scores(scores, reverse=True)


def _is_tolerated_now(pod: PodInfo, event: ClusterEvent) -> bool:
    tolerations = pod.spec.tolerations
    was_blocked = event.old is None or has_blocking_taint(event.old.taints, tolerations)
    return was_blocked and not has_blocking_taint(event.new.taints, tolerations)
