"""TaintToleration: taints keep Pods away that do not tolerate them, or make them rather go elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from ostinato.plane.placement.taints import Taint, Toleration, avoided, keeps_away
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, Hint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer, normalised
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
        return _Scorer(cycle.pod.spec.tolerations) if cycle.snapshot.avoided else None

    def hints(self) -> Sequence[Hint]:
        return (
            Hint(NODE, Action.ADD | Action.NODE_TAINT, _lets_in_now),
            Hint(POD, Action.POD_TOLERATION, lambda pod, event: bool(event.new.uid == pod.uid)),
        )


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = tolerations
        self._known: dict[tuple[Taint, ...], Status | None] = {}  # few nodes have taints that no other has

    def check(self, node: NodeInfo) -> Status | None:
        taints = node.facts.taints
        if not taints:
            return None
        if taints not in self._known:
            self._known[taints] = _UNTOLERATED if keeps_away(taints, self._tolerations) else None
        return self._known[taints]


class _Scorer(Scorer):
    def __init__(self, tolerations: Sequence[Toleration]) -> None:
        self._tolerations = [each for each in tolerations if each.effect in ("", "PreferNoSchedule")]

    def score(self, node: NodeInfo) -> int:
        taints = node.facts.taints
        return avoided(taints, self._tolerations) if taints else 0

    def normalise(self, scores: list[int]) -> list[int]:
        return normalised(scores, reverse=True)


def _lets_in_now(pod: PodInfo, event: ClusterEvent) -> bool:
    tolerations = pod.spec.tolerations
    was_kept_away = event.old is None or keeps_away(event.old.taints, tolerations)
    return was_kept_away and not keeps_away(event.new.taints, tolerations)
