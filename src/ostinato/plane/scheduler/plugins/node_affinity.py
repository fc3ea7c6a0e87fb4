"""NodeAffinity: nodeSelector, required and preferred node affinity."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import msgspec

from ostinato.plane.placement import node_selectors as node_terms
from ostinato.plane.placement.node_selectors import Matches
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.framework.events import NODE, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin, Scorer, normalize_scores
from ostinato.plane.scheduler.framework.status import Status, unresolvable

_NAME: Final = "NodeAffinity"
_MISMATCH: Final = unresolvable(_NAME, "node(s) didn't match Pod's node affinity/selector")
_CONFLICT: Final = unresolvable(_NAME, "pod affinity terms conflict")


class NodeAffinity(Plugin):
    name = _NAME
    local = True

    def local_key(self, shape: Shape) -> Hashable:
        return msgspec.json.encode((shape.spec.node_selector, shape.required_node_terms))

    def filter(self, cycle: Cycle) -> Filter | Status | None:
        allowed = cycle.shape.required_nodes
        if allowed is None:
            return None
        only = node_terms.names(cycle.shape.required_node_terms or ())
        return _CONFLICT if only is not None and not only else _Filter(allowed, only)

    def score(self, cycle: Cycle) -> Scorer | None:
        affinity = cycle.pod.spec.affinity
        if affinity is None or affinity.node_affinity is None:
            return None
        terms = [(node_terms.term_matcher(each.preference), each.weight) for each in affinity.node_affinity.preferred]
        return _Scorer(terms) if terms else None

    def hints(self) -> Sequence[QueueingHint]:
        return (QueueingHint(NODE, Action.ADD | Action.NODE_LABEL, _matches_now),)


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, allowed: Matches, only: frozenset[str] | None) -> None:
        self._allowed = allowed
        self.nodes = only

    def check(self, node: NodeInfo) -> Status | None:
        return None if self._allowed(node.labels, node.name) else _MISMATCH


class _Scorer(Scorer):
    def __init__(self, terms: list[tuple[Matches, int]]) -> None:
        self._terms = terms

    def score(self, node: NodeInfo) -> int:
        return sum([weight for matches, weight in self._terms if matches(node.labels, node.name)])

    def normalize(self, scores: list[int]) -> list[int]:
        return normalize_scores(scores)


def _matches_now(pod: PodInfo, event: ClusterEvent) -> bool:
    allowed = pod.shape.required_nodes
    if allowed is None:
        return True
    if not allowed(event.new.labels, event.new.name):
        return False
    return event.old is None or not allowed(event.old.labels, event.old.name)
