"""Scoring of PodTopologySpread: the fewer matching Pods in its domains, the better a node.

Nodes with equal counts have equal scores; each distinct combination is computed once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import floor, log

from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.node_list import values_of
from ostinato.plane.scheduler.cache.topology_counts import TopologyCounts
from ostinato.plane.scheduler.framework.interface import MAX_NODE_SCORE, Scorer

Column = tuple[TopologyCounts, bool, int]
"""(counts, whether domains are single nodes, maxSkew)."""


class SpreadScorer(Scorer):
    def __init__(self, columns: Sequence[Column], *, require_all_labels: bool) -> None:
        """`require_all_labels`: nodes without a topology label get the lowest score; otherwise the constraint is
        skipped.
        """
        self._columns = [column for column in columns if require_all_labels or column[0].in_domain]
        self._needs_all = require_all_labels

    def scores(self, nodes: Sequence[NodeInfo]) -> list[int]:
        if not self._columns:
            return [MAX_NODE_SCORE] * len(nodes)
        # Key of a node: per constraint its count, its domain, or None.
        views = [_view(counts, nodes, by_node=by_node) for counts, by_node, _ in self._columns]
        if len(views) == 1:  # without a tuple for each node
            (view,) = views
            ignored = view.count(None) if self._needs_all else 0
            table = self._table({(part,) for part in set(view)}, len(view) - ignored)
            of_part = {part: score for (part,), score in table.items()}
            return list(map(of_part.__getitem__, view))
        keys: list[tuple[Hashable, ...]] = list(zip(*views, strict=True))
        ignored = sum([None in key for key in keys]) if self._needs_all else 0
        return list(map(self._table(set(keys), len(keys) - ignored).__getitem__, keys))

    def _table(self, different: set[tuple[Hashable, ...]], in_all: int) -> dict[tuple[Hashable, ...], int]:
        """Return the score per distinct key. `in_all`: the number of nodes that are not ignored."""
        ignored = {key for key in different if self._needs_all and None in key}
        counted = [key for key in different if key not in ignored]
        weights = []
        for at, (_, by_node, _) in enumerate(self._columns):
            size = in_all if by_node else len({key[at] for key in counted})
            weights.append(log(size + 2))
        raw = {key: self._raw(key, weights) for key in counted}
        least, most = min(raw.values(), default=0), max(raw.values(), default=0)
        scores = {
            key: MAX_NODE_SCORE * (most + least - value) // most if most else MAX_NODE_SCORE
            for key, value in raw.items()
        }
        return {**scores, **dict.fromkeys(ignored, 0)}

    def _raw(self, key: tuple[Hashable, ...], weights: list[float]) -> int:
        """Return the raw score; lower is better."""
        total = 0.0
        for part, weight, (counts, by_node, max_skew) in zip(key, weights, self._columns, strict=True):
            if part is not None:
                count = part if by_node else counts.in_domain.get(str(part), 0)
                assert isinstance(count, int)
                total += count * weight + (max_skew - 1)
        return floor(total + 0.5)

    def score(self, node: NodeInfo) -> int:
        return self.scores([node])[0]


def _view(counts: TopologyCounts, nodes: Sequence[NodeInfo], *, by_node: bool) -> list[Hashable]:
    """Return the part of each node's key for one constraint."""
    if not by_node:
        return [*values_of(nodes, counts.domain)]
    found = values_of(nodes, counts.on_node)
    if not counts.uncounted:
        return [*found]
    domains = values_of(nodes, counts.domain)
    return [None if domain is None else count for count, domain in zip(found, domains, strict=True)]
